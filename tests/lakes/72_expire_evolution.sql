-- what a file was written with has expired: promotions, renames, defaults before the oldest snapshot
-- @version 1.0
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
USE lake;
CREATE TABLE ee(i INTEGER, b VARCHAR, f FLOAT, n INTEGER, x INTEGER);
INSERT INTO ee SELECT i, 'f' || i, 0.1, i, i FROM range(100, 120) r(i);
INSERT INTO ee VALUES (1, 'one', 0.1, 1, 1);
ALTER TABLE ee ALTER COLUMN i TYPE BIGINT;
INSERT INTO ee VALUES (3000000000, 'two', 0.2, 2, 2);
ALTER TABLE ee ALTER COLUMN f TYPE DOUBLE;
ALTER TABLE ee RENAME COLUMN b TO bb;
INSERT INTO ee VALUES (3, 'three', 0.1, 3, 3);
ALTER TABLE ee ADD COLUMN e INTEGER DEFAULT 42;
INSERT INTO ee (i) VALUES (4);
ALTER TABLE ee ALTER COLUMN x TYPE DOUBLE;
ALTER TABLE ee ALTER COLUMN e TYPE BIGINT;
ALTER TABLE ee DROP COLUMN n;
INSERT INTO ee (i, x) VALUES (5, 0.5);
DELETE FROM ee WHERE i IN (1, 101);
CALL ducklake_expire_snapshots('lake', versions => [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
CALL ducklake_cleanup_old_files('lake', cleanup_all => true);
INSERT INTO ee (i, x) VALUES (6, 6);
DELETE FROM ee WHERE i IN (3, 103);
ALTER TABLE ee RENAME TO ee2;
CALL ducklake_expire_snapshots('lake', versions => [14, 15, 16]);
INSERT INTO ee2 (i, x) VALUES (7, 7);
