-- a thousand inlined rows at once and many deletes of them; TRUNCATE; MERGE INTO; empty statements
-- @version 1.0
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 2000);
USE lake;
CREATE TABLE it(i INTEGER, s VARCHAR, l INTEGER[]);
INSERT INTO it SELECT i, 'row ''' || i || '"', [i, NULL] FROM range(1000) r(i);
DELETE FROM it WHERE i % 3 = 0;
INSERT INTO it SELECT i, NULL, NULL FROM range(0) r(i);
UPDATE it SET s = 'upd' WHERE i % 5 = 1;
DELETE FROM it WHERE false;
MERGE INTO it USING (SELECT i FROM range(990, 1010) r(i)) s ON it.i = s.i WHEN MATCHED THEN UPDATE SET s = 'merged' WHEN NOT MATCHED THEN INSERT VALUES (s.i, 'inserted', []);
CREATE VIEW iv AS SELECT * FROM it;
MERGE INTO it USING (SELECT i FROM range(100) r(i)) s ON it.i = s.i WHEN MATCHED THEN DELETE;
CREATE MACRO im(a) AS a + 1;
INSERT INTO it SELECT i, 'file', [] FROM range(5000, 8000) r(i);
DELETE FROM it WHERE i BETWEEN 5000 AND 5500;
UPDATE it SET l = [1] WHERE i IN (101, 5501);
TRUNCATE it;
INSERT INTO it VALUES (1, 'after', [1]);
DELETE FROM it;
INSERT INTO it SELECT i, 'last', NULL FROM range(100) r(i);
CREATE TABLE emptied(i INTEGER);
INSERT INTO emptied VALUES (1), (2);
TRUNCATE emptied;
ALTER TABLE emptied ADD COLUMN n INTEGER DEFAULT 5;
INSERT INTO emptied SELECT 3, 3 WHERE false;
INSERT INTO emptied VALUES (4, 4);
CALL ducklake_flush_inlined_data('lake');
DELETE FROM emptied;
