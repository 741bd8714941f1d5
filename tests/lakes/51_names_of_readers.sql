-- columns called as readers call their own, in merged files whose snapshots must be told apart
-- @version 1.1
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE system(row_id INTEGER, begin_snapshot INTEGER, end_snapshot INTEGER);
INSERT INTO system SELECT i, i, i FROM range(5) r(i);
INSERT INTO system SELECT i, i, NULL FROM range(5, 9) r(i);
CALL ducklake_merge_adjacent_files('lake');
DELETE FROM system WHERE row_id = 3;
CREATE TABLE own(file_row_number INTEGER, filename VARCHAR, pos BIGINT, file_path VARCHAR, c0 VARCHAR, c1 INTEGER, element INTEGER, "key" INTEGER, "value" VARCHAR, list INTEGER[], rowid_ INTEGER, snapshot_id INTEGER);
INSERT INTO own SELECT i, 'f'||i, -i, 'p'||i, 'c'||i, i, i, i, 'v', [i], i, i FROM range(5) r(i);
INSERT INTO own SELECT i, 'f'||i, -i, 'p'||i, 'c'||i, i, i, i, 'v', [i, i], i, i FROM range(5, 9) r(i);
DELETE FROM own WHERE file_row_number = 1;
INSERT INTO own SELECT i, 'f'||i, -i, 'p'||i, 'c'||i, i, i, i, 'v', NULL, i, i FROM range(9, 12) r(i);
CALL ducklake_merge_adjacent_files('lake');
DELETE FROM own WHERE file_row_number IN (2, 6, 10);
UPDATE own SET filename = NULL WHERE pos = -4;
CALL ducklake_merge_adjacent_files('lake');
CALL lake.set_option('data_inlining_row_limit', 10, table_name => 'own');
INSERT INTO own SELECT i, 'i'||i, -i, 'p'||i, 'c'||i, i, i, i, 'v', [], i, i FROM range(20, 23) r(i);
DELETE FROM own WHERE file_row_number IN (5, 21);
INSERT INTO own SELECT i, 'i'||i, -i, 'p'||i, 'c'||i, i, i, i, 'v', [], i, i FROM range(30, 33) r(i);
CALL ducklake_flush_inlined_data('lake');
