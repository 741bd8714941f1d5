ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
CALL lake.set_option('data_inlining_row_limit', 0);
CALL lake.set_option('parquet_compression', 'uncompressed');
USE lake;

CREATE TABLE files (id INTEGER, secret VARCHAR, name VARCHAR, n BIGINT);
INSERT INTO files SELECT i, 'Xq7Zw-' || i % 7, 'name' || i, i * 10 FROM range(3000) AS r(i);
INSERT INTO files SELECT i, 'Xq7Zw-' || i, NULL, i FROM range(3000, 3010) AS r(i);
DELETE FROM files WHERE id IN (3, 3001);
COMMENT ON COLUMN files.secret IS 'Xq7Zw-comment';
COMMENT ON TABLE files IS 'such as Xq7Zw-1';
ALTER TABLE files ADD COLUMN country VARCHAR DEFAULT 'DE';
INSERT INTO files SELECT i, 'Xq7Zw-' || i, 'x', i, 'FR' FROM range(4000, 4005) AS r(i);

CREATE TABLE parts (secret VARCHAR, id INTEGER, day DATE);
ALTER TABLE parts SET PARTITIONED BY (secret, day);
INSERT INTO parts SELECT 'Xq7Zw-' || i % 3, i, DATE '2026-01-01' + (i % 2)::INTEGER
  FROM range(12) AS r(i);
DELETE FROM parts WHERE id = 5;
UPDATE parts SET day = DATE '2026-01-02' WHERE id IN (4, 8);
ALTER TABLE parts SET SORTED BY (secret);

CREATE TABLE added (id INTEGER, secret VARCHAR, name VARCHAR);
COPY (SELECT i::INTEGER AS id, 'n' || i AS name, 'Xq7Zw-' || i % 2 AS secret FROM range(8) AS r(i))
  TO '{{DATA_PATH}}_ext/added' (FORMAT parquet, PARTITION_BY (secret), COMPRESSION uncompressed);
CALL ducklake_add_data_files('lake', 'added', '{{DATA_PATH}}_ext/added/**/*.parquet',
  hive_partitioning => true);
COPY (SELECT 'Xq7Zw-' || i AS secret, 'm' || i AS name, i::INTEGER AS id
  FROM range(20, 25) AS r(i))
  TO '{{DATA_PATH}}_ext/more.parquet' (FORMAT parquet, COMPRESSION uncompressed);
CALL ducklake_add_data_files('lake', 'added', '{{DATA_PATH}}_ext/more.parquet');

CREATE TABLE hive (id INTEGER, secret VARCHAR, day DATE);
COPY (SELECT i::INTEGER AS id, 'Xq7Zw-' || i AS secret, DATE '2026-01-01' + (i % 2)::INTEGER AS day
  FROM range(8) AS r(i))
  TO '{{DATA_PATH}}_ext/hive' (FORMAT parquet, PARTITION_BY (day), COMPRESSION uncompressed);
CALL ducklake_add_data_files('lake', 'hive', '{{DATA_PATH}}_ext/hive/**/*.parquet',
  hive_partitioning => true);
DELETE FROM hive WHERE id = 2;

CREATE TABLE nested (id INTEGER, secret STRUCT(a VARCHAR, l VARCHAR[]), open STRUCT(b INTEGER, c VARCHAR),
  tags VARCHAR[], m MAP(VARCHAR, INTEGER));
INSERT INTO nested SELECT i, {'a': 'Xq7Zw-' || i, 'l': ['Xq7Zw-list' || i]}, {'b': i, 'c': 'c' || i},
  ['t' || i], MAP {'k' || i: i} FROM range(20) AS r(i);

CREATE TABLE late (id INTEGER, name VARCHAR);
INSERT INTO late SELECT i, 'n' || i FROM range(5) AS r(i);
ALTER TABLE late ADD COLUMN secret VARCHAR DEFAULT 'Xq7Zw-default';
INSERT INTO late SELECT i, 'm' || i, 'Xq7Zw-' || i FROM range(5, 9) AS r(i);

CREATE TABLE renamed (id INTEGER, before VARCHAR, name VARCHAR);
INSERT INTO renamed SELECT i, 'Xq7Zw-' || i, 'n' || i FROM range(5) AS r(i);
ALTER TABLE renamed RENAME COLUMN before TO secret;
INSERT INTO renamed SELECT i, 'Xq7Zw-' || i, 'n' || i FROM range(5, 8) AS r(i);

CREATE TABLE again (id INTEGER, secret VARCHAR, name VARCHAR);
INSERT INTO again SELECT i, 'Xq7Zw-' || i, 'n' || i FROM range(5) AS r(i);
ALTER TABLE again DROP COLUMN secret;
INSERT INTO again SELECT i, 'n' || i FROM range(5, 8) AS r(i);
ALTER TABLE again ADD COLUMN secret VARCHAR;
INSERT INTO again SELECT i, 'n' || i, 'Xq7Zw-' || i FROM range(8, 12) AS r(i);

CREATE TABLE first_name (id INTEGER, secret VARCHAR);
INSERT INTO first_name VALUES (1, 'Xq7Zw-1');
ALTER TABLE first_name RENAME TO second_name;

CREATE TABLE without_it (id INTEGER, secret2 VARCHAR);
INSERT INTO without_it VALUES (1, 'Xq7Zw-1');

CREATE TABLE open (id INTEGER, name VARCHAR);
INSERT INTO open VALUES (1, 'a');

CALL lake.set_option('data_inlining_row_limit', 1000);
CREATE TABLE inlined (id INTEGER, secret VARCHAR, name VARCHAR);
INSERT INTO inlined SELECT i, 'Xq7Zw-' || i, 'n' || i FROM range(9) AS r(i);
DELETE FROM inlined WHERE id = 2;
ALTER TABLE inlined ADD COLUMN n INTEGER DEFAULT 7;
INSERT INTO inlined SELECT i, 'Xq7Zw-' || i, 'n' || i, i FROM range(9, 12) AS r(i);
CREATE TABLE inlined_parts (id INTEGER, secret VARCHAR, p INTEGER);
ALTER TABLE inlined_parts SET PARTITIONED BY (p, secret);
INSERT INTO inlined_parts SELECT i, 'Xq7Zw-' || i % 2, i % 3 FROM range(9) AS r(i);
BEGIN;
DELETE FROM files WHERE id = 100;
CALL lake.set_commit_message('Xq7Zw-author', 'Xq7Zw-message');
COMMIT;
