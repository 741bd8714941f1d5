"""Lakes of DuckLake 1.1: clients read what DuckLake's own extension of that version read.

As the extension wrote them in August (1.1-dev1), raised to what the release has, and with deletion
vectors, of which one Puffin file has those of several snapshots.
"""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing

import pytest
from polynya_local.clients import duckdb, pyiceberg
from polynya_local.clients.canonical import difference, from_arrow
from polynya_local.processes.serving import serving

from tests.differential.test_rows import hidden_columns, listed, opened
from tests.support import lakes_of_1_1, rest
from tests.support.file_lakes import FileLake
from tests.support.lakes_of_1_1 import Recorded, expected, raised, with_vectors
from tests.support.servers import in_process

SETTINGS = {"SNAPSHOT_LIMIT": "2000", "CHUNK_FILES": "2"}
IN_CI = ("14", "16")  # deletes and a flush; inlined rows of all types
# PyIceberg reads a NULL map as an empty one if it casts something inside it, and refuses files with
# a variant (test_rows.py).
# (lake, table) -> the snapshot at which it was renamed: what the extension read before was not
# recorded, so DuckDB 1.5.5 is the judge there.
RENAMED_AT = {("life", ("s", "t2")): 28}
CLIENT_FAULTS = {("02_nested_types", "PyIceberg"), ("07_variant_geometry", "PyIceberg")}


def as_written(lake: FileLake) -> None:
    """Version 1.1-dev1."""


def with_dated_vectors(lake: FileLake) -> None:
    raised(lake)
    assert with_vectors(lake)


def with_flushed_vectors(lake: FileLake) -> None:
    raised(lake)
    assert with_vectors(lake, dated=False)


# Lakes of which a data file lost rows at several snapshots.
SEVERAL_DELETES = (
    "09_positional_deletes",
    "10_update_merge",
    "12_deletion_vectors",
    "14_inlined_flush",
    "life",
)
FORMS = {
    raised: lakes_of_1_1.NAMES,
    as_written: lakes_of_1_1.NAMES,
    with_dated_vectors: SEVERAL_DELETES,
    with_flushed_vectors: SEVERAL_DELETES,
}


VECTORS_IN_CI = {
    ("life", with_dated_vectors),
    ("09_positional_deletes", with_flushed_vectors),
}


def is_in_ci(name: str, form: Callable[[FileLake], None]) -> bool:
    """Lakes of each kind, as of the release; one of each kind of deletion vectors."""
    if form in (with_dated_vectors, with_flushed_vectors):
        return (name, form) in VECTORS_IN_CI
    return form is raised and (name == "life" or name[:2] in IN_CI)


CASES = [
    pytest.param(
        name,
        form,
        id=f"{name}-{form.__name__}",
        marks=[] if is_in_ci(name, form) else [pytest.mark.slow],
    )
    for form, names in FORMS.items()
    for name in names
]


@pytest.mark.slow("[14_inlined_flush-raised]", "[life-raised]")
@pytest.mark.parametrize(("name", "form"), CASES)
def test_clients_read_what_ducklake_read(
    name, form, tmp_path, postgres_server, moto, shared_duckdb
):
    lake = lakes_of_1_1.unpacked(name, tmp_path)
    form(lake)
    served = lakes_of_1_1.in_postgresql(lake, postgres_server, moto)
    how = {"delivery": "object-lambda", "settings": SETTINGS}
    with in_process.bridge(served, moto, **how) as bridge:
        for client in (pyiceberg, duckdb):
            check(lake, client, bridge, shared_duckdb)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["14_inlined_flush", pytest.param("life", marks=pytest.mark.slow)])
def test_a_file_of_sqlite_is_served(name, tmp_path, shared_duckdb):
    lake = lakes_of_1_1.unpacked(name, tmp_path)
    raised(lake)
    how = {"delivery": "object-lambda", "settings": SETTINGS}
    with serving(lake.address, None, options=("--data-path", str(lake.data)), **how) as bridge:
        check(lake, duckdb, bridge, shared_duckdb)


