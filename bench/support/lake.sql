-- The real lake that all benchmark catalogs grow from: 10 columns, 8 files of 1000 rows of one day
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE events(id BIGINT, moment TIMESTAMP, day DATE, user_id BIGINT, country VARCHAR, page VARCHAR, amount DECIMAL(12,2), seconds DOUBLE, score INTEGER, active BOOLEAN);
ALTER TABLE events SET PARTITIONED BY (day);
-- @repeat 8
INSERT INTO events SELECT i, TIMESTAMP '2026-01-01' + to_seconds(i), DATE '2026-01-01', hash(i, {{i}}) % 100000, ['DE', 'FI', 'NO', 'SE'][1 + i % 4], '/page/' || hash(i, {{i}}) % 10000, (hash(i, {{i}}) % 1000000) / 100, (hash(i, {{i}}) % 10000) / 7.0, (hash(i, {{i}}) % 100)::INT, i % 3 = 0 FROM range(1000) t(i);
