"""Each rule that rows of a catalog should keep is broken, in a table of its own.

What may be wrong in the rows of a file is left out of manifests and plans, so that clients read the
rows that the table had before; what nobody can read refuses that table, by a sentence. No other
table notices.
"""

import re
from collections.abc import Iterator
from contextlib import closing
from typing import NamedTuple

import pyarrow as pa
import pytest
from polynya_local.clients import pyiceberg
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import attach
from pyiceberg.expressions import BooleanExpression, EqualTo, IsNull, Not
from pyiceberg.manifest import ManifestContent
from pyiceberg.table import ManifestGroupPlanner, Table

from tests.differential.test_claims_of_others import MODE, SETTINGS, matching, rows_of
from tests.differential.test_filters import predicates, texts
from tests.support import rest
from tests.support.servers import in_process

pytestmark = pytest.mark.slow  # half of the rules are also in CI: test_claims_of_others.py

MOST = 5
"""Values of each column with which filters are made."""

ATTACH = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
"""
TABLE = """
CREATE TABLE {0}(id INTEGER, n BIGINT, f DOUBLE, ts TIMESTAMP, d DATE, s VARCHAR, k VARCHAR);
ALTER TABLE {0} SET PARTITIONED BY (s, year(ts), month(ts), d, bucket(4, k));
"""
ROWS = """
INSERT INTO {0} VALUES
  (1, 1, 1.5, '2020-01-01 01:02:03.456789', '2020-01-01', 'a', 'x'),
  (2, 5, 'nan', '2020-01-31 23:59:59.999999', '2020-01-01', 'a', 'x'),
  (3, NULL, NULL, NULL, NULL, NULL, NULL),
  (4, 9, -2.5, '2021-07-01 00:00:00', '2021-07-01', 'b', 'y'),
  (5, NULL, 0.0, '2021-07-02 03:04:05.000001', '2021-07-01', 'b', 'y');
