-- buckets with year and month, of several columns; updates that move rows; buckets of NULL
-- @version 1.0
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE pc(id BIGINT, s VARCHAR, d DATE, ts TIMESTAMP, tz TIMESTAMPTZ, b BOOLEAN, dc DECIMAL(9,3));
ALTER TABLE pc SET PARTITIONED BY (bucket(4, id), year(d), month(d));
INSERT INTO pc SELECT i, 's' || i, DATE '1969-11-20' + (i * 7)::INT, TIMESTAMP '1969-12-31 20:00:00' + INTERVAL (i) HOUR, '1969-12-31 20:00:00+00', i % 2 = 0, i / 8 FROM range(-2, 20) r(i);
INSERT INTO pc VALUES (NULL, NULL, NULL, NULL, NULL, NULL, NULL);
DELETE FROM pc WHERE id IN (-2, 5);
UPDATE pc SET d = '2024-02-29', id = id + 100 WHERE id % 5 = 0;
ALTER TABLE pc SET PARTITIONED BY (year(ts), month(ts), day(ts), hour(ts), bucket(3, s), b);
INSERT INTO pc SELECT i, CASE WHEN i % 2 > 0 THEN 's' || i END, NULL, TIMESTAMP '1970-01-01 02:00:00' - INTERVAL (i) HOUR, NULL, NULL, NULL FROM range(30, 45) r(i);
DELETE FROM pc WHERE id IN (1, 31, 32) OR id IS NULL;
ALTER TABLE pc SET PARTITIONED BY (month(d), year(tz), bucket(2, dc), day(ts));
INSERT INTO pc SELECT i, 'x', DATE '2024-01-31' + i::INT, NULL, TIMESTAMPTZ '2023-12-31 23:30:00+00' + INTERVAL (i) MINUTE, true, i / 8 FROM range(50, 70) r(i);
UPDATE pc SET s = 'upd' WHERE id % 7 = 0;
MERGE INTO pc USING (SELECT unnest([3, 33, 53, 999]) AS id) s ON pc.id = s.id WHEN MATCHED THEN UPDATE SET tz = '2000-01-01 00:00:00+00' WHEN NOT MATCHED THEN INSERT (id) VALUES (s.id);
CALL ducklake_merge_adjacent_files('lake');
DELETE FROM pc WHERE id IN (4, 34, 54);
