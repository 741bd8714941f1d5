-- inlined rows of a partitioned table, flushed into partitions; the partitioning changes before
-- @version 1.1
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
USE lake;
CREATE TABLE pi(k VARCHAR, i INTEGER);
INSERT INTO pi VALUES ('a', 1), ('b', 2), (NULL, 3);
ALTER TABLE pi SET PARTITIONED BY (k);
INSERT INTO pi VALUES ('a', 4), ('b', 5), (NULL, 6);
DELETE FROM pi WHERE i = 4;
INSERT INTO pi SELECT 'k' || i % 3, i FROM range(100, 130) r(i);
DELETE FROM pi WHERE i = 101;
CALL ducklake_flush_inlined_data('lake');
INSERT INTO pi VALUES ('a', 7), ('sl/ash', 8);
ALTER TABLE pi SET PARTITIONED BY (bucket(4, i));
INSERT INTO pi VALUES ('a', 9), ('a', 10);
UPDATE pi SET k = 'moved' WHERE i IN (1, 7, 102);
CALL ducklake_flush_inlined_data('lake');
DELETE FROM pi WHERE i IN (9, 103);
ALTER TABLE pi RESET PARTITIONED BY;
INSERT INTO pi VALUES ('z', 11);
CALL ducklake_flush_inlined_data('lake');
CALL ducklake_merge_adjacent_files('lake');
