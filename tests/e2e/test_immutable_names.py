"""The bytes of a name never change, and a planned scan gives its own rows, or none.

DuckLake rewrites its own past: a second delete, a flush or a merge replaces rows of snapshots that
clients know. So each mutation here happens after a client plans and before it reads.
"""

import itertools
import json
from contextlib import ExitStack, closing, contextmanager
from io import BytesIO
from types import SimpleNamespace

import boto3
import fastavro
import pytest
from polynya_local.clients import native
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import attach
from polynya_local.clients.pyiceberg import s3_properties
from polynya_local.processes.serving import serving
from pyiceberg.catalog import load_catalog

from tests.support.servers.in_process import (
    ALIAS,
    bridge,
    cache_settings,
    reset_functions,
    standing_in,
)
from tests.support.servers.raw_http import send

ATTACH = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 10);
USE lake;
"""
# Histories of a table: one with files only, one with inlined rows and inlined deletes, one that has
# deletion vectors, because a past schema needs format version 3.
HISTORIES = {
    "files": """
CREATE TABLE {t}(i INTEGER, s VARCHAR);
CALL lake.set_option('data_inlining_row_limit', 0, table_name => '{t}');
INSERT INTO {t} SELECT i, 'v' || i FROM range(500) AS r(i);
INSERT INTO {t} SELECT i, 'w' || i FROM range(500, 900) AS r(i);
DELETE FROM {t} WHERE i % 10 = 0;
""",
    "inlined": """
CREATE TABLE {t}(i INTEGER, s VARCHAR);
INSERT INTO {t} SELECT i, 'v' || i FROM range(500) AS r(i);
DELETE FROM {t} WHERE i < 3;
INSERT INTO {t} VALUES (1001, 'x'), (1002, 'y'), (1003, 'z');
DELETE FROM {t} WHERE i = 1002;
""",
    "version_3": """
