"""Lakes in a file of DuckDB or SQLite with data in a folder: `polynya serve FILE` gives every
client the rows that DuckLake reads from the file, also while a writer goes on."""

import json
import shutil
from contextlib import closing
from pathlib import Path

import duckdb as native_duckdb
import pytest
from polynya_local.cli import app
from polynya_local.clients import duckdb, pyiceberg, spark
from polynya_local.clients.canonical import difference, from_arrow
from polynya_local.clients.spark_jars import why_not
from polynya_local.processes.serving import serving
from typer.testing import CliRunner

from tests.lakes.others.record import restore
from tests.support import file_lakes, rest
from tests.support.file_lakes import DUCKDB_2, KINDS, FileLake, NativeFile, file_to_1_1

SLOW = pytest.mark.slow
# Scalars in files; inlined rows of all types; files, deletes, flushes; merges; partitions; renames;
# expired snapshots; inlined partitions.
LAKES = ("01", "02", "09", "13", "14", "16", "17", "22", "25", "36", "38", "53", "81", "82")
IN_CI = {("13", "duckdb")}  # SQLite: what a writer has just committed
CASES = [
    pytest.param(number, kind, marks=[SLOW] * ((number, kind) not in IN_CI))
    for number in LAKES
    for kind in KINDS
]
SETTINGS = {"SNAPSHOT_LIMIT": "2000", "CHUNK_FILES": "2"}
SPARK_CANNOT = ("time", "timetz", "timestamp_ns", "uint32")
needs_spark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
# Each client, and how many past snapshots of a table it reads.
CLIENTS = [(pyiceberg, 3), (duckdb, 40)]
# A NULL map is read as empty if PyIceberg has to cast something inside it.
CLIENT_FAULTS = {("02", pyiceberg)}


@pytest.mark.parametrize(("number", "kind"), CASES)
def test_clients_read_what_ducklake_reads(number, kind, tmp_path):
    lake = file_lakes.written(number, kind, tmp_path / "lake")
    with serving(lake.address, None, delivery="object-lambda", settings=SETTINGS) as bridge:
        for client, most in CLIENTS:
            if (number, client) in CLIENT_FAULTS:
                continue
            with closing(opened(client, bridge)) as reader:
                check(lake, bridge, reader, most)


@pytest.mark.slow
@pytest.mark.spark
@needs_spark
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", LAKES)
def test_spark_reads_what_ducklake_reads(number, kind, tmp_path):
    lake = file_lakes.written(number, kind, tmp_path / "lake")
    options = tuple(word for name in SPARK_CANNOT for word in ("--hide-type", name))
    how = {"delivery": "object-lambda", "options": options, "settings": SETTINGS}
    with serving(lake.address, None, **how) as bridge, closing(opened(spark, bridge)) as reader:
        check(lake, bridge, reader, 3)


# A lake that another program has made, and the one in which DuckDB reads the same rows.
OTHERS = {"dataframe": "", "sdk": "", "delta": "", "lakepy": "", "lakepy-1.1": "lakepy"}
LAKES_OF_OTHERS = Path(__file__).parents[1] / "lakes/others"


@pytest.mark.slow
@pytest.mark.parametrize(
    "client", [pyiceberg, duckdb, pytest.param(spark, marks=[pytest.mark.spark, needs_spark])]
)
@pytest.mark.parametrize("name", OTHERS)
def test_lakes_of_others_at_every_snapshot(name, client, tmp_path):
    for one in {name, OTHERS[name] or name}:
        restore(LAKES_OF_OTHERS / one, tmp_path / one)
    truth = FileLake(name, "sqlite", tmp_path / (OTHERS[name] or name))
    where = f"sqlite:{tmp_path / name}/lake.sqlite"
    with (
        serving(where, None, delivery="object-lambda", settings=SETTINGS) as bridge,
        closing(opened(client, bridge)) as reader,
    ):
        check(truth, bridge, reader, 100)


def opened(client, bridge):
    return client.open(bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)


def check(lake, bridge, reader, most: int, after: str = "") -> None:
    wrong, compared = differences(lake, bridge, reader, most)
    assert not wrong, "\n".join([f"{reader.name} {after}", *wrong])
    assert compared or after


def differences(lake, bridge, reader, most: int) -> tuple[list[str], int]:
    """One line for each difference from DuckLake, and how many times a table was compared."""
    catalog = rest.Rest(bridge.catalog_uri, bridge.warehouse)
    wrong, compared = [], 0
    with closing(NativeFile(lake)) as native:
        tables = native.tables()
        assert sorted(catalog.tables()) == sorted((t.namespace, t.name) for t in tables)
        for table in tables:
            name = (table.namespace, table.name)
            try:
                metadata = catalog.load_table(*name)
            except rest.Refused as refusal:
                wrong += [f"{name} is refused: {refusal.message}"]
                continue
            properties = metadata["properties"]
            hidden = frozenset(json.loads(properties.get("polynya.hidden-columns", "[]")))
            ids = sorted(one["snapshot-id"] for one in metadata.get("snapshots", []))
            for snapshot_id in (None, *ids[len(ids) - min(most, len(ids)) :]):
                truth = native.canonical(*name, snapshot_id, hidden)
                columns = native.columns(*name, snapshot_id)
                rows = from_arrow(reader.rows(*name, snapshot_id), columns, hidden)
                compared += 1
                wrong += [f"{name} at {snapshot_id}: {x}" for x in difference(truth, rows)]
    return wrong, compared


