-- One table of each kind, for `make deployed`
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE added(i BIGINT, s VARCHAR, t TIMESTAMP);
INSERT INTO added SELECT i, 'own', TIMESTAMP '2026-01-01' FROM range(3) r(i);
COPY (SELECT i::INTEGER AS i, 'added' || i AS s, TIMESTAMP '2026-01-01' AS t FROM range(100, 110) r(i))
  TO '{{DATA_PATH}}_added/one.parquet';
CALL ducklake_add_data_files('lake', 'added', '{{DATA_PATH}}_added/one.parquet');
ALTER TABLE added RENAME COLUMN s TO text;
DELETE FROM added WHERE i IN (1, 105);
CREATE TABLE deleted(i INTEGER, s VARCHAR);
INSERT INTO deleted SELECT i, 'v' || i FROM range(1000) r(i);
DELETE FROM deleted WHERE i % 7 = 0;
CALL lake.set_option('write_deletion_vectors', true);
CREATE TABLE vectors(i INTEGER, s VARCHAR);
INSERT INTO vectors SELECT i, 'v' || i FROM range(1000) r(i);
DELETE FROM vectors WHERE i % 7 = 0;
CALL lake.set_option('write_deletion_vectors', false);
CREATE TABLE parted(day DATE, i INTEGER);
ALTER TABLE parted SET PARTITIONED BY (day);
INSERT INTO parted SELECT DATE '2026-01-01' + (i % 3)::INTEGER, i FROM range(30) r(i);
DELETE FROM parted WHERE i = 4;
CALL lake.set_option('data_inlining_row_limit', 10);
CREATE TABLE inlined(i INTEGER, l INTEGER[], m MAP(VARCHAR, INTEGER));
INSERT INTO inlined VALUES (1, [1, NULL], MAP {'k': 1}), (2, [], NULL);
DELETE FROM inlined WHERE i = 2;
INSERT INTO parted VALUES (DATE '2026-01-02', 100);
DELETE FROM deleted WHERE i = 1;
CREATE VIEW of_added AS SELECT i, text FROM added WHERE i > 100;
