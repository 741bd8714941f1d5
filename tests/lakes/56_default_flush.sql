-- columns with defaults added over inlined rows, then flushed; travel to before the columns were
-- @version 1.0
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
USE lake;
CREATE TABLE df(i INTEGER);
INSERT INTO df VALUES (1), (2);
ALTER TABLE df ADD COLUMN n INTEGER DEFAULT 5;
ALTER TABLE df ADD COLUMN s VARCHAR DEFAULT 'it''s';
INSERT INTO df VALUES (3, NULL, NULL), (4, 44, 'four');
INSERT INTO df (i) VALUES (5);
CALL ducklake_flush_inlined_data('lake');
ALTER TABLE df ADD COLUMN d DATE DEFAULT '2024-02-29';
INSERT INTO df (i) VALUES (6);
ALTER TABLE df ALTER COLUMN n SET DEFAULT 6;
INSERT INTO df (i) VALUES (7);
ALTER TABLE df RENAME COLUMN n TO m;
INSERT INTO df (i) VALUES (8);
DELETE FROM df WHERE i IN (2, 6);
UPDATE df SET s = 'upd' WHERE i IN (1, 7);
CALL ducklake_flush_inlined_data('lake');
ALTER TABLE df DROP COLUMN s;
ALTER TABLE df ADD COLUMN s INTEGER DEFAULT 9;
CALL ducklake_merge_adjacent_files('lake');
INSERT INTO df (i) VALUES (9);
