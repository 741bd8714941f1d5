-- CHECKPOINT between changes: flush, merge, rewrite and cleanup at once
-- @version 1.1
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
USE lake;
CREATE TABLE cp(i INTEGER, s VARCHAR);
CREATE TABLE other(i INTEGER);
INSERT INTO cp VALUES (1, 'a');
INSERT INTO other VALUES (1);
INSERT INTO cp SELECT i, 'f' FROM range(100, 140) r(i);
DELETE FROM cp WHERE i = 101;
UPDATE cp SET s = 'u' WHERE i IN (1, 102);
CHECKPOINT lake;
INSERT INTO cp VALUES (2, 'b');
DELETE FROM cp WHERE i >= 103;
ALTER TABLE cp ADD COLUMN n INTEGER DEFAULT 3;
INSERT INTO cp VALUES (3, 'c', 4);
CHECKPOINT lake;
DELETE FROM cp WHERE i = 2;
INSERT INTO other VALUES (2);
CHECKPOINT lake;
INSERT INTO cp VALUES (4, 'd', 5);
