-- Texts inside of a STRUCT, LIST or MAP while they are inlined, and after a flush: DuckLake itself
-- loses quotes there, and the flush makes the loss last.
-- @version 1.1
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 10);
USE lake;
CREATE TABLE sq(k INTEGER, s STRUCT(x VARCHAR, n STRUCT(y VARCHAR)), l VARCHAR[], m MAP(VARCHAR, VARCHAR));
INSERT INTO sq VALUES
  (1, {'x': 'it''s', 'n': {'y': 'q"uo'}}, ['it''s', 'q"uo'], MAP {'it''s': 'q"uo'}),
  (2, {'x': '', 'n': {'y': 'NULL'}}, ['', 'NULL', NULL], MAP {'': 'NULL'});
INSERT INTO sq VALUES
  (3, {'x': ' a ', 'n': {'y': 'a, b'}}, [' a ', 'a, b', '[x]'], MAP {'a=b': '{''x'': 1}'}),
  (4, {'x': NULL, 'n': NULL}, [], MAP {});
DELETE FROM sq WHERE k = 2;
CALL ducklake_flush_inlined_data('lake');
INSERT INTO sq VALUES (5, {'x': '{''x'': 1}', 'n': {'y': 'back\slash'}}, ['''', '"', '\'], MAP {'''': '"'});
