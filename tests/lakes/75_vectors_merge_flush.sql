-- deletion vectors crossed with inlined deletes, a merge, flushes and a rewrite
-- @version 1.1
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
USE lake;
CALL lake.set_option('write_deletion_vectors', true);
CREATE TABLE vm(i INTEGER, s VARCHAR);
INSERT INTO vm SELECT i, 'a' FROM range(0, 100) r(i);
INSERT INTO vm SELECT i, 'b' FROM range(100, 200) r(i);
DELETE FROM vm WHERE i % 5 = 0;
INSERT INTO vm VALUES (1000, 'inl'), (1001, 'inl');
DELETE FROM vm WHERE i IN (1, 1001);
CALL ducklake_flush_inlined_data('lake');
INSERT INTO vm SELECT i, 'c' FROM range(200, 300) r(i);
INSERT INTO vm SELECT i, 'd' FROM range(300, 400) r(i);
CALL ducklake_merge_adjacent_files('lake');
DELETE FROM vm WHERE i BETWEEN 290 AND 310;
INSERT INTO vm VALUES (1002, 'inl');
UPDATE vm SET s = 'u' WHERE i IN (2, 201, 1002);
CALL ducklake_flush_inlined_data('lake');
CALL ducklake_rewrite_data_files('lake', 'vm', delete_threshold => 0);
DELETE FROM vm WHERE i > 350;
INSERT INTO vm VALUES (1003, 'end');
