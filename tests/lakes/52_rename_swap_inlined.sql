-- two columns swap their names, with inlined rows, file rows and a transaction in between
-- @version 1.0
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
USE lake;
CREATE TABLE sw(a INTEGER, b INTEGER, s STRUCT(x INTEGER, y INTEGER));
INSERT INTO sw VALUES (1, 10, {'x': 1, 'y': 10});
INSERT INTO sw SELECT i, i*10, {'x': i, 'y': i*10} FROM range(100, 120) r(i);
BEGIN;
ALTER TABLE sw RENAME COLUMN a TO tmp;
ALTER TABLE sw RENAME COLUMN b TO a;
ALTER TABLE sw RENAME COLUMN tmp TO b;
COMMIT;
INSERT INTO sw VALUES (20, 2, {'x': 2, 'y': 20});
ALTER TABLE sw RENAME COLUMN s.x TO z;
ALTER TABLE sw RENAME COLUMN s.y TO x;
ALTER TABLE sw RENAME COLUMN s.z TO y;
INSERT INTO sw VALUES (30, 3, {'x': 30, 'y': 3});
DELETE FROM sw WHERE b = 1;
UPDATE sw SET a = -1 WHERE b = 2;
UPDATE sw SET a = -2 WHERE b = 101;
ALTER TABLE sw DROP COLUMN a;
ALTER TABLE sw RENAME COLUMN b TO a;
ALTER TABLE sw ADD COLUMN b INTEGER DEFAULT 7;
INSERT INTO sw VALUES (4, {'x': 40, 'y': 4}, 400);
CALL ducklake_flush_inlined_data('lake');
INSERT INTO sw VALUES (5, {'x': 50, 'y': 5}, 500);
