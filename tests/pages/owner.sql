-- The lake of a shop: what an owner asks about, and names that no page may take for markup.
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 10);
BEGIN;
CREATE SCHEMA lake.shop;
CREATE TABLE lake.shop.orders(id BIGINT NOT NULL, day DATE, customer VARCHAR, amount DECIMAL(12, 2), took INTERVAL);
ALTER TABLE lake.shop.orders SET PARTITIONED BY (day);
COMMENT ON TABLE lake.shop.orders IS 'One row for each <order>';
COMMENT ON COLUMN lake.shop.orders.amount IS 'in euros';
CALL lake.set_commit_message('ada', 'the first table');
COMMIT;
-- @repeat 4
BEGIN; INSERT INTO lake.shop.orders SELECT {{i}} * 1000 + i, DATE '2026-11-01' + {{i}}, 'c' || i % 7, i, INTERVAL (i) SECOND FROM range(20 * {{i}}) AS r(i); CALL lake.set_commit_message('loader', 'day {{i}}'); COMMIT;
BEGIN;
DELETE FROM lake.shop.orders WHERE customer = 'c3';
CALL lake.set_commit_message('ada', '<b>test orders</b> "removed"');
COMMIT;
ALTER TABLE lake.shop.orders ADD COLUMN priority INTEGER DEFAULT 3;
CREATE TABLE lake.shop.customers(id VARCHAR, home STRUCT(street VARCHAR, city VARCHAR), tags VARCHAR[]);
INSERT INTO lake.shop.customers VALUES ('c1', {'street': 'Quay', 'city': 'Nome'}, ['new']), ('c2', NULL, NULL);
CREATE VIEW lake.shop.large AS SELECT * FROM lake.shop.orders WHERE amount > 50;
CREATE SCHEMA lake."<script>alert(1)</script>";
CREATE TABLE lake."<script>alert(1)</script>"."a/b & ""c"" ~%2F'"("<img src=x onerror=alert(1)>" INTEGER, "]]>" VARCHAR);
INSERT INTO lake."<script>alert(1)</script>"."a/b & ""c"" ~%2F'" SELECT i, '<i>' || i FROM range(20) AS r(i);
CREATE TABLE lake.shop.intervals(lasted INTERVAL);
