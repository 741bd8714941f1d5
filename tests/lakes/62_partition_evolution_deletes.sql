-- the partitioning changes again and again, files of each are deleted from, updated and merged; NULLs
-- @version 1.0
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE pe(k VARCHAR, i INTEGER, d DATE);
INSERT INTO pe SELECT CASE WHEN i % 4 > 0 THEN 'k' || i % 4 END, i, DATE '2023-11-15' + (i * 10)::INT FROM range(0, 20) r(i);
ALTER TABLE pe SET PARTITIONED BY (k);
INSERT INTO pe SELECT CASE WHEN i % 4 > 0 THEN 'k' || i % 4 END, i, NULL FROM range(20, 40) r(i);
DELETE FROM pe WHERE i % 10 = 3;
ALTER TABLE pe SET PARTITIONED BY (year(d), month(d));
INSERT INTO pe SELECT 'm', i, CASE WHEN i % 4 > 0 THEN DATE '2023-11-15' + (i * 10)::INT END FROM range(40, 60) r(i);
DELETE FROM pe WHERE i % 10 = 4;
ALTER TABLE pe SET PARTITIONED BY (k, bucket(3, i));
INSERT INTO pe SELECT CASE WHEN i % 2 > 0 THEN 'k' END, CASE WHEN i % 3 > 0 THEN i END, NULL FROM range(60, 80) r(i);
UPDATE pe SET d = '2020-02-29' WHERE i % 10 = 5 OR k IS NULL;
ALTER TABLE pe RESET PARTITIONED BY;
INSERT INTO pe SELECT 'none', i, NULL FROM range(80, 90) r(i);
DELETE FROM pe WHERE i % 10 = 6 OR i IS NULL;
ALTER TABLE pe SET PARTITIONED BY (k);
INSERT INTO pe SELECT 'k1', i, NULL FROM range(90, 95) r(i);
INSERT INTO pe SELECT 'k1', i, NULL FROM range(95, 99) r(i);
CALL ducklake_merge_adjacent_files('lake');
DELETE FROM pe WHERE k = 'k1' AND i % 2 = 1;
