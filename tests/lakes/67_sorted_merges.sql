-- merges that sort: rows of several snapshots stand interleaved in one file
-- @version 1.1
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
USE lake;
CREATE TABLE sm(i INTEGER, s VARCHAR);
ALTER TABLE sm SET SORTED BY (i DESC);
INSERT INTO sm SELECT (i * 7) % 20, 'a' || i FROM range(0, 20) r(i);
INSERT INTO sm SELECT (i * 7) % 20, 'b' || i FROM range(20, 40) r(i);
DELETE FROM sm WHERE s IN ('a3', 'b23');
INSERT INTO sm VALUES (5, 'inl1'), (15, 'inl2');
UPDATE sm SET s = 'upd' WHERE s IN ('a4', 'b24', 'inl1');
CALL ducklake_flush_inlined_data('lake');
INSERT INTO sm SELECT (i * 7) % 20, 'c' || i FROM range(40, 60) r(i);
CALL ducklake_merge_adjacent_files('lake');
DELETE FROM sm WHERE i IN (3, 5);
INSERT INTO sm SELECT (i * 3) % 20, 'd' || i FROM range(60, 80) r(i);
CALL ducklake_merge_adjacent_files('lake');
DELETE FROM sm WHERE s LIKE 'd%' AND i < 10;
CALL ducklake_rewrite_data_files('lake', 'sm', delete_threshold => 0);
INSERT INTO sm VALUES (99, 'end');