"""
CHANGES = """
DELETE FROM {0} WHERE id = 5;
INSERT INTO {0} VALUES (6, 7, 7.5, '2021-07-02 03:04:05', '2021-07-01', 'b', 'y');
"""
NAMES = ("id", "n", "f", "ts", "d", "s", "k")
ID, N, F, TS, D, S, K = range(1, 8)
"""The ids of the columns."""

STATS = "UPDATE ducklake_file_column_stats SET {} WHERE table_id = {{t}} AND column_id = {}"
VALUE = "UPDATE ducklake_file_partition_value SET {} WHERE table_id = {{t}} AND {}"
FILES = "UPDATE ducklake_data_file SET {} WHERE table_id = {{t}}"
COLUMN = "UPDATE ducklake_column SET {} WHERE table_id = {{t}} AND {}"
OF_B = """data_file_id = (SELECT min(data_file_id) FROM ducklake_file_partition_value
  WHERE table_id = {t} AND partition_value = 'b')"""
AS_OTHERS = "column_size_bytes = 0"
"""Nobody has seen the values: what programs write that take the statistics from elsewhere."""

COPY = """
CREATE TEMP TABLE c AS SELECT * FROM {0} WHERE table_id = {{t}} AND {1} LIMIT 1;
UPDATE c SET {2};
INSERT INTO {0} SELECT * FROM c;
DROP TABLE c"""
"""Another row of a table of the catalog, which differs from one that is there."""

RIGHT = {
    # Partition values: of each key one, of a partitioning that exists.
    "no_value_of_a_key": """DELETE FROM ducklake_file_partition_value
      WHERE table_id = {t} AND partition_key_index = 0""",
    "all_at_one_key": VALUE.format("partition_key_index = 2", "partition_key_index < 2"),
    "one_value_twice": """INSERT INTO ducklake_file_partition_value
      SELECT data_file_id, table_id, partition_key_index, 'b' FROM ducklake_file_partition_value
      WHERE table_id = {t} AND partition_value = 'a'""",
    "a_key_too_many": """INSERT INTO ducklake_file_partition_value
      SELECT DISTINCT data_file_id, table_id, 9, 'x' FROM ducklake_file_partition_value
      WHERE table_id = {t}""",
    "partitioning_of_none": FILES.format("partition_id = 99999"),
    "no_partitioning": FILES.format("partition_id = NULL"),
    "two_partitionings": """
      INSERT INTO ducklake_partition_info VALUES (90001, {t}, 2, NULL);
      INSERT INTO ducklake_partition_column VALUES (90001, {t}, 0, 2, 'identity')""",
    # Of an identity: the one value of the file.
    "null_is_a_text": VALUE.format("partition_value = 'None'", "partition_value IS NULL"),
    "null_is_another_text": VALUE.format("partition_value = '__NULL__'", "partition_value IS NULL"),
    "another_value": VALUE.format("partition_value = 'z'", "partition_value = 'a'"),
    "the_value_is_null": VALUE.format("partition_value = NULL", "partition_value = 'a'"),
    "days_since_1970": VALUE.format("partition_value = '18262'", "partition_value = '2020-01-01'"),
    # Of a time: the part of the calendar.
    "years_since_1970": VALUE.format("partition_value = '50'", "partition_value = '2020'"),
    "months_since_1970": VALUE.format(
        "partition_value = '600'", "partition_key_index = 2 AND partition_value = '1'"
    ),
    "year_is_month": VALUE.format("partition_value = '1'", "partition_value = '2020'"),
    "the_value_itself": VALUE.format(
        "partition_value = '2020-01-01 01:02:03.456789'", "partition_value = '2020'"
    ),
    "microseconds": VALUE.format(
        "partition_value = '1577840523456789'", "partition_value = '2020'"
    ),
    # Of a bucket: a number below theirs, and that of the one value.
    "bucket_too_large": VALUE.format("partition_value = '999'", "partition_key_index = 4"),
    "another_bucket": VALUE.format(
        "partition_value = CASE partition_value WHEN '0' THEN '1' ELSE '0' END",
        "partition_key_index = 4 AND partition_value IS NOT NULL",
    ),
    # Bounds: values of the type, the lower one first.
    "bound_is_no_number": STATS.format("min_value = 'many', max_value = ''", N),
    "bound_is_no_time": STATS.format("min_value = '2020', max_value = '2020'", TS),
    "bounds_of_java": STATS.format("min_value = '-Infinity', max_value = 'NaN'", F),
    "bounds_swapped": STATS.format("min_value = max_value, max_value = min_value", N),
    "time_with_t_and_zone": STATS.format(
        "min_value = replace(min_value, ' ', 'T') || '+00:00',"
        " max_value = replace(max_value, ' ', 'T') || '+00'",
        TS,
    ),
    "time_without_microseconds": STATS.format(
        f"min_value = left(min_value, 23), max_value = left(max_value, 23), {AS_OTHERS}", TS
    ),
    "texts_cut": STATS.format("min_value = '', max_value = left(max_value, 0) || 'zz'", S)
    + " AND value_count > 0",
    # Counts: of values and of NULLs, together the rows.
    "values_with_nulls": STATS.format("value_count = value_count + null_count", N),
    "distinct_values": STATS.format("value_count = 1, contains_nan = false", N),
    "nulls_beyond_rows": STATS.format("null_count = 100", N),
    "nulls_below_zero": STATS.format("null_count = -1, value_count = value_count + 1", N),
    "no_counts": STATS.format("value_count = NULL, null_count = NULL, contains_nan = NULL", F),
    "no_nan_that_nobody_saw": STATS.format(
        f"contains_nan = false, max_value = '1.5', {AS_OTHERS}", F
    )
    + " AND contains_nan",
    "no_statistics": "DELETE FROM ducklake_file_column_stats WHERE table_id = {t}",
    "statistics_twice": """INSERT INTO ducklake_file_column_stats
      SELECT data_file_id, table_id, column_id, 1, 1, 0, 'z', 'z', false, NULL
      FROM ducklake_file_column_stats WHERE table_id = {t} AND column_id IN (2, 6)""",
    # Files.
    "format_in_capitals": FILES.format("file_format = 'PARQUET'"),
    "no_footer_size": FILES.format("footer_size = NULL"),
    "one_row_id_for_all": FILES.format("row_id_start = 0"),
    "no_row_ids": FILES.format("row_id_start = NULL"),
    "too_few_rows": FILES.format("record_count = 1")
    + """ AND data_file_id NOT IN (
      SELECT data_file_id FROM ducklake_delete_file WHERE table_id = {t})""",
    "two_delete_files": COPY.format("ducklake_delete_file", "true", "delete_file_id = 900001"),
    "deletes_beyond_rows": "UPDATE ducklake_delete_file SET delete_count = 99 WHERE table_id = {t}",
    # The table.
    "type_in_capitals": COLUMN.format("column_type = 'TIMESTAMP'", "column_name = 'ts'"),
    "no_schema_versions": "DELETE FROM ducklake_schema_versions WHERE table_id = {t}",
    "no_sums": "DELETE FROM ducklake_table_stats WHERE table_id = {t}",
    "sums_of_columns": """UPDATE ducklake_table_column_stats SET contains_null = false,
      min_value = '3', max_value = '3' WHERE table_id = {t} AND column_id < 3""",
    "younger_than_its_rows": "UPDATE ducklake_table SET begin_snapshot = 4 WHERE table_id = {t}",
    "columns_younger_than_rows": COLUMN.format("begin_snapshot = 4", "true"),
    "phantom": """INSERT INTO ducklake_table
      SELECT 900002, gen_random_uuid(), 99999, NULL, schema_id, 'not_yet', path, path_is_relative
      FROM ducklake_table WHERE table_id = {t}""",
}
"""What breaks the rule; clients read the rows all the same."""


TRUSTED_IN_PLANS = {"another_bucket"}
"""PostgreSQL does not know the hash. DuckDB loses the rows, too; no program is known to do that in
files of its own, and the buckets of files that were added are not used."""


class Gone(NamedTuple):
    """A row of the catalog that no snapshot shows, as the specification says."""

    edit: str
    ids: list[int]
    """The rows that are left."""


GONE = {
    "ends_as_it_begins": Gone(
        FILES.format("end_snapshot = begin_snapshot") + f" AND {OF_B}", [1, 2, 3, 6]
    ),
    "ends_before_it_begins": Gone(FILES.format("end_snapshot = 0") + f" AND {OF_B}", [1, 2, 3, 6]),
    "begins_later": Gone(FILES.format("begin_snapshot = 99999") + f" AND {OF_B}", [1, 2, 3, 6]),
}
REFUSED = {
    "column_twice": (COLUMN.format("column_id = 2", "column_id = 3"), "is there 2 times"),
    "name_twice": (COLUMN.format("column_name = 'N'", "column_id = 3"), "have the name 'n'"),
    "no_parent": (COLUMN.format("parent_column = 77", "column_id = 3"), "names no column"),
    "no_type": (COLUMN.format("column_type = NULL", "column_id = 3"), "'f' has no type"),
    "a_list_of_none": (COLUMN.format("column_type = 'list'", "column_id = 3"), "has 0 children"),
    "not_parquet": (FILES.format("file_format = 'vortex'"), "of the format vortex"),
    "deletes_not_known": (
        "UPDATE ducklake_delete_file SET format = 'lance' WHERE table_id = {t}",
        "delete files of the format lance",
    ),
    "no_path": (FILES.format("path = NULL"), "a file has no path"),
    "no_record_count": (FILES.format("record_count = -1"), "a record_count is missing"),
    "encrypted": (FILES.format("encryption_key = 'a'"), "encrypted data files"),
    "a_table_twice": (
        COPY.format("ducklake_table", "true", "begin_snapshot = 3"),
        "has 2 rows for it at one snapshot",
    ),
}
"""What breaks the rule, and words of the sentence."""


class Broken(NamedTuple):
    """The lake, and the rows of each table before its rule was broken."""

    truth: dict[str, list[str]]
    bridge: in_process.Bridge

    def where(self) -> tuple[str, str, str]:
        return self.bridge.catalog_uri, self.bridge.warehouse, self.bridge.s3_endpoint


@pytest.fixture(scope="module")
def broken(lake, moto) -> Iterator[Broken]:
    edits = {
        **RIGHT,
        **{name: gone.edit for name, gone in GONE.items()},
        **{name: edit for name, (edit, _) in REFUSED.items()},
    }
    names = [*edits, "sound"]
    # Few transactions: each of them takes as long as all that is in it.
    parts = ("".join(part.format(name) for name in names) for part in (TABLE, ROWS, CHANGES))
    script = ATTACH + "".join(f"BEGIN; {part} COMMIT;" for part in parts)
    script += "CREATE SCHEMA younger;"
    one = lake.write("invariants", script)
    with connect(LAKE, moto) as con:
        attach(con, one)
        truth = {name: texts(con.execute(f"FROM lake.{name}").to_arrow_table()) for name in names}
    with closing(one.database.connect()) as con:
        ids = dict(con.run("SELECT table_name, table_id FROM ducklake_table"))
        for name, edit in edits.items():
            for statement in edit.format(t=ids[name]).split(";"):
                con.run(statement)
    how = {"delivery": "object-lambda", "settings": SETTINGS}
    with in_process.bridge(one, moto, **how) as bridge:
        yield Broken(truth, bridge)


@pytest.fixture(scope="module")
def by_client(broken) -> Iterator[pyiceberg.PyIceberg]:
    with closing(pyiceberg.open(*broken.where())) as client:
        client._catalog.properties[MODE] = "client"
        yield client


@pytest.fixture(scope="module")
def by_server(broken) -> Iterator[pyiceberg.PyIceberg]:
    with closing(pyiceberg.open(*broken.where())) as client:
        yield client


def test_every_table_is_listed(broken):
    listed = {name for _, name in rest.Rest(*broken.where()[:2]).tables()}
    assert listed == broken.truth.keys()


@pytest.mark.parametrize("name", [*RIGHT, *GONE, "sound"])
def test_pyiceberg_reads_the_rows_and_skips_no_file_with_one(name, broken, by_client, by_server):
    table = by_client._catalog.load_table(("main", name))
    rows = table.scan().to_arrow()
    if name in GONE:
        assert sorted(rows["id"].to_pylist()) == GONE[name].ids
    else:
        assert texts(rows) == broken.truth[name]
    files = {task.file.file_path: rows_of(table, task) for task in table.scan().plan_files()}
    asked = list(predicates(table, pa.concat_tables(files.values()), MOST))
    planner = Planner(table)
    skipped = [
        f"{predicate}: {lost.to_pylist()}"
        for _, plain in asked
        for predicate in (plain, Not(plain))
        for path in files.keys() - planner.paths(predicate)
        if (lost := matching(files[path], table, predicate)).num_rows
    ]
    assert not skipped, "\n".join(skipped)
    if name in TRUSTED_IN_PLANS:
        return
    planned_by_server = by_server._catalog.load_table(("main", name))
    for column, predicate in asked:
        if column in filtered(name) and isinstance(predicate, IsNull | EqualTo):
            paths = {task.file.file_path for task in planned_by_server.scan(predicate).plan_files()}
            for path in files.keys() - paths:
                assert not matching(files[path], table, predicate).num_rows, predicate


class Planner:
    """Plans as PyIceberg does, and reads the manifests once."""

    def __init__(self, table: Table) -> None:
        self._table = table
        snapshot = table.current_snapshot()
        manifests = snapshot.manifests(table.io) if snapshot else []
        self._files = [
            (manifest, [entry.data_file for entry in manifest.fetch_manifest_entry(table.io)])
            for manifest in manifests
            if manifest.content == ManifestContent.DATA
        ]

    def paths(self, predicate: BooleanExpression) -> set[str]:
        """The data files that are read with a filter."""
        plan = ManifestGroupPlanner(self._table.metadata, self._table.io, predicate)
        by_metrics = plan._build_metrics_evaluator()
        return {
            file.file_path
            for manifest, files in self._files
            if plan._build_manifest_evaluator(manifest.partition_spec_id)(manifest)
            for file in files
            if by_metrics(file) and plan._build_partition_evaluator(file.spec_id)(file)
        }


COLUMN_ID = re.compile(r"column_id = (\d)")


def filtered(name: str) -> list[str]:
    """The columns that a rule is about: one, or those by which the table is partitioned."""
    column = COLUMN_ID.search(RIGHT.get(name, ""))
    return [NAMES[int(column[1]) - 1]] if column else ["s", "ts", "k"]


@pytest.mark.parametrize("name", REFUSED)
def test_what_nobody_can_read_is_refused_by_a_sentence(name, broken):
    with pytest.raises(rest.Refused) as refused:
        rest.Rest(*broken.where()[:2]).load_table("main", name)
    assert refused.value.status == 400
    assert REFUSED[name][1] in refused.value.message