CREATE TABLE {t}(i INTEGER, s VARCHAR);
INSERT INTO {t} SELECT i, 'v' || i FROM range(500) AS r(i);
ALTER TABLE {t} ADD COLUMN d INTEGER DEFAULT 5;
DELETE FROM {t} WHERE i % 10 = 0;
ALTER TABLE {t} DROP COLUMN d;
DELETE FROM {t} WHERE i < 3;
INSERT INTO {t} VALUES (1001, 'x'), (1002, 'y');
""",
}
PARTITIONED = """
CREATE TABLE {t}(i INTEGER, s VARCHAR);
ALTER TABLE {t} SET PARTITIONED BY (bucket(3, i));
INSERT INTO {t} SELECT i, 'v' || i FROM range(500) AS r(i);
INSERT INTO {t} VALUES (1001, 'x'), (1002, 'y'), (1003, 'z');
DELETE FROM {t} WHERE i = 1002;
"""
LAYOUTS = {
    "unpartitioned": "ALTER TABLE {t} RESET PARTITIONED BY",
    "unpartitioned_and_back": "ALTER TABLE {t} RESET PARTITIONED BY; "
    "ALTER TABLE {t} SET PARTITIONED BY (bucket(3, i))",
    "partitioned_otherwise": "ALTER TABLE {t} SET PARTITIONED BY (s)",
    "sorted": "ALTER TABLE {t} SET SORTED BY (s)",
    "promoted": "ALTER TABLE {t} ALTER i SET TYPE BIGINT",
    "renamed_column": "ALTER TABLE {t} RENAME COLUMN s TO r",
    "dropped_column": "ALTER TABLE {t} RESET PARTITIONED BY; ALTER TABLE {t} DROP COLUMN i",
    "commented": "COMMENT ON TABLE {t} IS 'a table'",
}
"""Changes of a partitioned table with inlined rows."""

# The mutations between planning and reading. After the first ones every planned name must still be
# built; after the others the answer may be 404, but never other bytes.
HARMLESS = {
    "append": "INSERT INTO {t} SELECT i, 'n' || i FROM range(2000, 2100) AS r(i)",
    "small_append": "INSERT INTO {t} VALUES (3000, 'small')",
    "add_column": "ALTER TABLE {t} ADD COLUMN n INTEGER",
    "another_table": "CREATE TABLE another AS SELECT 1 AS i",
}
REWRITING = {
    "second_delete": "DELETE FROM {t} WHERE i % 10 = 1",
    "two_deletes": "DELETE FROM {t} WHERE i % 10 = 1; DELETE FROM {t} WHERE i % 10 = 2",
    "update": "UPDATE {t} SET s = 'changed' WHERE i = 5",
    "all_rows": "DELETE FROM {t}",
    "flush": "CALL ducklake_flush_inlined_data('lake', table_name => '{t}')",
    "merge": "CALL ducklake_merge_adjacent_files('lake', '{t}')",
    "rewrite": "CALL ducklake_rewrite_data_files('lake', '{t}', delete_threshold => 0.0)",
    "rename": "ALTER TABLE {t} RENAME TO renamed",
    "drop_column": "ALTER TABLE {t} DROP COLUMN s",
    "drop_table": "DROP TABLE {t}",
    "made_again": "DROP TABLE {t}; CREATE TABLE {t}(i INTEGER, s VARCHAR)",
}
IN_CI = {("inlined", "object-lambda")}
MUTATIONS = HARMLESS | REWRITING
KEPT = ["append", "two_deletes", "update", "flush", "merge", "rewrite", "drop_table"]


@pytest.fixture(scope="module")
def make_lake(lake):
    def make(history: str, tables):
        """A lake in which each of `tables` has this history."""
        made = (HISTORIES[history].format(t=table) for table in tables)
        return lake.write("immutable", ATTACH + "".join(made))

    return make


@pytest.fixture(scope="module")
def cached(moto) -> dict[str, str]:
    return cache_settings(moto)


@contextmanager
def writing(lake, moto):
    """A DuckDB that changes the lake and reads its rows."""
    with connect(LAKE, moto) as con:
        attach(con, lake, read_only=False)
        con.execute("USE lake")
        yield con


def rows(con, table: str = "t") -> list[tuple]:
    return sorted(con.execute(f'SELECT i, s FROM lake.main."{table}"').fetchall())


def load(uri: str, table: str = "t") -> dict:
    answer = send(uri, "GET", f"/v1/lake/namespaces/main/tables/{table}?snapshots=all")
    assert answer.status == 200, answer.text
    return json.loads(answer.body)


def target_of(location: str) -> str:
    return "/" + location.removeprefix("s3://")


def files(s3_uri: str, loaded: dict) -> dict[str, bytes]:
    """Every generated file that the answer refers to, from the top down, by its target."""
    found: dict[str, bytes] = {}

    def read(location: str) -> bytes:
        target = target_of(location)
        if target not in found:
            answer = send(s3_uri, "GET", target)
            assert answer.status == 200, (target, answer)
            found[target] = answer.body
        return found[target]

    own = loaded["metadata"]["location"] + "/"
    read(loaded["metadata-location"])
    for entry in loaded["metadata"]["metadata-log"]:
        read(entry["metadata-file"])
    for snapshot in loaded["metadata"]["snapshots"]:
        for manifest in fastavro.reader(BytesIO(read(snapshot["manifest-list"]))):
            body = read(manifest["manifest_path"])
            assert len(body) == manifest["manifest_length"]
            for entry in fastavro.reader(BytesIO(body)):
                file = entry["data_file"]
                if file["file_path"].startswith(own):
                    assert len(read(file["file_path"])) == file["file_size_in_bytes"]
    return found


def tables_of(uri: str, s3_uri: str, *names: str) -> dict:
    """PyIceberg's tables as loaded now: each plans with this metadata."""
    catalog = load_catalog(
        "planned",
        **{
            "type": "rest",
            "uri": uri,
            "warehouse": "lake",
            **s3_properties(s3_uri),
        },
    )
    with closing(catalog):
        return {name: catalog.load_table(("main", name)) for name in names}


def scanned(table) -> list[tuple]:
    return sorted((row["i"], row["s"]) for row in table.scan().to_arrow().to_pylist())


def outcome(table) -> list[tuple] | Exception:
    """The rows or the error of a scan, for a fixture that ends before its tests: pytest-xdist may
    mix the tests of two fixtures, and only one bridge can be in this process at a time."""
    try:
        return scanned(table)
    except Exception as error:
        return error


@pytest.mark.parametrize("number", ["16", pytest.param("09", marks=pytest.mark.slow)])
def test_two_processes_make_the_same_bytes(lake, moto, number):
    """One process reads from the top down, one from the bottom up, each with an empty store."""
    served = lake(number)
    with ExitStack() as both:
        one, two = (
            both.enter_context(
                serving(
                    served.database.url,
                    moto,
                    delivery="object-lambda",
                    settings={"PYTHONHASHSEED": seed, "TZ": zone},
                )
            )
            for seed, zone in (("1", "UTC"), ("2", "Asia/Kolkata"))
        )
        with closing(native.open(served, moto)) as truth:
            tables = [table.name for table in truth.tables()]
        made: dict[str, bytes] = {}
        for table in tables:
            loaded = load(one.catalog_uri, table)
            assert load(two.catalog_uri, table) == loaded
            made |= files(one.s3_endpoint, loaded)
        for target, body in reversed(made.items()):
            assert send(two.s3_endpoint, "GET", target).body == body, target
        assert len({target.rpartition("/")[2].split("-")[0] for target in made}) >= 3


