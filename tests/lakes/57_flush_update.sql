-- inlining, updates, deletes, merges and flushes, three rounds: what was updated before the flush
-- @version 1.1
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
USE lake;
CREATE TABLE fu(k INTEGER, v VARCHAR, n INTEGER);
INSERT INTO fu VALUES (1, 'a', 1), (2, 'b', 2), (3, 'c', 3), (4, 'd', 4);
UPDATE fu SET v = 'b2' WHERE k = 2;
UPDATE fu SET v = 'b3', n = n + 1 WHERE k <= 2;
DELETE FROM fu WHERE k = 3;
CALL ducklake_flush_inlined_data('lake');
UPDATE fu SET v = 'b4' WHERE k = 2;
INSERT INTO fu VALUES (3, 'c again', 33);
UPDATE fu SET n = n * 10;
CALL ducklake_flush_inlined_data('lake');
INSERT INTO fu SELECT i, 'f', i FROM range(100, 130) r(i);
UPDATE fu SET v = 'upd' WHERE k IN (100, 1, 3);
MERGE INTO fu USING (SELECT * FROM (VALUES (1, 'm'), (101, 'm'), (500, 'm')) t(k, v)) s ON fu.k = s.k WHEN MATCHED THEN UPDATE SET v = s.v WHEN NOT MATCHED THEN INSERT VALUES (s.k, s.v, 0);
DELETE FROM fu WHERE k IN (2, 102);
CALL ducklake_flush_inlined_data('lake');
MERGE INTO fu USING (SELECT * FROM (VALUES (1), (103), (500)) t(k)) s ON fu.k = s.k WHEN MATCHED THEN DELETE;
UPDATE fu SET v = v || '!' WHERE n = 0 OR k > 125;
CALL ducklake_merge_adjacent_files('lake');
UPDATE fu SET v = 'all';
CALL ducklake_flush_inlined_data('lake');
