-- The lake of `polynya demo`: a winter on the Bering Sea, where the eiders live in the open water
-- inside the ice. A satellite measures the ice in a grid, observers count the birds.
-- Inlining is as DuckLake has it by default: commits of up to 10 rows stay in PostgreSQL.
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');

BEGIN;
CALL lake.set_commit_message('mara', 'two schemas, five tables');
CREATE SCHEMA lake.ice;
CREATE SCHEMA lake.birds;
USE lake.ice;
CREATE TABLE stations(station INTEGER, name VARCHAR, latitude DOUBLE, longitude DOUBLE, since DATE);
CREATE TABLE cover(day DATE, cell INTEGER, percent DECIMAL(4, 1));
ALTER TABLE cover SET PARTITIONED BY (year(day), month(day));
USE lake.birds;
CREATE TABLE species(code VARCHAR, english VARCHAR, latin VARCHAR);
CREATE TABLE tags(tag UUID, species VARCHAR, weight DECIMAL(6, 1), fitted DATE, heard TIMESTAMP);
CREATE TABLE flocks(flock BIGINT, seen_at TIMESTAMPTZ, cell INTEGER, species VARCHAR,
    birds INTEGER, place STRUCT(latitude DOUBLE, longitude DOUBLE), doing VARCHAR[]);
COMMIT;

-- Tables whose rows are in PostgreSQL only: no file, and still a table for everyone.
BEGIN;
CALL lake.set_commit_message('mara', 'the stations and the species');
INSERT INTO lake.ice.stations VALUES
    (1, 'St. Lawrence Island', 63.43, -170.28, '1951-06-01'), (2, 'Gambell', 63.78, -171.74, NULL),
    (3, 'Anadyr', 64.73, 177.51, '1894-08-03'), (4, 'Nome', 64.50, -165.41, '1906-12-01');
INSERT INTO lake.birds.species VALUES
    ('SPEI', 'Spectacled Eider', 'Somateria fischeri'), ('KIEI', 'King Eider', 'Somateria spectabilis'),
    ('COEI', 'Common Eider', 'Somateria mollissima'), ('STEI', 'Steller''s Eider', NULL),
    ('LTDU', 'Oldsquaw', 'Clangula hyemalis');
COMMIT;

BEGIN;
CALL lake.set_commit_message('satellite', 'the ice of December');
INSERT INTO lake.ice.cover
SELECT day, cell, CASE WHEN cell BETWEEN 1100 AND 1140 THEN (cell + dayofyear(day)) % 12
    ELSE greatest(0, least(100, 70 + 40 * sin(cell / 300) + (cell * dayofyear(day)) % 97 / 10)) END
FROM range(DATE '2024-12-01', DATE '2025-01-01', INTERVAL 1 DAY) AS d(day), range(4000) AS c(cell);
COMMIT;

BEGIN;
CALL lake.set_commit_message('satellite', 'the ice of January');
INSERT INTO lake.ice.cover
SELECT day, cell, CASE WHEN cell BETWEEN 1100 AND 1140 THEN (cell + dayofyear(day)) % 12
    ELSE greatest(0, least(100, 80 + 30 * sin(cell / 300) + (cell * dayofyear(day)) % 97 / 10)) END
FROM range(DATE '2025-01-01', DATE '2025-02-01', INTERVAL 1 DAY) AS d(day), range(4000) AS c(cell);
COMMIT;

BEGIN;
CALL lake.set_commit_message('observers', 'sixty thousand flocks');
INSERT INTO lake.birds.flocks
SELECT flock, TIMESTAMPTZ '2024-12-01 08:00:00+00' + INTERVAL (flock * 97) SECONDS,
    CAST(1100 + flock * 31 % 41 AS INTEGER), ['SPEI', 'KIEI', 'COEI', 'STEI', NULL][1 + flock * 7919 % 5],
    CAST(flock * 104729 % 3000 AS INTEGER),
    {'latitude': 62 + flock * 373 % 1000 / 1000, 'longitude': -173 + flock * 617 % 1000 / 500},
    ['diving', 'resting', 'preening'][:flock * 13 % 4]
FROM range(1, 60001) AS f(flock);
COMMIT;

