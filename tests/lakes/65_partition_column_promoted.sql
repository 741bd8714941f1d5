-- the column of a partitioning is promoted: int to bigint, float to double, decimal to a wider one
-- @version 1.1
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE pp(i INTEGER, t TINYINT, d DECIMAL(5,2), v INTEGER);
ALTER TABLE pp SET PARTITIONED BY (i);
INSERT INTO pp SELECT CASE WHEN i % 3 > 0 THEN -i % 3 END, i, i / 4, i FROM range(0, 20) r(i);
ALTER TABLE pp ALTER COLUMN i TYPE BIGINT;
INSERT INTO pp SELECT i % 3 + 3000000000, i, i / 4, i FROM range(20, 40) r(i);
DELETE FROM pp WHERE v IN (1, 21, 3);
ALTER TABLE pp SET PARTITIONED BY (bucket(4, t), d);
INSERT INTO pp SELECT 1, i % 5, i % 3 / 4, i FROM range(40, 60) r(i);
ALTER TABLE pp ALTER COLUMN t TYPE INTEGER;
ALTER TABLE pp ALTER COLUMN d TYPE DECIMAL(20,2);
INSERT INTO pp SELECT 1, i % 5 * 1000000, i % 3 * 1000000000000 + 0.25, i FROM range(60, 80) r(i);
DELETE FROM pp WHERE v IN (2, 22, 41, 61);
UPDATE pp SET d = NULL WHERE v IN (4, 24, 42, 62);
CREATE TABLE pd(t TINYINT, v INTEGER);
ALTER TABLE pd SET PARTITIONED BY (t);
INSERT INTO pd SELECT i % 3, i FROM range(20) r(i);
ALTER TABLE pd ALTER COLUMN t TYPE DOUBLE;
INSERT INTO pd SELECT i % 3 + 0.5, i FROM range(20, 40) r(i);
DELETE FROM pd WHERE v IN (3, 23);
