-- small files of several schemas, merged after each change: what is merged with what
-- @version 1.0
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE me(i INTEGER, s VARCHAR);
INSERT INTO me VALUES (1, 'a');
INSERT INTO me VALUES (2, 'b');
ALTER TABLE me ADD COLUMN n INTEGER DEFAULT 5;
INSERT INTO me VALUES (3, 'c', 3);
INSERT INTO me VALUES (4, 'd', NULL);
CALL ducklake_merge_adjacent_files('lake');
ALTER TABLE me ALTER COLUMN i TYPE BIGINT;
INSERT INTO me VALUES (5000000000, 'e', 5);
INSERT INTO me VALUES (6, 'f', 6);
ALTER TABLE me RENAME COLUMN s TO t;
INSERT INTO me VALUES (7, 'g', 7);
CALL ducklake_merge_adjacent_files('lake');
DELETE FROM me WHERE i IN (2, 6);
ALTER TABLE me DROP COLUMN n;
INSERT INTO me VALUES (8, 'h');
ALTER TABLE me ADD COLUMN n VARCHAR DEFAULT 'new';
INSERT INTO me VALUES (9, 'i', 'nine');
INSERT INTO me VALUES (10, 'j', NULL);
CALL ducklake_merge_adjacent_files('lake');
CALL ducklake_rewrite_data_files('lake', 'me', delete_threshold => 0);
CALL ducklake_merge_adjacent_files('lake');
INSERT INTO me VALUES (11, 'k', 'eleven');