BEGIN;
CALL lake.set_commit_message('observers', 'forty birds carry a tag');
INSERT INTO lake.birds.tags
SELECT CAST(md5(CAST(n AS VARCHAR)) AS UUID), ['SPEI', 'KIEI'][1 + n % 2], 1400 + n * 677 % 2000 / 10,
    DATE '2024-09-01' + CAST(n AS INTEGER), TIMESTAMP '2025-01-31 06:00:00' - INTERVAL (n * 977) MINUTES
FROM range(40) AS t(n);
COMMIT;

BEGIN;
CALL lake.set_commit_message('mara', 'cells 7 and 8 were a ship, not ice');
DELETE FROM lake.ice.cover WHERE cell IN (7, 8) AND day < '2025-01-01';
COMMIT;

BEGIN;
CALL lake.set_commit_message('observers', 'three flocks from the ship');
INSERT INTO lake.birds.flocks VALUES
    (60001, '2025-02-07 10:15:00+00', 1117, 'SPEI', 12400,
        {'latitude': 62.61, 'longitude': -172.90}, ['diving', 'resting']),
    (60002, '2025-02-07 10:40:00+00', 1118, 'SPEI', 0, {'latitude': 62.62, 'longitude': NULL}, []),
    (60003, '2025-02-07 11:05:00+00', NULL, NULL, NULL, NULL, NULL);
COMMIT;

BEGIN;
CALL lake.set_commit_message('mara', 'percent is now called concentration');
ALTER TABLE lake.ice.cover RENAME COLUMN percent TO concentration;
COMMIT;

BEGIN;
CALL lake.set_commit_message('mara', 'a second satellite: whose value is it?');
ALTER TABLE lake.ice.cover ADD COLUMN satellite VARCHAR DEFAULT 'Aqua';
COMMIT;

BEGIN;
CALL lake.set_commit_message('satellite', 'the ice of February');
INSERT INTO lake.ice.cover
SELECT day, cell, CASE WHEN cell BETWEEN 1100 AND 1140 THEN (cell + dayofyear(day)) % 12
    ELSE greatest(0, least(100, 85 + 25 * sin(cell / 300) + (cell * dayofyear(day)) % 97 / 10)) END,
    ['Aqua', 'Sentinel'][1 + cell % 2]
FROM range(DATE '2025-02-01', DATE '2025-03-01', INTERVAL 1 DAY) AS d(day), range(4000) AS c(cell);
COMMIT;

BEGIN;
CALL lake.set_commit_message('satellite', 'a cloud on 24 January: that day again');
UPDATE lake.ice.cover SET concentration = concentration / 2, satellite = 'Sentinel'
WHERE day = '2025-01-24';
COMMIT;

BEGIN;
CALL lake.set_commit_message('mara', 'two ships, one flock: counted once');
DELETE FROM lake.birds.flocks WHERE flock IN (60002, 4711);
COMMIT;

BEGIN;
CALL lake.set_commit_message('mara', 'the birds are counted from the photograph');
UPDATE lake.birds.flocks SET birds = 12875 WHERE flock = 60001;
UPDATE lake.birds.flocks SET birds = birds + 1, species = 'SPEI' WHERE flock IN (100, 200);
COMMIT;

BEGIN;
CALL lake.set_commit_message('observers', 'a tag falls silent, two are new');
DELETE FROM lake.birds.tags WHERE tag = CAST(md5('13') AS UUID);
INSERT INTO lake.birds.tags VALUES
    ('00000000-0000-0000-0000-00000000e1de', 'STEI', 790.5, '2025-02-20', NULL),
    ('00000000-0000-0000-0000-00000000e1df', NULL, NULL, NULL, '2025-02-28 23:59:59.999999');
COMMIT;

BEGIN;
CALL lake.set_commit_message('mara', 'a name of today');
UPDATE lake.birds.species SET english = 'Long-tailed Duck' WHERE code = 'LTDU';
COMMIT;

BEGIN;
CALL lake.set_commit_message('mara', 'Gambell is closed, Savoonga opens');
DELETE FROM lake.ice.stations WHERE station = 2;
INSERT INTO lake.ice.stations VALUES (5, 'Savoonga', 63.69, -170.48, '2025-03-01');
COMMIT;

BEGIN;
CALL lake.set_commit_message('observers', 'the first flock of March');
INSERT INTO lake.birds.flocks VALUES (60004, '2025-03-01 09:30:00+00', 1120, 'KIEI', 310,
    {'latitude': 62.70, 'longitude': -172.10}, ['diving', NULL]);
COMMIT;
