-- Rows inlined in PostgreSQL by DuckDB 1.4, which has to be told to, and keeps types of PostgreSQL.
-- It cannot inline infinite doubles or bytes outside ASCII, nor rename a table while inlining.
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 10);
USE lake;
CREATE TABLE t(i INTEGER, s VARCHAR, n DOUBLE, f REAL, d DATE, m DECIMAL(9,2), ts TIMESTAMP, tz TIMESTAMPTZ, c TIME, o BOOLEAN, u UUID, b BLOB, j JSON, y TINYINT, l INTEGER[], r STRUCT(a INTEGER, b VARCHAR), p MAP(VARCHAR, INTEGER));
INSERT INTO t VALUES (1, 'it''s', 'nan', 0.1, '0044-03-15 (BC)', -0.01, '9999-12-31 23:59:59.999999', '2024-06-01 12:00:00+02', '23:59:59.999999', true, '01a1faf5-2a7f-768e-8a6b-262982a52114', 'xFF'::BLOB, '{"k": [1, null]}', -128, [1, NULL], {'a': 1, 'b': 'x, ''y'}, MAP {'k=1': 1});
INSERT INTO t(i) VALUES (2), (NULL);
INSERT INTO t(i, s, d, ts, l) VALUES (3, 'ünï', 'infinity', '-infinity', []), (4, 'NULL', '-infinity', '1969-12-31 23:59:59.5', [NULL]);
INSERT INTO t(i, s, d, ts, tz) VALUES (7, '0044-03-15 BC', '0001-12-31 (BC)', '0044-03-15 (BC) 12:30:00.5', '0044-03-15 (BC) 12:30:00+00'), (8, NULL, '10000-01-01', '12000-01-01 00:00:01', '2024-06-01 12:00:00+02');
INSERT INTO t(i, n) SELECT k, k / 3 FROM range(100, 120) r(k);
DELETE FROM t WHERE i IN (2, 101);
DELETE FROM t WHERE i = 102;
UPDATE t SET s = 'updated' WHERE i IN (1, 103);
ALTER TABLE t ADD COLUMN x INTEGER DEFAULT 42;
INSERT INTO t(i, x) VALUES (5, 7);
ALTER TABLE t RENAME COLUMN s TO name;
ALTER TABLE t DROP COLUMN n;
ALTER TABLE t ALTER COLUMN y TYPE INTEGER;
INSERT INTO t(i, name, y) VALUES (6, 'renamed', 1000);
DELETE FROM t WHERE i = 5;
-- a table whose rows are flushed: a file that holds rows of several snapshots
CREATE TABLE f(a INTEGER, s VARCHAR);
INSERT INTO f VALUES (1, 'a'), (2, 'b');
INSERT INTO f VALUES (3, 'c');
DELETE FROM f WHERE a = 2;
INSERT INTO f VALUES (4, 'd');
CALL ducklake_flush_inlined_data('lake', table_name => 'f');
INSERT INTO f VALUES (5, 'e');
DELETE FROM f WHERE a = 1;
-- and merged with files that come after it
CREATE TABLE g(a INTEGER);
INSERT INTO g VALUES (1), (2);
INSERT INTO g VALUES (3);
CALL ducklake_flush_inlined_data('lake', table_name => 'g');
INSERT INTO g SELECT a FROM range(100, 112) r(a);
INSERT INTO g SELECT a FROM range(200, 213) r(a);
CALL ducklake_merge_adjacent_files('lake');
DELETE FROM g WHERE a IN (1, 100, 212);