# What the catalog is: its script, its kind, and whether DuckDB 2.0 reads it. DuckDB 2.0 has no
# ducklake extension on PyPI, so that native truth is the catalog as it was before.
OF_1_1 = [
    ("13", "duckdb", True),
    ("54", "sqlite", False),
    pytest.param("16", "sqlite", True, marks=SLOW),
]


@pytest.mark.slow("[54-")
@pytest.mark.parametrize(("number", "kind", "by_duckdb_2"), OF_1_1)
def test_lakes_of_1_1_with_a_relative_data_path(number, kind, by_duckdb_2, tmp_path, monkeypatch):
    lake = file_lakes.written(number, kind, tmp_path / "lake")
    migrated = FileLake(lake.name, kind, tmp_path / "migrated")
    migrated.folder.mkdir()
    shutil.copy(lake.file, migrated.file)
    file_to_1_1(migrated)
    path = (
        f"UPDATE ducklake_metadata SET value = '{lake.folder.name}/data/' WHERE key = 'data_path'"
    )
    file_lakes.change_tables(migrated, path)
    settings = SETTINGS
    if by_duckdb_2:
        settings = {**SETTINGS, **DUCKDB_2}
        if kind == "duckdb":
            migrated = file_lakes.in_format_of_duckdb_2(migrated, tmp_path / "two")
            refused = CliRunner().invoke(app, ["inspect", "main.t", migrated.address])
            assert refused.exit_code == 1 and refused.stderr == (
                f"polynya: {migrated.file} was written by a newer DuckDB than the one of this "
                f"Python, {native_duckdb.__version__}, which cannot read it: "
                "pip install --upgrade 'duckdb>=2,<3'\n"
            )
    monkeypatch.chdir(tmp_path)
    how = {"delivery": "object-lambda", "settings": settings}
    with (
        serving(migrated.address, None, **how) as bridge,
        closing(opened(pyiceberg, bridge)) as reader,
    ):
        check(lake, bridge, reader, 3)


# Each is a change of its own; the last ones change the catalog without a new snapshot, or rewrite
# the past without a change of rows.
COMMITS = (
    "CREATE TABLE t (i INTEGER, s VARCHAR, n STRUCT(a DOUBLE, b VARCHAR[]))",
    "INSERT INTO t VALUES (1, 'a', {'a': 0.5, 'b': ['x', NULL]})",
    "INSERT INTO t SELECT i, 'row ' || i, NULL FROM range(100, 200) AS r(i)",
    "DELETE FROM t WHERE i % 10 = 0",
    "UPDATE t SET s = 'new' WHERE i IN (1, 111)",
    "ALTER TABLE t ADD COLUMN d DATE DEFAULT '2020-02-29'",
    "INSERT INTO t VALUES (2, NULL, NULL, NULL), (3, '', {'a': NULL, 'b': []}, '1969-12-31')",
    "ALTER TABLE t ALTER COLUMN i TYPE BIGINT",
    "INSERT INTO t VALUES (5000000000, 'big', NULL, NULL)",
    "CALL ducklake_flush_inlined_data('lake')",
    "INSERT INTO t SELECT i, 'more', NULL, NULL FROM range(300, 350) AS r(i)",
    "CALL ducklake_merge_adjacent_files('lake')",
    "ALTER TABLE t RENAME TO u",
    "CREATE TABLE t (other VARCHAR)",
    "INSERT INTO t VALUES ('x')",
    "COMMENT ON TABLE t IS 'a comment'",
    "CALL ducklake_expire_snapshots('lake', versions => [2, 3])",
    "DROP TABLE t",
)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "most"),
    [("sqlite", 0), *(pytest.param(kind, 3, marks=SLOW) for kind in ("duckdb", "sqlite"))],
)
def test_clients_read_what_a_writer_has_just_committed(kind, most, tmp_path):
    lake = file_lakes.empty(kind, tmp_path / "lake")
    with serving(lake.address, None, delivery="object-lambda", settings=SETTINGS) as bridge:
        with closing(opened(duckdb, bridge)) as reader:
            for statement in COMMITS:
                with file_lakes.writing(lake) as con:
                    con.execute(statement)
                check(lake, bridge, reader, most, f"after {statement}")
        with closing(opened(pyiceberg, bridge)) as reader:
            check(lake, bridge, reader, 40)
