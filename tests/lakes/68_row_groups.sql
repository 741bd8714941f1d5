-- many row groups and pages in one file: deletes, merges and snapshots at positions all over it
-- @version 1.0
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CALL lake.set_option('parquet_row_group_size', 2048);
CREATE TABLE rg(i INTEGER, s VARCHAR);
INSERT INTO rg SELECT i, 'row ' || i FROM range(0, 10000) r(i);
DELETE FROM rg WHERE i % 2048 IN (0, 2047);
DELETE FROM rg WHERE i BETWEEN 4000 AND 6200;
INSERT INTO rg SELECT i, repeat('x', 50) || i FROM range(10000, 15000) r(i);
INSERT INTO rg SELECT i, 'y' || i FROM range(15000, 20000) r(i);
CALL ducklake_merge_adjacent_files('lake');
DELETE FROM rg WHERE i % 1000 = 1;
UPDATE rg SET s = 'upd' WHERE i % 2500 = 2;
CALL ducklake_rewrite_data_files('lake', 'rg', delete_threshold => 0);
DELETE FROM rg WHERE i >= 19990 OR i < 10;
