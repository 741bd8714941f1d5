"""Metadata as Spark shows it: metadata tables, time travel, incremental reads, changelogs.

Spark takes a second for each query, so CI leaves this to `make test-slow`.
"""

import re
from collections import Counter
from contextlib import closing
from itertools import groupby, pairwise, takewhile

import pytest
from polynya_local.clients import native, spark
from polynya_local.clients.canonical import canonical, columns_of, difference, from_arrow
from polynya_local.clients.duckdb import literal
from polynya_local.clients.spark_jars import why_not
from polynya_pipeline.common.spark import quoted

from tests.differential.test_rows import MOST_SNAPSHOTS, SPARK_CANNOT, spread
from tests.metadata.expected_metadata import ExpectedMetadata, served
from tests.metadata.findings import Faults, Findings
from tests.metadata.shown import (
    METADATA_TABLES,
    assert_files,
    assert_manifests,
    assert_partitions,
    moments,
)

FAULTS: Faults = {
    # Its row reader refuses files with such columns, hidden or not.
    ("test_spark_shows_what_changed", "01"): ("Unsupported logical type: TIME_MICROS",),
    ("test_spark_shows_what_changed", "06"): (
        "Unsupported logical type: UINT_",
        "Unsupported logical type: INTERVAL",
        "Unsupported logical type: TIME_MICROS",
    ),
    ("test_spark_reads_what_was_appended", "23"): ("Unsupported logical type: UINT_",),
    ("test_spark_shows_what_changed", "23"): ("Unsupported logical type: UINT_",),
    ("test_spark_shows_what_changed", "79"): ("Unsupported logical type: UINT_",),
}
SPARKS_TABLES = (*METADATA_TABLES, "position_deletes", "all_entries")
ESCAPED = "\\'"
MOST_FOR_SPARK = 4  # snapshots; each takes a second

pytestmark = [
    pytest.mark.slow,
    pytest.mark.spark,
    pytest.mark.skipif(why_not() is not None, reason=why_not() or ""),
]


@pytest.fixture(scope="module")
def case(lake_name, lake, moto, shared_duckdb, request):
    delivery = request.config.getoption("--delivery") or "object-lambda"
    hidden = spark_refuses(lake(lake_name), moto)
    with served(lake(lake_name), moto, shared_duckdb, hidden, delivery=delivery) as case:
        case.spark = spark.open(*case.where)
        yield case


def spark_refuses(lake, s3_endpoint: str) -> tuple[str, ...]:
    """The types of columns for which Spark refuses a whole table."""
    with closing(native.open(lake, s3_endpoint)) as reader:
        types = [
            str(type)
            for table in reader.tables()
            for type in reader.columns(table.namespace, table.name).values()
        ]
    return tuple(name for type, name in SPARK_CANNOT.items() if re.search(type, " ".join(types)))


@pytest.fixture
def found(case, request, left_out):
    found = Findings(request.node.originalname, case.number, FAULTS)
    yield found
    left_out.extend(f"known: {line}" for line in found.judge())


@pytest.fixture(scope="session", autouse=True)
def spark_session():
    yield
    spark.stop()


def test_spark_shows_its_metadata_tables(case, found):
    for facts in case.tables:
        shown = {}
        for what in SPARKS_TABLES:
            with found.at(f"{facts.name}.{what}"):
                sql = f"SELECT * FROM {source_in_spark(facts)}.{what}"
                shown[what] = spark.session().sql(sql).toArrow().to_pylist()
        with found.at(facts.name):
            assert_snapshots(facts, shown)
            assert_files(facts, shown)
            assert_entries(facts, shown)
            assert_manifests(facts, shown["manifests"], facts.ids[-1])
            assert_partitions(facts, shown["partitions"], facts.ids[-1])


def assert_snapshots(facts: ExpectedMetadata, shown: dict) -> None:
    now = facts.ids[-1]
    keys = ("snapshot_id", "parent_id", "committed_at", "operation", "manifest_list")
    seen = [tuple(row[key] for key in keys) for row in shown["snapshots"]]
    seen = [(id_, parent, time.replace(tzinfo=None), *row) for id_, parent, time, *row in seen]
    assert seen == facts.expected_snapshots()
    assert [row["snapshot_id"] for row in shown["history"]] == facts.ids
    assert [row["is_current_ancestor"] for row in shown["history"]] == facts.ancestors
    assert [(row["name"], row["snapshot_id"]) for row in shown["refs"]] == [("main", now)]
    states = [row["latest_snapshot_id"] for row in shown["metadata_log_entries"]]
    assert [id_ for id_, _ in groupby(states)] == facts.ids  # some are between two snapshots


def assert_entries(facts: ExpectedMetadata, shown: dict) -> None:
    now = facts.ids[-1]
    entries = [
        (row["status"], row["snapshot_id"], row["data_file"]["file_path"].rpartition("/")[2])
        for row in shown["entries"]
    ]
    assert sorted(entries) == sorted(
        (int(e.status), e.snapshot_id, e.name) for e in facts.entries(now)
    )
    if "position_deletes" in shown:
        deleted = sum(e.records for e in facts.deletes(now) if e.is_live)
        assert len(shown["position_deletes"]) == deleted
    some = {e.name for id_ in facts.some for e in facts.data(id_) if e.is_live}
    listed = {row["file_path"].rpartition("/")[2] for row in shown["all_data_files"]}
    assert some == listed if facts.some == facts.ids else some <= listed


