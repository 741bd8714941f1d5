"""Files of clients have a value for each key, and native DuckLake merges and rewrites them.

DuckLake 1.1 wants as many values as keys, and 1.0 one directory for all files that it merges: so in
a catalog of 1.0 the files of each kind of directories have a partitioning of their own.
"""

import itertools
from contextlib import closing

import pyarrow as pa
import pytest
from polynya.ducklake import queries
from polynya.storage.aws import AwsSettings
from polynya_local.clients import duckdb
from polynya_local.reports import conditions
from polynya_local.reports.generator import Generator, tables_of
from polynya_local.reports.table_facts import table_facts
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, LongType, NestedField, StringType

from tests.support.catalog_versions import to_1_1
from tests.support.servers.in_process import bridge
from tests.support.writes.starts import LAKE
from tests.support.writes.writable import client_of, set_up_writes

pytestmark = pytest.mark.versions("1.0")

COLUMNS = "(id BIGINT, s VARCHAR, p INTEGER, t TIMESTAMP)"
ROWS = (
    "SELECT i AS id, ['a', 'a b/c', NULL][1 + i % 3] AS s, CAST(i % 3 AS INTEGER) AS p, "
    "TIMESTAMP '2024-01-30' + INTERVAL (i % 3) DAY AS t FROM range({}, {}) AS r(i)"
)
KEYS = {
    "identity": "p",
    "texts": "s",
    "buckets": "bucket(4, p), s",
    "days": "year(t), month(t), day(t)",
}
VALUES = """
SELECT f.data_file_id, count(v.data_file_id) - (
  SELECT count(*) FROM ducklake_partition_column AS k WHERE k.partition_id = f.partition_id)
FROM ducklake_data_file AS f LEFT JOIN ducklake_file_partition_value AS v USING (data_file_id)
WHERE f.partition_id IS NOT NULL GROUP BY f.data_file_id, f.partition_id"""
LIVE = """
SELECT f.partition_id, count(*)
FROM ducklake_data_file AS f JOIN ducklake_table AS t USING (table_id)
WHERE t.table_name = '{}' AND f.end_snapshot IS NULL GROUP BY 1 ORDER BY 1"""


def rows(first: int, last: int) -> pa.Table:
    with closing(duckdb.connect()) as con:
        return con.execute(ROWS.format(first, last)).to_arrow_table()


WRITERS = ("ducklake", "pyiceberg", "duckdb")


def insert(twin, bridge, writer: str, number: int) -> None:
    """One row for each partition of `s`, `p` and `t`."""
    first, last = number * 3, number * 3 + 3
    sql = f"INSERT INTO {{t}} {ROWS.format(first, last)}"
    if writer == "ducklake":
        twin.native(sql)
    elif writer == "pyiceberg":
        twin.changes(sql, lambda: twin.table().append(rows(first, last)))
    else:
        with closing(duckdb.open(bridge.catalog_uri, "lake", bridge.s3_endpoint)) as client:
            query = sql.format(t=f"ice.main.{twin.name}")
            twin.changes(sql, lambda: client.query(query))


def other_specs(one, name: str):
    """What the page and `doctor` say of files that are partitioned in another way than new ones."""
    generator = Generator(one.database.url, one.metadata_schema, AwsSettings.from_s3_endpoint(None))

    def match(con):
        lake = queries.lake().run(con)
        [pair] = [pair for pair in tables_of(con, lake) if pair[1].table_name == name]
        return conditions.other_specs(table_facts(generator.open_table(con, lake, *pair)))

    with closing(generator.database):
        return generator.read(match)


@pytest.mark.slow(but=["[ducklake-pyiceberg-duckdb-days]"])
@pytest.mark.parametrize("keys", KEYS)
@pytest.mark.parametrize("writers", [*itertools.permutations(WRITERS)], ids="-".join)
def test_native_ducklake_merges_files_of_all_writers(twin, served, keys, writers):
    one, bridge, _ = served
    twin.native(f"CREATE TABLE {{t}} {COLUMNS}")
    twin.native(f"ALTER TABLE {{t}} SET PARTITIONED BY ({KEYS[keys]})")
    for number, writer in enumerate([*writers, *writers]):
        insert(twin, bridge, writer, number)
    assert {n for _, n in one.database.run(VALUES)} == {0}
    assert other_specs(one, twin.name) is None
    before = dict(one.database.run(LIVE.format(twin.name)))
    twin.native("CALL ducklake_merge_adjacent_files('lake', '{name}')")
    after = dict(one.database.run(LIVE.format(twin.name)))
    # Each writer has written two files for each partition, into one directory; two writers may
    # name it alike.
    assert after.keys() == before.keys()
    assert all(after[partition_id] <= files // 2 for partition_id, files in before.items())
    twin.check()
    twin.native("DELETE FROM {t} WHERE id % 2 = 0")
    twin.native("CALL ducklake_rewrite_data_files('lake', '{name}', delete_threshold => 0)")
    assert {n for _, n in one.database.run(VALUES)} == {0}
    twin.check()


CURRENT = "SELECT partition_id FROM ducklake_partition_info WHERE end_snapshot IS NULL"


def test_in_a_catalog_of_1_1_there_is_one_partitioning(lake, moto):
    """DuckLake merges files whatever their directories; DuckDB 1.5.5 cannot read it any more."""
    one = set_up_writes(lake.write("values_of_1_1", LAKE))
    key = PartitionSpec(PartitionField(3, 1000, IdentityTransform(), "p"))
    columns = (("id", LongType()), ("s", StringType()), ("p", IntegerType()))
    fields = [NestedField(n, name, type_) for n, (name, type_) in enumerate(columns, 1)]
    to_1_1(one)
    with bridge(one, moto, writes=True) as served, closing(client_of(served)) as catalog:
        table = catalog.create_table("main.t", Schema(*fields), partition_spec=key)
        table.append(rows(0, 6).select(["id", "s", "p"]))
    assert {n for _, n in one.database.run(VALUES)} == {0}
    assert [[id_] for id_, _ in one.database.run(LIVE.format("t"))] == one.database.run(CURRENT)
