-- Defaults of fields in structs, some of which are NULL; of fields in lists; of columns that added files lack.
-- @version 1.1
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE nd(i INTEGER, s STRUCT(a INTEGER, n STRUCT(x VARCHAR)), plain STRUCT(a INTEGER));
INSERT INTO nd SELECT i, CASE WHEN i % 3 = 0 THEN NULL WHEN i % 3 = 1 THEN {'a': NULL, 'n': {'x': 'x' || i}} ELSE {'a': i, 'n': NULL} END, {'a': i} FROM range(100) r(i);
INSERT INTO nd SELECT i, {'a': i, 'n': {'x': 'x'}}, {'a': i} FROM range(100, 110) r(i);
ALTER TABLE nd ADD COLUMN s.c VARCHAR DEFAULT 'it''s';
ALTER TABLE nd ADD COLUMN s.n.y INTEGER DEFAULT 7;
ALTER TABLE nd ADD COLUMN plain.b BOOLEAN DEFAULT true;
INSERT INTO nd VALUES (200, {'a': 1, 'n': {'x': 'y', 'y': 1}, 'c': 'own'}, {'a': 1, 'b': false}), (201, NULL, NULL);
DELETE FROM nd WHERE i IN (1, 105);
ALTER TABLE nd ADD COLUMN s.m STRUCT(q INTEGER);
ALTER TABLE nd ADD COLUMN s.m.z INTEGER DEFAULT 8;
ALTER TABLE nd RENAME COLUMN s.c TO d;
CREATE TABLE nl(i INTEGER, l STRUCT(a INTEGER)[]);
INSERT INTO nl SELECT i, CASE WHEN i % 2 = 0 THEN [{'a': i}] END FROM range(10) r(i);
ALTER TABLE nl ADD COLUMN l.element.b INTEGER DEFAULT 9;
CREATE TABLE na(i INTEGER, s STRUCT(a INTEGER, b VARCHAR), l STRUCT(t TINYINT)[]);
COPY (SELECT i::INTEGER AS I, CASE WHEN i % 2 = 0 THEN {'B': 'b' || i, 'A': i::INTEGER} END AS s, [{'t': i::TINYINT}] AS L, (i % 3)::INTEGER AS part, 'r ' || (i % 2) AS region FROM range(12) r(i)) TO '{{DATA_PATH}}_ext/na' (FORMAT parquet, PARTITION_BY (part, region));
ALTER TABLE na ADD COLUMN part BIGINT;
ALTER TABLE na ADD COLUMN region VARCHAR DEFAULT 'none';
CALL ducklake_add_data_files('lake', 'na', '{{DATA_PATH}}_ext/na/**/*.parquet', hive_partitioning => true);
COPY (SELECT i::INTEGER AS i FROM range(20, 25) r(i)) TO '{{DATA_PATH}}_ext/few.parquet';
CALL ducklake_add_data_files('lake', 'na', '{{DATA_PATH}}_ext/few.parquet', allow_missing => true);
ALTER TABLE na ADD COLUMN s.c INTEGER DEFAULT 3;
ALTER TABLE na ADD COLUMN n DECIMAL(9, 2) DEFAULT 1.25;
DELETE FROM na WHERE i IN (3, 21);
INSERT INTO na VALUES (30, {'a': 1, 'b': 'own', 'c': 4}, NULL, 5, 'own', 2.5);