def test_spark_travels_in_time(case, found):
    for facts in case.tables:
        times = moments(facts)
        for time, id_ in times[:: max(1, len(times) // MOST_FOR_SPARK)]:
            source = source_in_spark(facts)
            for at in (f"TIMESTAMP AS OF '{time}'", f"VERSION AS OF {id_}"):
                with found.at(f"{facts.name} {at}, {id_}"):
                    rows = spark.session().sql(f"SELECT count(*) AS n FROM {source} {at}").collect()
                    assert rows[0]["n"] == facts.row_count(id_)


# What was added between two snapshots


def appended(facts: ExpectedMetadata) -> list[tuple[int, int]]:
    """(from, to): after `from` and up to `to` there are only appends."""
    found = []
    is_append = {id_: facts.snapshots[id_]["summary"]["operation"] == "append" for id_ in facts.ids}
    steps = pairwise(facts.ids)
    for appends, run in groupby(
        steps, lambda step: is_append[step[1]] and not is_gap(facts, *step)
    ):
        if appends:
            steps_of_run = list(run)
            found += [(steps_of_run[0][0], steps_of_run[-1][1]), steps_of_run[-1]]
    return spread(sorted(set(found)), MOST_FOR_SPARK)


def is_gap(facts: ExpectedMetadata, start: int, end: int) -> bool:
    """Whether snapshots between two listed ones are omitted."""
    return facts.parents[end] != start


def appended_in_spark(facts: ExpectedMetadata, start: int, end: int):
    reader = spark.session().read.format("iceberg")
    reader = reader.option("start-snapshot-id", start).option("end-snapshot-id", end)
    return reader.table(source_in_spark(facts)).toArrow()


def test_spark_refuses_to_read_across_a_gap(case, found):
    """The rows that omitted snapshots added would be missing."""
    for facts in case.tables:
        for start, end in pairwise(facts.ids):
            if is_gap(facts, start, end):
                refusal = pytest.raises(Exception, match="is not a parent ancestor")
                with found.at(f"{facts.name} from {start} to {end}"), refusal:
                    appended_in_spark(facts, start, end)


def test_spark_reads_what_was_appended(case, found):
    for facts in case.tables:
        for start, end in appended(facts):
            with found.at(f"{facts.name} from {start} to {end}"):
                arrow = appended_in_spark(facts, start, end)
                columns, expected = insertions(facts, start, end)
                assert arrow.num_rows == expected.rows.total()
                # Spark returns the current columns, DuckLake those of that snapshot.
                if facts.snapshots[end]["schema-id"] == facts.metadata["current-schema-id"]:
                    assert not difference(expected, from_arrow(arrow, columns, facts.hidden))


def insertions(facts: ExpectedMetadata, start: int, end: int):
    """The rows that DuckLake reports as inserted after `start`, and their columns."""
    source = f"ducklake_table_insertions({names_at(facts, end)}, {start + 1}, {end})"
    columns = columns_of(facts.case.changes, source)
    return columns, canonical(facts.case.changes, source, columns, facts.hidden)


def test_spark_shows_what_changed(case, found):
    """The changelog view, where Iceberg allows one: up to the first delete file, without maps."""
    for facts in case.tables:
        until = before_the_first_delete_file(facts)
        if len(until) < 2:
            continue
        start, end = until[0], until[-1]
        if has_maps(facts):
            with pytest.raises(Exception, match="table contains unorderable columns"):
                changes_in_spark(facts, start, end)
            continue
        with found.at(f"{facts.name} from {start} to {end}"):
            assert changes_in_spark(facts, start, end) == changes_in_ducklake(facts, start, end)


def has_maps(facts: ExpectedMetadata) -> bool:
    """Spark sorts changes by all columns, and cannot sort maps."""
    return any("map<" in str(field.field_type) for field in facts.iceberg.schema().fields)


def before_the_first_delete_file(facts: ExpectedMetadata) -> list[int]:
    first, *more = facts.ids[:MOST_SNAPSHOTS]
    if facts.deletes(first):
        return []
    steps = takewhile(
        lambda step: not facts.deletes(step[1]) and not is_gap(facts, *step),
        pairwise([first, *more]),
    )
    return [first, *(id_ for _, id_ in steps)]


def changes_in_spark(facts: ExpectedMetadata, start: int, end: int) -> Counter:
    name = ".".join(map(quoted, (facts.table.namespace, facts.table.name)))
    words = name.replace("'", ESCAPED)
    [[view]] = (
        spark.session()
        .sql(f"""
        CALL {facts.case.spark.catalog}.system.create_changelog_view(table => '{words}', options =>
        map('start-snapshot-id', '{start}', 'end-snapshot-id', '{end}'))""")
        .collect()
    )
    rows = spark.session().sql(f"SELECT _change_type FROM {view}").collect()
    return Counter(row[0] for row in rows)


def changes_in_ducklake(facts: ExpectedMetadata, start: int, end: int) -> Counter:
    names = names_at(facts, end)
    found = Counter()
    for kind, function in (("INSERT", "insertions"), ("DELETE", "deletions")):
        sql = f"SELECT count(*) FROM ducklake_table_{function}({names}, {start + 1}, {end})"
        [[found[kind]]] = facts.case.changes.execute(sql).fetchall()
    return +found


def names_at(facts: ExpectedMetadata, snapshot_id: int) -> str:
    """The lake and the table's name at the snapshot, which DuckLake requires."""
    then = facts.case.native._name_at(facts.table.namespace, facts.table.name, snapshot_id)
    return ", ".join(map(literal, ("lake", then.namespace, then.name)))


def source_in_spark(facts: ExpectedMetadata) -> str:
    names = (facts.case.spark.catalog, facts.table.namespace, facts.table.name)
    return ".".join(map(quoted, names))