def check(lake: FileLake, client, bridge, shared_duckdb) -> None:
    """Each table at each listed snapshot."""
    catalog = rest.Rest(bridge.catalog_uri, bridge.warehouse)
    recorded = expected(lake)
    assert sorted(catalog.tables()) == sorted(recorded)
    wrong = []
    with opened(client, bridge, shared_duckdb) as reader:
        for table, snapshots in recorded.items():
            metadata = catalog.load_table(*table)
            hidden = hidden_columns(metadata)
            renamed_at = RENAMED_AT.get((lake.name, table), 0)
            for snapshot_id in (None, *(id_ for id_ in listed(metadata) if id_ >= renamed_at)):
                then = snapshots[snapshot_id]
                lines = read(reader, table, snapshot_id, then, hidden)
                wrong += [f"{table} at {snapshot_id}: {line}" for line in lines]
    fault = (lake.name, client.NAME) in CLIENT_FAULTS
    assert bool(wrong) == fault, "\n".join(wrong)


def read(reader, table, snapshot_id, then: Recorded, hidden: frozenset[str]) -> list[str]:
    try:
        return then.differences(reader.rows(*table, snapshot_id), hidden)
    except Exception as error:  # any error of a client is a finding
        return [f"{type(error).__name__}: {str(error)[:300]}"]


def test_zoned_nanoseconds_are_hidden(tmp_path, postgres_server, moto, shared_duckdb):
    """The type `timestamptz_ns`, which only 1.1 has."""
    lake = lakes_of_1_1.unpacked("16_inlining_all_types", tmp_path)
    with closing(sqlite3.connect(lake.file)) as con, con:
        con.execute(
            "UPDATE ducklake_column SET column_type = 'timestamptz_ns' "
            "WHERE column_type = 'timestamp_ns'"
        )
    served = lakes_of_1_1.in_postgresql(lake, postgres_server, moto)
    with in_process.bridge(served, moto, delivery="object-lambda") as bridge:
        check(lake, duckdb, bridge, shared_duckdb)
        catalog = rest.Rest(bridge.catalog_uri, bridge.warehouse)
        [properties] = [catalog.load_table(*table)["properties"] for table in catalog.tables()]
    reasons = json.loads(properties["polynya.hidden-columns-reason"])
    assert reasons["ts_ns"].startswith("nanoseconds need format version 3")


@pytest.fixture
def life(tmp_path, postgres_server, moto):
    """The lake `life`, and what serves it as of the release."""
    lake = lakes_of_1_1.unpacked("life", tmp_path)
    raised(lake)
    served = lakes_of_1_1.in_postgresql(lake, postgres_server, moto)
    how = {"delivery": "object-lambda", "settings": SETTINGS}
    with in_process.bridge(served, moto, **how) as bridge:
        yield lake, bridge


@pytest.mark.slow
def test_a_renamed_table_has_the_rows_of_before(life, tmp_path, shared_duckdb):
    lake, bridge = life
    catalog = rest.Rest(bridge.catalog_uri, bridge.warehouse)
    folder = tmp_path / "1.0"
    folder.mkdir()
    [((_, table), renamed_at)] = RENAMED_AT.items()
    metadata = catalog.load_table(*table)
    before = [id_ for id_ in listed(metadata) if id_ < renamed_at]
    assert len(before) > 10
    hidden = hidden_columns(metadata)
    with (
        closing(lakes_of_1_1.read_as_1_0(lake, folder)) as judge,
        opened(duckdb, bridge, shared_duckdb) as reader,
    ):
        for snapshot_id in before:
            at = (*table, snapshot_id)
            rows = from_arrow(reader.rows(*at), judge.columns(*at), hidden)
            assert not difference(judge.canonical(*at, hidden), rows), at


def view_of(bridge, snapshot_id: int, name: str) -> dict:
    """A view of `life` at a snapshot, which has dropped it since."""
    catalog = rest.Rest(bridge.catalog_uri, f"{bridge.warehouse}@{snapshot_id}")
    return catalog._get(f"namespaces/s/views/{name}", {})["metadata"]


def test_comments_of_a_views_columns_are_properties(life):
    """DuckLake does not record the columns of a view that DuckDB made."""
    _, bridge = life
    comment = {"polynya.column-comment.bb": "view column comment"}
    found = [view_of(bridge, *at)["properties"] for at in ((22, "v"), (23, "v"), (24, "v2"))]
    assert [one.items() >= comment.items() for one in found] == [False, True, True]
