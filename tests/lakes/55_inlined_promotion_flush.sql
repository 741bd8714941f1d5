-- rows inlined in a narrow type, promoted, then flushed: the file begins before the promotion
-- @version 1.1
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
USE lake;
CREATE TABLE pf(i INTEGER, f FLOAT, d DECIMAL(4,1), t TINYINT);
INSERT INTO pf VALUES (1, 0.1, 1.5, 1), (-2147483648, '-0.0', -999.9, -128);
INSERT INTO pf VALUES (2, 'nan', NULL, NULL);
ALTER TABLE pf ALTER COLUMN i TYPE BIGINT;
ALTER TABLE pf ALTER COLUMN f TYPE DOUBLE;
INSERT INTO pf VALUES (3000000000, 0.1, 3.5, 3);
ALTER TABLE pf ALTER COLUMN d TYPE DECIMAL(20,1);
ALTER TABLE pf ALTER COLUMN t TYPE INTEGER;
INSERT INTO pf VALUES (4, 1e300, 1234567890123456789.5, 2000000000);
CALL ducklake_flush_inlined_data('lake');
INSERT INTO pf VALUES (5, 5, 5, 5);
DELETE FROM pf WHERE i IN (1, 3000000000);
CALL ducklake_flush_inlined_data('lake');
