-- snapshots in the middle expire, then merges, deletes, flushes and further expiries
-- @version 1.1
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
USE lake;
CREATE TABLE em(i INTEGER, s VARCHAR);
INSERT INTO em VALUES (1, 'a');
INSERT INTO em SELECT i, 'f' FROM range(100, 120) r(i);
DELETE FROM em WHERE i = 101;
INSERT INTO em VALUES (2, 'b');
UPDATE em SET s = 'u' WHERE i IN (1, 102);
INSERT INTO em SELECT i, 'g' FROM range(200, 220) r(i);
CALL ducklake_expire_snapshots('lake', versions => [3, 4, 6]);
DELETE FROM em WHERE i IN (2, 103, 203);
CALL ducklake_flush_inlined_data('lake');
INSERT INTO em VALUES (3, 'c');
CALL ducklake_merge_adjacent_files('lake');
DELETE FROM em WHERE i IN (3, 104, 204);
CALL ducklake_expire_snapshots('lake', versions => [8, 9]);
CALL ducklake_cleanup_old_files('lake', cleanup_all => true);
DELETE FROM em WHERE i IN (105, 205);
CALL ducklake_rewrite_data_files('lake', 'em', delete_threshold => 0);
INSERT INTO em VALUES (4, 'd');
CALL ducklake_expire_snapshots('lake', versions => [1, 2, 5]);
CALL ducklake_cleanup_old_files('lake', cleanup_all => true);
DELETE FROM em WHERE i IN (4, 106);
CALL ducklake_flush_inlined_data('lake');
