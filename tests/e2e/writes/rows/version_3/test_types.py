"""Columns of types that need format version 3: clients create and fill them, natively read.

The twin in memory has the same rows and types, and native DuckLake changes both afterwards.
"""

import json
from collections import Counter
from contextlib import closing

import pyarrow as pa
import pytest
from polynya_local.clients import duckdb

from tests.support.writes.hand_made import HandMade, parquet
from tests.support.writes.starts import DO_NOT_INLINE

pytestmark = pytest.mark.versions("1.1", "1.0")

MADE = (
    "CREATE TABLE {t} (id BIGINT, s VARCHAR, t TIMESTAMP_NS, g GEOMETRY, "
    "n STRUCT(t TIMESTAMP_NS, g GEOMETRY))"
)
ROWS = """INSERT INTO {t} VALUES
  (1, 'a', '2024-01-01 00:00:00.123456789', 'POINT (1.1 -2.25)',
   {{'t': '1969-12-31 23:59:59.999999999', 'g': 'POINT (7 8)'}}),
  (2, NULL, '1677-09-22 00:00:00', 'LINESTRING Z (0 0 1, 5 6 -7)', {{'t': NULL, 'g': NULL}}),
  (3, 'c', NULL, NULL, NULL)"""
MORE = """INSERT INTO {t} VALUES
  (4, 'd', '2262-04-11 23:00:00.000000001', 'POLYGON ((0 0, 9 0, 9 9, 0 0))', NULL)"""
CHANGES = (
    ROWS,
    MORE,
    "UPDATE {t} SET t = '2024-06-01 00:00:00.000000001', g = 'POINT (3 4)' WHERE id = 3",
    "DELETE FROM {t} WHERE id = 2",
)
NATIVE = (
    "INSERT INTO {t} VALUES (5, 'e', '2024-01-01 00:00:00.000000001', 'POINT M (1 2 3)', NULL)",
    "UPDATE {t} SET t = '2000-01-01 00:00:00.5', g = NULL WHERE id = 1",
    "CALL ducklake_merge_adjacent_files('lake', '{name}')",
)
STATS = """
SELECT f.begin_snapshot, s.column_id, s.value_count, s.null_count, s.min_value, s.max_value,
  s.extra_stats
FROM ducklake_file_column_stats AS s JOIN ducklake_data_file AS f USING (data_file_id)
JOIN ducklake_table AS t ON t.table_id = s.table_id WHERE t.table_name = :name ORDER BY 1, 2"""
OF_TABLE = """
SELECT s.column_id, s.contains_null, s.min_value, s.max_value, s.extra_stats
FROM ducklake_table_column_stats AS s JOIN ducklake_table USING (table_id)
WHERE table_name = :name AND column_id > 2 ORDER BY 1"""


@pytest.fixture(scope="module")
def client(served):
    where = served[1].catalog_uri, served[1].warehouse, served[1].s3_endpoint
    with closing(duckdb.open(*where)) as found:
        yield found


def created(twin, client, columns=MADE):
    """A table of the client's, and its twin."""
    twin.con.execute(DO_NOT_INLINE)
    sql = f"{columns} WITH ('format-version' = '3')".format(t=f"ice.main.{twin.name}")
    twin.changes(columns, lambda: client.query(sql))


def change(twin, client, statements):
    for sql in statements:
        of = sql.replace("{t}", f"ice.main.{twin.name}").replace("{{", "{").replace("}}", "}")
        twin.changes(sql, lambda of=of: client.query(of))


def check_texts(twin, client):
    """The rows with all nanoseconds, natively and through Iceberg."""
    sql = "SELECT COLUMNS(*)::VARCHAR FROM {}"
    expected = Counter(twin.con.execute(sql.format(twin.memory)).fetchall())
    assert Counter(twin.con.execute(sql.format(twin.source)).fetchall()) == expected
    found = client.query(sql.format(f"ice.main.{twin.name}"))
    assert Counter(zip(*(c.to_pylist() for c in found.columns), strict=True)) == expected


def stats(twin, sql, name=None):
    return twin.lake.database.run(sql, name=name or twin.name)


