-- names: dots, slashes, quotes, spaces, percent, unicode, reserved words, long, looks like a path
-- @version 1.0
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
USE lake;
CREATE SCHEMA "a.b/c";
CREATE SCHEMA "select";
CREATE SCHEMA "ünï 🦆 %2F";
CREATE TABLE "a.b/c"."t.x/y z"("a.b" INTEGER, "x/y" VARCHAR, "q""uo'te" DOUBLE, "sp ace" DATE, "per%20cent" INTEGER, "back\slash" INTEGER, "🦆ü" VARCHAR, "select" INTEGER, "1st" INTEGER, "comma,colon:" INTEGER, "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn" INTEGER);
INSERT INTO "a.b/c"."t.x/y z" VALUES (1,'s',1.5,'2024-01-01',2,3,'duck',4,5,6,7);
INSERT INTO "a.b/c"."t.x/y z" SELECT i, 'f'||i, i/2, DATE '2024-01-01' + i::INT, i, i, 'd'||i, i, i, i, i FROM range(100,120) r(i);
DELETE FROM "a.b/c"."t.x/y z" WHERE "a.b" IN (1, 101);
UPDATE "a.b/c"."t.x/y z" SET "q""uo'te" = -1 WHERE "select" = 102;
ALTER TABLE "a.b/c"."t.x/y z" SET PARTITIONED BY ("per%20cent", "🦆ü");
INSERT INTO "a.b/c"."t.x/y z" SELECT i, 'p'||i, i/2, NULL, i % 2, i, CASE WHEN i % 3 > 0 THEN 'a/b=' || i % 3 END, i, i, i, i FROM range(200,220) r(i);
DELETE FROM "a.b/c"."t.x/y z" WHERE "1st" = 203;
ALTER TABLE "a.b/c"."t.x/y z" RENAME COLUMN "back\slash" TO "../up";
CREATE TABLE "select"."from"("table" INTEGER, "where" STRUCT("order" INTEGER, "group" VARCHAR, "d.o t" INTEGER)[], "m.p" MAP(VARCHAR, STRUCT("k y" INTEGER)));
INSERT INTO "select"."from" VALUES (1, [{'order': 1, 'group': 'g', 'd.o t': 5}], MAP {'k': {'k y': 1}});
INSERT INTO "select"."from" SELECT i, [{'order': i, 'group': 'g'||i, 'd.o t': -i}, NULL], MAP {'k'||i: {'k y': i}} FROM range(20,40) r(i);
CREATE TABLE "ünï 🦆 %2F"."nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn"("nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn" INTEGER);
INSERT INTO "ünï 🦆 %2F"."nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn" SELECT i FROM range(12) r(i);
CREATE TABLE "ünï 🦆 %2F"."created_table:""x"",inserted_into_table:1"(i INTEGER);
INSERT INTO "ünï 🦆 %2F"."created_table:""x"",inserted_into_table:1" VALUES (1);