@pytest.mark.parametrize("history", HISTORIES)
def test_both_deliveries_give_the_same_bytes(make_lake, moto, history):
    lake = make_lake(history, ["t"])
    s3 = boto3.client("s3", endpoint_url=moto)
    # A real bucket with the name of the virtual one of the other delivery.
    s3.create_bucket(Bucket=ALIAS)
    how = {"delivery": "materialize", "confined": False, "VIRTUAL_BUCKET": ALIAS}
    with standing_in(lake, moto, **how) as stand_in:
        put = load(stand_in.api_uri)
        walked = files(stand_in.s3_uri, put)
    uuid = put["metadata"]["table-uuid"]
    objects = s3.list_objects_v2(Bucket=ALIAS, Prefix=f"polynya/{uuid}/")["Contents"]
    keys = {f"/{ALIAS}/{found['Key']}" for found in objects}
    # Most files have a summary beside them, which the next manifest or list needs.
    assert {key for key in keys if not key.endswith(".summary")} == walked.keys()
    assert {key.removesuffix(".summary") for key in keys} == walked.keys()
    del walked[target_of(put["metadata-location"])]
    with standing_in(lake, moto) as stand_in:
        # Only files that are generated when they are read can be in the metadata log.
        loaded = load(stand_in.api_uri)
        assert loaded["metadata"].pop("metadata-log") and put["metadata"].pop("metadata-log") == []
        assert loaded["metadata"] == put["metadata"]
        for target, body in walked.items():
            assert send(stand_in.s3_uri, "GET", target).body == body, target


WITHOUT_STORE = [
    "files",
    pytest.param("inlined", marks=pytest.mark.slow),
    pytest.param("version_3", marks=pytest.mark.slow),
]


@pytest.fixture(scope="module", params=WITHOUT_STORE)
def without_store(request, make_lake, moto):
    """For each mutation, without a store: the files before it and what their names give after it;
    the result of a scan planned before it, and the rows at that time."""
    lake = make_lake(request.param, MUTATIONS)
    with standing_in(lake, moto) as stand_in, writing(lake, moto) as con:
        planned = tables_of(stand_in.api_uri, stand_in.s3_uri, *MUTATIONS)
        then = {name: rows(con, name) for name in MUTATIONS}
        before = {name: files(stand_in.s3_uri, load(stand_in.api_uri, name)) for name in MUTATIONS}
        for name, sql in MUTATIONS.items():
            con.execute(sql.format(t=name))
        reset_functions()
        after = {
            name: {
                method: {target: send(stand_in.s3_uri, method, target) for target in before[name]}
                for method in ("GET", "HEAD")
            }
            for name in MUTATIONS
        }
        read = {name: outcome(planned[name]) for name in HARMLESS}
    return SimpleNamespace(history=request.param, before=before, after=after, read=read, then=then)


@pytest.mark.parametrize("mutation", MUTATIONS)
def test_a_name_gives_its_bytes_or_nothing(without_store, mutation):
    gone = []
    for target, body in without_store.before[mutation].items():
        answer, head = (without_store.after[mutation][method][target] for method in ("GET", "HEAD"))
        assert head.status == answer.status
        if answer.status == 404:
            assert b"<Code>NoSuchKey</Code>" in answer.body
            gone.append(target)
        else:
            assert (answer.status, answer.body == body) == (200, True), target
    if mutation in HARMLESS:
        assert not gone
        assert without_store.read[mutation] == without_store.then[mutation]
    if mutation == "two_deletes" and without_store.history == "files":
        # No file has the old deletes any more: the newest list must be missing, not newer.
        lists = [target for target in without_store.before[mutation] if "/list-" in target]
        assert lists[-1] in gone


@pytest.mark.slow
def test_a_change_of_the_layout_changes_no_bytes(lake, moto):
    made = "".join(PARTITIONED.format(t=table) for table in LAYOUTS)
    written = lake.write("layouts", ATTACH + made)
    wrong = []
    with standing_in(written, moto) as stand_in, writing(written, moto) as con:
        before = {name: files(stand_in.s3_uri, load(stand_in.api_uri, name)) for name in LAYOUTS}
        for name, sql in LAYOUTS.items():
            con.execute(sql.format(t=name))
        reset_functions()
        for name, bodies in before.items():
            assert any("/rows-" in target for target in bodies)
            answers = {target: send(stand_in.s3_uri, "GET", target) for target in bodies}
            wrong += [
                f"{name}: {target}: {answer.status}"
                for target, answer in answers.items()
                if answer.status != 404 and (answer.status, answer.body) != (200, bodies[target])
            ]
            files(stand_in.s3_uri, load(stand_in.api_uri, name))  # all of the new ones are there
    assert wrong == []