def test_duckdb_writes_nanoseconds_and_geometries(twin, client):
    created(twin, client)
    for statement in CHANGES:
        change(twin, client, [statement])
        check_texts(twin, client)
    twin.native(*NATIVE)
    check_texts(twin, client)
    twin.check_native()
    assert twin.pyiceberg.load_table(f"main.{twin.name}").format_version == 3


DEFAULT = "TIMESTAMP_NS DEFAULT '{}'::TIMESTAMP_NS"
OF_NEW_ROWS = f"CREATE TABLE {{t}} (id BIGINT, t {DEFAULT.format('1969-12-31 23:59:59.9999999')})"
WITH_DEFAULTS = (
    "INSERT INTO {t} VALUES (1, DEFAULT)",
    "INSERT INTO {t} (id) VALUES (2)",
    f"ALTER TABLE {{t}} ADD COLUMN n {DEFAULT.format('2024-01-02 03:04:05.000000006')}",
    "INSERT INTO {t} (id, t) VALUES (3, NULL)",
    "ALTER TABLE {t} ALTER COLUMN n SET DEFAULT '2024-01-02 03:04:05.000000007'::TIMESTAMP_NS",
    "INSERT INTO {t} (id) VALUES (4)",
    "DELETE FROM {t} WHERE id = 2",
)


def test_defaults_of_nanoseconds_are_those_of_new_rows_and_of_older_files(twin, client):
    created(twin, client, OF_NEW_ROWS)
    for statement in WITH_DEFAULTS:
        change(twin, client, [statement])
        check_texts(twin, client)
    twin.native("INSERT INTO {t} (id) VALUES (5)", "UPDATE {t} SET t = NULL WHERE id = 1")
    check_texts(twin, client)
    twin.native("CALL ducklake_merge_adjacent_files('lake', '{name}')")
    check_texts(twin, client)


def test_statistics_are_those_of_native_ducklake(twin, client):
    created(twin, client)
    change(twin, client, (ROWS, MORE))
    native = f"{twin.name}_native"
    for sql in (MADE, ROWS, MORE):
        twin.con.execute(sql.format(t=f"lake.main.{native}"))
    of_client, of_native = ([row[1:] for row in stats(twin, STATS, n)] for n in (twin.name, native))
    assert of_client == of_native
    assert stats(twin, OF_TABLE) == stats(twin, OF_TABLE, native)


OUTWARDS = "INSERT INTO {t} VALUES (1, 'POINT (0.1 1.00000049)'), (2, 'POINT (-0.1 -1.00000049)')"


def test_a_box_is_not_rounded_inwards(twin, client):
    """DuckLake itself rounds 1.00000049 to 1.000000."""
    created(twin, client, "CREATE TABLE {t} (id BIGINT, g GEOMETRY)")
    change(twin, client, [OUTWARDS])
    [text] = [row[-1] for row in stats(twin, STATS) if row[-1]]
    box = json.loads(text)["bbox"]
    assert (box["xmin"], box["xmax"]) == (-0.1, 0.1)
    assert (box["ymin"], box["ymax"]) == (-1.000001, 1.000001)


REFUSED = {
    "TIMESTAMP_NS": "needs format version 3: set the table's property format-version to 3",
    "GEOMETRY": "needs format version 3: set the table's property format-version to 3",
    "VARIANT": "needs format version 3: set the table's property format-version to 3",
}


@pytest.mark.parametrize("column_type", REFUSED)
def test_version_2_has_no_such_type(twin, client, column_type):
    before = twin.newest()
    sql = f"CREATE TABLE ice.main.{twin.name} (id BIGINT, c {column_type})"
    with pytest.raises(RuntimeError, match=REFUSED[column_type]):
        client.query(sql)
    assert twin.newest() == before


SCHEMAS = {
    "geography": "no geography",
    "geometry(EPSG:3857)": "no coordinate reference system but OGC:CRS84",
    "fixed[3]": "no fixed length",
    "in a struct": "a variant within another column",
}


