-- two live tables in one directory, each with deletes, views and macros in between
-- @version 1.0
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE one(i INTEGER, s VARCHAR);
INSERT INTO one SELECT i, 'first' FROM range(20) r(i);
DELETE FROM one WHERE i = 1;
ALTER TABLE one RENAME TO two;
CREATE VIEW one_view AS SELECT * FROM two;
CREATE TABLE one(s VARCHAR, i INTEGER);
INSERT INTO one SELECT 'second', i FROM range(20) r(i);
CREATE MACRO plus(a) AS a + 1;
DELETE FROM one WHERE i = 2;
DELETE FROM two WHERE i IN (3, 4);
DROP VIEW one_view;
INSERT INTO two SELECT i, 'first' FROM range(20, 40) r(i);
ALTER TABLE two RENAME TO three;
CREATE TABLE two(i BIGINT);
INSERT INTO two SELECT i FROM range(10) r(i);
CREATE VIEW two_view(x) AS SELECT i FROM two;
DELETE FROM two WHERE i = 5;
DELETE FROM three WHERE i IN (6, 26);
CALL ducklake_merge_adjacent_files('lake');
DROP TABLE two;
ALTER TABLE three RENAME TO two;
ALTER TABLE one RENAME TO three;
ALTER TABLE two RENAME TO one;
DELETE FROM one WHERE i = 7;
DELETE FROM three WHERE i = 7;
