-- fields of structs, also in lists and maps, added, dropped, renamed and promoted over inlined rows
-- @version 1.0
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
USE lake;
CREATE TABLE st(i INTEGER, s STRUCT(a INTEGER, b VARCHAR, n STRUCT(p INTEGER, q VARCHAR)), l STRUCT(x INTEGER, y VARCHAR)[], m MAP(VARCHAR, STRUCT(k INTEGER)));
INSERT INTO st VALUES (1, {'a': 1, 'b': 'it''s "b", {}', 'n': {'p': 1, 'q': NULL}}, [{'x': 1, 'y': 'y,1'}, NULL], MAP {'k=1': {'k': 1}});
INSERT INTO st VALUES (2, NULL, [], MAP {}), (3, {'a': NULL, 'b': NULL, 'n': NULL}, [], MAP {});
ALTER TABLE st ADD COLUMN s.c DOUBLE;
INSERT INTO st VALUES (4, {'a': 4, 'b': 'b4', 'n': {'p': 4, 'q': 'q'}, 'c': 4.5}, [{'x': 4, 'y': NULL}], MAP {'z': NULL});
ALTER TABLE st ADD COLUMN s.n.r INTEGER;
ALTER TABLE st ADD COLUMN l.element.z INTEGER;
ALTER TABLE st ADD COLUMN m.value.w VARCHAR;
INSERT INTO st VALUES (5, {'a': 5, 'b': 'b5', 'n': {'p': 5, 'q': 'q', 'r': 55}, 'c': 5.5}, [{'x': 5, 'y': 'y', 'z': 55}, {'x': NULL, 'y': NULL, 'z': NULL}], MAP {'five': {'k': 5, 'w': 'w'}});
ALTER TABLE st DROP COLUMN s.b;
ALTER TABLE st RENAME COLUMN s.a TO b;
ALTER TABLE st DROP COLUMN l.element.x;
ALTER TABLE st RENAME COLUMN s.n.q TO p2;
ALTER TABLE st ALTER COLUMN s SET DATA TYPE STRUCT(b BIGINT, n STRUCT(p INTEGER, p2 VARCHAR, r INTEGER), c DOUBLE);
INSERT INTO st VALUES (6, {'b': 6000000000, 'n': {'p': 6, 'p2': 'q', 'r': 66}, 'c': 6.5}, [{'y': 'y', 'z': 66}], MAP {'six': {'k': 6, 'w': 'w'}});
UPDATE st SET s = {'b': 11, 'n': NULL, 'c': 1} WHERE i = 1;
INSERT INTO st SELECT i, {'b': i, 'n': {'p': i, 'p2': 'q', 'r': i}, 'c': i}, [{'y': 'y', 'z': i}], MAP {'f': {'k': i, 'w': 'w'}} FROM range(100, 112) r(i);
ALTER TABLE st ADD COLUMN s.a VARCHAR;
DELETE FROM st WHERE i IN (4, 103);
CALL ducklake_flush_inlined_data('lake');
INSERT INTO st VALUES (7, {'b': 7, 'n': NULL, 'c': NULL, 'a': 'again'}, [NULL], MAP {});