def test_what_ducklake_cannot_hold_is_refused(twin):
    before = twin.newest()
    for name, sentence in SCHEMAS.items():
        inner = {"id": 3, "name": "v", "type": "variant", "required": False}
        nested = {"type": "struct", "fields": [inner]}
        column = {"id": 2, "name": "c", "type": nested if "in a" in name else name}
        id_column = {"id": 1, "name": "id", "type": "long", "required": False}
        request = {
            "name": twin.name,
            "schema": {"type": "struct", "fields": [id_column, column | {"required": False}]},
            "properties": {"format-version": "3"},
        }
        url = f"{twin.pyiceberg.uri}/v1/lake/namespaces/main/tables"
        answer = twin.pyiceberg._session.post(url, json=request)
        assert answer.status_code == 400, name
        assert sentence in answer.json()["error"]["message"]
    assert twin.newest() == before


def test_duckdb_1_5_writes_no_variants(twin, client):
    """Other clients would misread them."""
    created(twin, client, "CREATE TABLE {t} (id BIGINT, s VARCHAR, v VARIANT)")
    before = twin.newest()
    with pytest.raises(RuntimeError, match="other clients misread the variants"):
        client.query(f"INSERT INTO ice.main.{twin.name} VALUES (1, 'a', 42::VARIANT)")
    assert twin.newest() == before
    twin.native("INSERT INTO {t} VALUES (1, 'a', 42::VARIANT)")
    change(twin, client, [])
    # Native DuckLake wrote a variant that other clients misread: the column is hidden.
    sql = "INSERT INTO {t} (id, s) VALUES (2, 'b')"
    twin.changes(sql, lambda: client.query(sql.format(t=f"ice.main.{twin.name}")))
    twin.check_native()


VARIANTS = (
    'INSERT INTO {t} VALUES (1, \'a\', parse_json(\'{{"a": "x", "b": 1}}\')), (2, NULL, NULL), '
    "(3, 'c', parse_json('[1, null]'))",
    "UPDATE {t} SET v = parse_json('7') WHERE id = 3",
    "DELETE FROM {t} WHERE id = 2",
)
IN_DUCKDB = {'parse_json(\'{{"a": "x", "b": 1}}\')': "{{'a': 'x', 'b': 1::TINYINT}}::VARIANT"}
IN_DUCKDB |= {"parse_json('[1, null]')": "[1::TINYINT, NULL]::VARIANT"}
IN_DUCKDB |= {"parse_json('7')": "7::TINYINT::VARIANT"}


@pytest.mark.slow
@pytest.mark.spark
def test_spark_writes_variants(twin, spark):
    twin.con.execute(DO_NOT_INLINE)
    made = "CREATE TABLE {t} (id BIGINT, s STRING, v VARIANT)"
    version_3 = " USING iceberg TBLPROPERTIES ('format-version' = '3')"
    twin.changes(made.replace("STRING", "VARCHAR"), lambda: spark(twin, made + version_3))
    for sql in VARIANTS:
        other = sql
        for text, literal in IN_DUCKDB.items():
            other = other.replace(text, literal)
        twin.changes(other, lambda sql=sql: spark(twin, sql).collect())
    twin.check_native()
    shred = "ALTER TABLE {t} SET TBLPROPERTIES ('write.parquet.shred-variants' = 'true')"
    with pytest.raises(Exception, match="shred-variants must be false"):
        spark(twin, shred)
    twin.native("INSERT INTO {t} VALUES (9, 'i', 9::VARIANT)", "UPDATE {t} SET v = v")
    twin.check_native()
    assert [row.asDict() for row in spark(twin, "SELECT * FROM {t} WHERE id = 9").collect()] == [
        {"id": 9, "s": "i"}
    ]


def test_a_variant_of_an_unknown_writer_is_refused(twin, client, served, moto):
    created(twin, client, "CREATE TABLE {t} (id BIGINT, s VARCHAR, v VARIANT)")
    variant = pa.array([{"metadata": b"\x01\x00\x00", "value": b"\x0c\x2a"}])
    rows = {("id", 1): pa.array([1]), ("v", 3): variant}
    status, message = HandMade(served[1], moto).commit(twin.name, parquet(rows))
    assert status == 400
    assert "misread the variants of the program that wrote it" in message
