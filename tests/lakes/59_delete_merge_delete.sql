-- delete, merge, delete, merge, delete: deletes on files that stand for others
-- @version 1.1
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE dmd(i INTEGER, s VARCHAR);
INSERT INTO dmd SELECT i, 'a' FROM range(0, 10) r(i);
INSERT INTO dmd SELECT i, 'b' FROM range(10, 20) r(i);
DELETE FROM dmd WHERE i IN (3, 13);
INSERT INTO dmd SELECT i, 'c' FROM range(20, 30) r(i);
INSERT INTO dmd SELECT i, 'd' FROM range(30, 40) r(i);
CALL ducklake_merge_adjacent_files('lake');
DELETE FROM dmd WHERE i IN (4, 24, 34);
DELETE FROM dmd WHERE i IN (5, 25);
INSERT INTO dmd SELECT i, 'e' FROM range(40, 50) r(i);
CALL ducklake_merge_adjacent_files('lake');
DELETE FROM dmd WHERE i % 10 = 6;
INSERT INTO dmd SELECT i, 'f' FROM range(50, 60) r(i);
INSERT INTO dmd SELECT i, 'g' FROM range(60, 70) r(i);
CALL ducklake_merge_adjacent_files('lake');
DELETE FROM dmd WHERE i >= 50;
INSERT INTO dmd VALUES (100, 'h');
