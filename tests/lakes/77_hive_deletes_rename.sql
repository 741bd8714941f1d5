-- added Hive files: deletes, updates, a rename and a drop of columns that stand in the path
-- @version 1.1
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
USE lake;
CREATE TABLE hd(id INTEGER, v VARCHAR, part INTEGER, day DATE);
COPY (SELECT i::INTEGER AS id, 'v' || i AS v, (i % 2)::INTEGER AS part, DATE '2024-01-01' + (i % 2)::INT AS day FROM range(12) r(i)) TO '{{DATA_PATH}}_ext/hd' (FORMAT parquet, PARTITION_BY (part, day));
CALL ducklake_add_data_files('lake', 'hd', '{{DATA_PATH}}_ext/hd/**/*.parquet', hive_partitioning => true);
DELETE FROM hd WHERE id IN (1, 2);
INSERT INTO hd VALUES (100, 'inl', 5, NULL);
UPDATE hd SET v = 'upd', part = 7 WHERE id IN (3, 4);
ALTER TABLE hd RENAME COLUMN part TO p;
DELETE FROM hd WHERE id = 5;
ALTER TABLE hd ALTER COLUMN p TYPE BIGINT;
INSERT INTO hd SELECT i, 'own', i, '2024-05-05' FROM range(200, 220) r(i);
CALL ducklake_flush_inlined_data('lake');
ALTER TABLE hd SET PARTITIONED BY (p);
INSERT INTO hd SELECT i, 'own', i % 2, '2024-06-06' FROM range(300, 320) r(i);
DELETE FROM hd WHERE id IN (6, 201, 301);
CREATE TABLE hs(id INTEGER, s VARCHAR);
COPY (SELECT i::INTEGER AS id, 'a b/' || i % 2 AS s FROM range(6) r(i)) TO '{{DATA_PATH}}_ext/hs' (FORMAT parquet, PARTITION_BY (s));
CALL ducklake_add_data_files('lake', 'hs', '{{DATA_PATH}}_ext/hs/**/*.parquet', hive_partitioning => true);
DELETE FROM hs WHERE id = 1;
CALL ducklake_rewrite_data_files('lake', 'hs', delete_threshold => 0);
ALTER TABLE hs DROP COLUMN s;
DELETE FROM hs WHERE id = 2;
ALTER TABLE hs ADD COLUMN s VARCHAR DEFAULT 'again';
INSERT INTO hs VALUES (10, 'own');
