-- rewrite_data_files after stored and inlined deletes, then flush, delete, rewrite again
-- @version 1.0
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
USE lake;
CREATE TABLE rw(i INTEGER, s VARCHAR);
INSERT INTO rw SELECT i, 'a' FROM range(0, 40) r(i);
INSERT INTO rw SELECT i, 'b' FROM range(40, 80) r(i);
DELETE FROM rw WHERE i < 20;
DELETE FROM rw WHERE i IN (41, 42);
CALL ducklake_rewrite_data_files('lake', delete_threshold => 0.1);
DELETE FROM rw WHERE i BETWEEN 25 AND 37;
UPDATE rw SET s = 'u' WHERE i IN (38, 43);
CALL ducklake_rewrite_data_files('lake', 'rw', delete_threshold => 0);
CALL ducklake_flush_inlined_data('lake');
DELETE FROM rw WHERE i = 39;
DELETE FROM rw WHERE i = 44;
CALL ducklake_flush_inlined_data('lake');
DELETE FROM rw WHERE i = 45;
CALL ducklake_rewrite_data_files('lake', 'rw', delete_threshold => 0);
CALL ducklake_merge_adjacent_files('lake');
DELETE FROM rw WHERE i = 46;
