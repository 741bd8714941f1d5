-- Inlined rows in partitioned tables: by day, text and bucket; NULL, dates that no other client has,
-- more partitions than files are made for, a partitioning that changes while rows are inlined.
-- @version 1.0
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 10);
USE lake;
CREATE TABLE by_day(day DATE, i INTEGER, s VARCHAR);
ALTER TABLE by_day SET PARTITIONED BY (day);
INSERT INTO by_day SELECT DATE '2024-01-01' + (n % 4)::INTEGER, n, 'f' || n FROM range(400) AS r(n);
INSERT INTO by_day VALUES ('2024-01-01', 1001, 'a'), ('2024-01-02', 1002, 'b'), (NULL, 1003, 'c');
INSERT INTO by_day VALUES ('2024-01-02', 1004, 'd'), ('2024-02-29', 1005, NULL);
DELETE FROM by_day WHERE i IN (1002, 7);
UPDATE by_day SET day = '2024-01-03' WHERE i = 1001;
DELETE FROM by_day WHERE i = 1005;

CREATE TABLE by_odd_day(day DATE, i INTEGER);
ALTER TABLE by_odd_day SET PARTITIONED BY (day);
INSERT INTO by_odd_day VALUES ('2024-01-01', 1), ('infinity', 2), ('0044-03-15 (BC)', 3);
INSERT INTO by_odd_day VALUES ('2024-01-01', 4), ('2024-01-02', 5), ('9999-12-31', 6), ('0001-01-01', 7);

CREATE TABLE by_parts(t TIMESTAMP, k VARCHAR, b BIGINT, flag BOOLEAN, d DECIMAL(9, 2));
ALTER TABLE by_parts SET PARTITIONED BY (year(t), month(t), k, bucket(4, b), flag);
INSERT INTO by_parts SELECT TIMESTAMP '1969-12-31 23:00:00' + INTERVAL (n * 20) DAY, 'k' || n % 2, n, n % 2 = 0, n
  FROM range(40) AS r(n);
INSERT INTO by_parts VALUES ('1969-12-31 23:59:59.999999', 'k1', -1, true, 0.5), ('2024-02-29 12:00:00', '', 7, NULL, 1),
  (NULL, NULL, NULL, NULL, NULL), ('2024-02-29 12:00:01', 'ünï /=%', 7, false, -1);
DELETE FROM by_parts WHERE b = 7;
INSERT INTO by_parts VALUES ('2024-02-29 12:00:00', '', 8, NULL, 1), ('0001-01-01 00:00:00', 'k1', 2, true, 2);
ALTER TABLE by_parts ADD COLUMN n VARCHAR DEFAULT 'new';
INSERT INTO by_parts VALUES ('2024-03-01 00:00:00', 'k1', 9, true, 3, NULL);
ALTER TABLE by_parts SET PARTITIONED BY (n, k);
INSERT INTO by_parts VALUES ('2024-03-02 00:00:00', 'k2', 10, true, 3, 'x'), ('2024-03-02 00:00:00', 'k2', 11, true, 3, NULL);
ALTER TABLE by_parts RENAME COLUMN k TO kk;
INSERT INTO by_parts VALUES ('2024-03-03 00:00:00', 'k3', 12, true, 3, 'x');
ALTER TABLE by_parts RESET PARTITIONED BY;
INSERT INTO by_parts VALUES ('2024-03-04 00:00:00', 'k4', 13, true, 3, 'y');
ALTER TABLE by_parts SET PARTITIONED BY (year(t), month(t), kk, bucket(4, b), flag);

CREATE TABLE flushed(k VARCHAR, i INTEGER);
ALTER TABLE flushed SET PARTITIONED BY (k);
INSERT INTO flushed VALUES ('a', 1), ('b', 2), (NULL, 3);
DELETE FROM flushed WHERE i = 2;
CALL ducklake_flush_inlined_data('lake', table_name => 'flushed');
INSERT INTO flushed VALUES ('a', 4), ('c', 5);
DELETE FROM flushed WHERE i = 1;

CREATE TABLE many(k INTEGER, v VARCHAR);
ALTER TABLE many SET PARTITIONED BY (k);
INSERT INTO many SELECT n, 'v' || n FROM range(10) AS r(n);
INSERT INTO many SELECT n, 'v' || n FROM range(10, 20) AS r(n);
INSERT INTO many SELECT n, 'v' || n FROM range(20, 30) AS r(n);
INSERT INTO many SELECT n, 'v' || n FROM range(30, 40) AS r(n);
DELETE FROM many WHERE k > 36;