# CI has the history with both files and inlined rows.
HISTORIES_AND_DELIVERIES = [
    pytest.param(
        (history, delivery),
        id=f"{history}-{delivery}",
        marks=[pytest.mark.slow] * ((history, delivery) not in IN_CI),
    )
    for history, delivery in itertools.product(HISTORIES, ("object-lambda", "materialize"))
]


@pytest.fixture(scope="module", params=HISTORIES_AND_DELIVERIES)
def with_store(request, make_lake, moto, cached):
    """For each mutation, with a store: the result of a scan planned before it and the rows at that
    time; the result of a scan planned after it and the rows at that time."""
    history, delivery = request.param
    lake = make_lake(history, KEPT)
    standing = standing_in(lake, moto, delivery=delivery, **cached)
    with standing as stand_in, writing(lake, moto) as con:
        planned = tables_of(stand_in.api_uri, stand_in.s3_uri, *KEPT)
        then = {name: rows(con, name) for name in KEPT}
        for table in planned.values():
            # `materialize` puts the list on loadTable; `object-lambda` stores what is read.
            assert send(stand_in.s3_uri, "GET", target_of(table.current_snapshot().manifest_list))
        for name in KEPT:
            con.execute(MUTATIONS[name].format(t=name))
        reset_functions()
        read = {name: outcome(planned[name]) for name in KEPT}
        left = [name for name in KEPT if name != "drop_table"]
        anew = tables_of(stand_in.api_uri, stand_in.s3_uri, *left)
        read_anew = {name: outcome(table) for name, table in anew.items()}
        now = {name: rows(con, name) for name in left}
    return SimpleNamespace(read=read, then=then, read_anew=read_anew, now=now)


@pytest.mark.parametrize("mutation", KEPT)
def test_a_plan_whose_list_is_stored_can_be_read_completely(with_store, mutation):
    """The scan gives the rows of its plan; a new plan gives the current rows."""
    assert with_store.read[mutation] == with_store.then[mutation] != []
    assert with_store.read_anew.get(mutation) == with_store.now.get(mutation)


def test_a_commit_makes_its_own_files_and_no_others(make_lake, moto):
    """They are the document, a list, and the manifests of the changes, not those of the history."""
    lake = make_lake("files", ["t"])
    with standing_in(lake, moto) as stand_in, writing(lake, moto) as con:
        for number in range(12):
            con.execute(f"INSERT INTO t VALUES ({2000 + number}, 'one more')")
        before = files(stand_in.s3_uri, load(stand_in.api_uri))
        assert len(before) > 12
        con.execute("INSERT INTO t VALUES (3000, 'the last')")
        made = files(stand_in.s3_uri, load(stand_in.api_uri)).keys() - before.keys()
    # Nobody but DuckDB, in a transaction from before a commit, reads one of the metadata log.
    made = {target for target in made if "/earlier-" not in target}
    assert 3 <= len(made) <= 4, made


OTHER_DELIVERY = pytest.param("object-lambda", marks=pytest.mark.slow)


@pytest.mark.parametrize("delivery", ["materialize", OTHER_DELIVERY])
def test_a_fresh_client_sees_each_change_at_once(make_lake, moto, delivery):
    lake = make_lake("inlined", ["t"])
    changes = [
        "SELECT 1",
        "INSERT INTO t VALUES (7001, 'new')",
        "DELETE FROM t WHERE i = 7001 OR i = 499",
        "UPDATE t SET s = 'new' WHERE i = 7",
        "INSERT INTO t SELECT 8000 + i, 'many' FROM range(200) AS r(i)",
        "DELETE FROM t WHERE i < 100",
        "CALL ducklake_flush_inlined_data('lake')",
        "DELETE FROM t",
    ]
    with (
        bridge(lake, moto, delivery=delivery) as running,
        writing(lake, moto) as con,
    ):
        seen = []
        for sql in changes:
            con.execute(sql)
            table = tables_of(running.catalog_uri, running.s3_endpoint, "t")["t"]
            assert scanned(table) == rows(con), sql
            seen.append(rows(con))
    assert len({str(content) for content in seen}) == len(changes) - 1  # a flush changes no row
