-- One lake for every old DuckDB; 1.5 inlines the small inserts and deletes, by default.
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
USE lake;
-- types, NULL, NaN, infinity; two deletes from one file, an update, evolution, defaults
CREATE TABLE t(i INTEGER, s VARCHAR, n DOUBLE, d DATE, m DECIMAL(9,2), ts TIMESTAMP, b BLOB, l INTEGER[]);
INSERT INTO t SELECT k, 's' || k, CASE k WHEN 19 THEN '-inf' WHEN 20 THEN 'nan' ELSE k / 4 END, DATE '2024-01-01' + k::INT, k * 1.01, TIMESTAMP '2024-01-01 00:00:00.123456', 'b'::BLOB, [k, NULL] FROM range(1, 21) r(k);
INSERT INTO t VALUES (30, NULL, 'nan', '0044-03-15 (BC)', NULL, NULL, 'xFF'::BLOB, []), (31, 'it''s', 1e300, 'infinity', -0.01, '9999-12-31', NULL, NULL), (NULL, '', NULL, NULL, NULL, NULL, '', [1]);
DELETE FROM t WHERE i = 2;
DELETE FROM t WHERE i IN (5, 30);
UPDATE t SET s = 'updated' WHERE i IN (7, 31);
ALTER TABLE t ADD COLUMN x INTEGER DEFAULT 42;
INSERT INTO t VALUES (40, 'later', 1.5, NULL, 1, NULL, NULL, NULL, 7);
ALTER TABLE t RENAME COLUMN s TO name;
ALTER TABLE t DROP COLUMN n;
ALTER TABLE t ALTER COLUMN i TYPE BIGINT;
INSERT INTO t(i, name) VALUES (5000000000, 'renamed');
DELETE FROM t WHERE i = 40;
-- a schema, partitions, a rename, one transaction over two tables, a table that is gone
CREATE SCHEMA "other one";
CREATE TABLE "other one".p(k VARCHAR, v INTEGER);
ALTER TABLE "other one".p SET PARTITIONED BY (k);
INSERT INTO "other one".p SELECT 'k' || (v % 2), v FROM range(12) r(v);
ALTER TABLE "other one".p RENAME TO q;
CREATE TABLE gone(a INTEGER);
BEGIN;
INSERT INTO gone VALUES (1), (2);
DELETE FROM "other one".q WHERE v = 3;
COMMIT;
DROP TABLE gone;
-- files merged, and merged again: rows of several snapshots in one file; deletes and rows after it
CREATE TABLE m(a INTEGER, s VARCHAR);
INSERT INTO m SELECT a, 'first' FROM range(100, 112) r(a);
INSERT INTO m SELECT a, 'second' FROM range(200, 213) r(a);
INSERT INTO m SELECT a, 'third' FROM range(300, 314) r(a);
CALL ducklake_merge_adjacent_files('lake');
INSERT INTO m SELECT a, 'fourth' FROM range(400, 415) r(a);
INSERT INTO m SELECT a, 'fifth' FROM range(500, 511) r(a);
CALL ducklake_merge_adjacent_files('lake');
DELETE FROM m WHERE a IN (201, 401);
INSERT INTO m VALUES (1, 'after');
DELETE FROM m WHERE a = 301;
DELETE FROM m;
INSERT INTO m VALUES (2, 'again');
