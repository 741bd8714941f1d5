"""PostgreSQL goes away within a commit: the rows are there exactly once, or not at all."""

import itertools
import json
import re
from contextlib import closing
from dataclasses import replace

import boto3
import pyarrow as pa
import pytest
import urllib3
from polynya.catalog.warehouse import WRITE_ENDPOINTS
from polynya.commits import attempts
from polynya_local.writes import everybody_may_write
from pyiceberg.exceptions import CommitStateUnknownException

from tests.support.lakes import BUCKET
from tests.support.servers.cut_connections import cutting
from tests.support.servers.in_process import bridge
from tests.support.writes.writable import EMPTY, client_of, judging, set_up_writes

pytestmark = pytest.mark.versions("1.0")

EVERY = 7
"""All pieces were cut once; every seventh takes half a minute."""
AT_LEAST = 4
"""Cuts of an append: it sends some thirty statements, each of them in one piece or more."""
SCHEMA = pa.schema([("id", pa.int64())])


FIELD = {"id": 1, "name": "id", "type": "long", "required": False}
SCHEMA_OF_ID = {"type": "struct", "schema-id": 0, "fields": [FIELD]}
TEXT_OF_ID = {"type": "sql", "sql": "SELECT 1 AS id", "dialect": "duckdb"}
VERSION = {
    "version-id": 1,
    "timestamp-ms": 1_700_000_000_000,
    "schema-id": 0,
    "summary": {},
    "representations": [TEXT_OF_ID],
    "default-namespace": ["main"],
}
ONE_TABLE, ONE_VIEW = "CREATE TABLE t{n} (id BIGINT);", "CREATE VIEW v{n} AS SELECT 1 AS id;"
TABLE, VIEW = "namespaces/main/tables/t{n}", "namespaces/main/views/v{n}"


def renaming(kind: str) -> dict:
    return {
        "source": {"namespace": ["main"], "name": kind + "{n}"},
        "destination": {"namespace": ["main"], "name": "renamed{n}"},
    }


def of_schema(*fields: dict) -> dict:
    """A commit that asserts the schema before it, as all clients do."""
    schema = SCHEMA_OF_ID | {"fields": list(fields)}
    changes = ("add-schema", {"schema": schema}), ("set-current-schema", {"schema-id": -1})
    return commit_of(*changes) | {"requirements": [{"type": "assert-current-schema-id"}]}


def commit_of(*updates: tuple[str, dict]) -> dict:
    return {
        "requirements": [],
        "updates": [{"action": action, **update} for action, update in updates],
    }


SOURCE = "source/empty.metadata.json"
EMPTY_SOURCE = {
    "format-version": 2,
    "table-uuid": "00000000-0000-4000-8000-000000000000",
    "location": f"s3://{BUCKET}/source/empty",
    "last-sequence-number": 0,
    "last-updated-ms": 1_700_000_000_000,
    "last-column-id": 1,
    "schemas": [SCHEMA_OF_ID],
    "current-schema-id": 0,
    "partition-specs": [{"spec-id": 0, "fields": []}],
    "default-spec-id": 0,
    "last-partition-id": 999,
    "sort-orders": [{"order-id": 0, "fields": []}],
    "default-sort-order-id": 0,
}
"""The metadata of a table that is registered."""
ADDED = {"id": 2, "name": "more", "type": "long", "required": False}
SPEC = {"spec-id": 1, "fields": [{"source-id": 1, "name": "id", "transform": "identity"}]}
BY_ID = {"transform": "identity", "direction": "asc", "null-order": "nulls-first"}
ORDER = {"order-id": 1, "fields": [{"source-id": 1, **BY_ID}]}
CREATING = {
    **commit_of(
        ("assign-uuid", {"uuid": "00000000-0000-4000-8000-{n:012}"}),
        ("add-schema", {"schema": SCHEMA_OF_ID}),
        ("set-current-schema", {"schema-id": -1}),
    ),
    "requirements": [{"type": "assert-create"}],
}
SET = ("set-properties", {"updates": {"k": "v"}})
BOTH = [
    of_schema(FIELD, ADDED) | {"identifier": {"namespace": ["main"], "name": name}}
    for name in ("t{n}", "u{n}")
]

# What it needs, method, path, body, and what DuckLake records, of every operation that writes. The
# number of the case is put in.
OPERATIONS = {
    "create a table": (
        *("", "POST", "namespaces/main/tables", {"name": "t{n}", "schema": SCHEMA_OF_ID}),
        'created_table:"main"."t{n}"',
    ),
    "create a table by a commit": ("", "POST", TABLE, CREATING, 'created_table:"main"."t{n}"'),
    "add a column": (ONE_TABLE, "POST", TABLE, of_schema(FIELD, ADDED), "altered_table:"),
    "rename a column": (
        *(ONE_TABLE, "POST", TABLE, of_schema(FIELD | {"name": "renamed"})),
        "altered_table:",
    ),
    "partition": (
        *(ONE_TABLE, "POST", TABLE),
        commit_of(("add-spec", {"spec": SPEC}), ("set-default-spec", {"spec-id": -1})),
        "altered_table:",
    ),
    "sort": (
        *(ONE_TABLE, "POST", TABLE),
        commit_of(
            ("add-sort-order", {"sort-order": ORDER}),
            ("set-default-sort-order", {"sort-order-id": -1}),
        ),
        "altered_table:",
    ),
    "set properties": (ONE_TABLE, "POST", TABLE, commit_of(SET), "altered_table:"),
    "change two tables": (
        *(ONE_TABLE + ONE_TABLE.replace("t{n}", "u{n}"), "POST", "transactions/commit"),
        {"table-changes": BOTH},
        "altered_table:",
    ),
    "register a table": (
        *("", "POST", "namespaces/main/register"),
        {"name": "t{n}", "metadata-location": f"s3://{BUCKET}/{SOURCE}"},
        'created_table:"main"."t{n}"',
    ),
    "rename a table": (
        *(ONE_TABLE, "POST", "tables/rename", renaming("t")),
        'created_table:"main"."renamed{n}"',
    ),
    "drop a table": (ONE_TABLE, "DELETE", TABLE, None, "dropped_table:"),
    "create a view": (
        *("", "POST", "namespaces/main/views"),
        {"name": "v{n}", "schema": SCHEMA_OF_ID, "view-version": VERSION, "properties": {}},
        'created_view:"main"."v{n}"',
    ),
    "replace a view": (ONE_VIEW, "POST", VIEW, commit_of(SET), "altered_view:"),
    "rename a view": (
        *(ONE_VIEW, "POST", "views/rename", renaming("v")),
        'created_view:"main"."renamed{n}"',
    ),
    "drop a view": (ONE_VIEW, "DELETE", VIEW, None, "dropped_view:"),
    "create a namespace": (
        *("", "POST", "namespaces", {"namespace": ["s{n}"]}),
        'created_schema:"s{n}"',
    ),
    "set properties of a namespace": (
        *("CREATE SCHEMA s{n};", "POST", "namespaces/s{n}/properties"),
        {"updates": {"k": "v"}, "removals": ["absent"]},
        "",
    ),
    "drop a namespace": (
        *("CREATE SCHEMA s{n};", "DELETE", "namespaces/s{n}", None),
        "dropped_schema:",
    ),
}
LOST = ("before_commit", "after_commit", "after_commit, and away")
CASES = {
    n: (when, operation)
    for n, (when, operation) in enumerate(itertools.product(LOST, OPERATIONS.values()))
}
NAMES_OF_CASES = [f"{name}-{when}" for when, name in itertools.product(LOST, OPERATIONS)]


@pytest.fixture(scope="module")
def served(lake, moto):
    needed = [needs.format(n=n) for n, (_, (needs, *_)) in CASES.items()]
    one = set_up_writes(lake.write("cut", EMPTY + "\n".join(needed)))
    s3 = boto3.client("s3", endpoint_url=moto, region_name="us-east-1")
    s3.put_object(Bucket=BUCKET, Key=SOURCE, Body=json.dumps(EMPTY_SOURCE))
    policy = everybody_may_write(f"s3://{BUCKET}/source/")
    with cutting(one.database.port) as (port, cuts):
        url = replace(one.database, port=port).url
        settings = {"DATABASE_URL": url, "AUTHORIZATION": policy}
        with bridge(one, moto, writes=True, settings=settings) as served:
            yield one, served, cuts


@pytest.fixture
def cuts(served):
    yield served[2]
    served[2].then_away = served[2].is_away = False


@pytest.fixture
def table(served, request):
    with closing(client_of(served[1])) as catalog:
        yield catalog.create_table(f"main.{request.node.name}", SCHEMA)


@pytest.fixture
def ids(served, moto, request):
    def found() -> list[int]:
        with judging(served[0], moto) as judge:
            name = f'lake.main."{request.node.name}"'
            return [id_ for (id_,) in judge.query(f"SELECT id FROM {name} ORDER BY id")]

    return found


def rows(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def test_a_connection_that_is_lost_anywhere_costs_another_attempt(table, cuts, ids):
    """Each append loses its connection some pieces later than the one before."""
    numbers, before = [], cuts.done
    for number in itertools.count(step=EVERY):
        numbers.append(number)
        done, cuts.at_piece = cuts.done, number
        table.append(rows(number))
        if cuts.done == done:
            break
    cuts.at_piece = None
    assert AT_LEAST <= cuts.done - before == len(numbers) - 1
    assert ids() == numbers


@pytest.mark.parametrize("when", ["before_commit", "after_commit"])
def test_a_commit_whose_answer_is_lost_is_found_by_the_next_claim(table, cuts, ids, when):
    done = cuts.done
    setattr(cuts, when, True)
    table.append(rows(1, 2))
    assert cuts.done == done + 1
    assert ids() == [1, 2]
    assert len(table.refresh().snapshots()) == 1


# Each waits until the time of a request is up.
WHILE_AWAY = [
    pytest.param("before_commit", [], marks=pytest.mark.slow),
    pytest.param("after_commit", [1, 2]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("when", "expected"), WHILE_AWAY)
def test_a_commit_is_unknown_while_postgresql_is_away(table, cuts, ids, when, expected):
    setattr(cuts, when, True)
    cuts.then_away = True
    with pytest.raises(CommitStateUnknownException, match="lost at COMMIT"):
        table.append(rows(1, 2))
    assert ids() == expected
    cuts.is_away = False
    assert len(table.refresh().snapshots()) == len(expected) // 2


def test_a_terminated_backend_costs_another_attempt(served, table, ids, monkeypatch):
    """`pg_terminate_backend` just before the files are written."""
    from polynya.ducklake.writes import new_files

    kept, killed = new_files.add, []

    def add(con, *arguments):
        if not killed:
            [[pid]] = con.run("SELECT pg_backend_pid()")
            killed.append(pid)
            served[0].database.run("SELECT pg_terminate_backend(:pid)", pid=pid)
        kept(con, *arguments)

    monkeypatch.setattr(new_files, "add", add)
    table.append(rows(1, 2))
    assert killed and ids() == [1, 2]


@pytest.mark.slow(but=["-after_commit", "[drop a table-before_commit]"])
@pytest.mark.parametrize("n", CASES, ids=NAMES_OF_CASES)
def test_a_change_whose_commit_is_not_answered_takes_place_once(served, cuts, monkeypatch, n):
    """Nothing in these requests tells an attempt that an earlier one has landed."""
    when, (_, method, path, body, recorded) = CASES[n]
    uri = f"{served[1].catalog_uri}/v1/lake/"
    text = numbered(json.dumps(body), n) if body else ""
    if "assert-current-schema-id" in text:
        loaded = urllib3.request("GET", uri + numbered(TABLE, n)).json()["metadata"]
        asserted = f'"current-schema-id": {loaded["current-schema-id"]}'
        text = text.replace('schema-id"}', f'schema-id", {asserted}}}')
    before = changes(served)
    setattr(cuts, when.partition(",")[0], True)
    cuts.then_away = when.endswith("away")
    if cuts.then_away:
        monkeypatch.setattr(attempts, "TRIES", 3)
    done = cuts.done
    answer = urllib3.request(method, uri + numbered(path, n), body=text or None, retries=False)
    assert cuts.done == done + 1
    cuts.is_away = False
    if when.endswith("away"):
        assert answer.status == 500
        assert answer.json()["error"]["type"] == "CommitStateUnknownException"
    else:
        assert answer.status in (200, 204), answer.data
    [made] = changes(served)[len(before) :]
    assert made.startswith(numbered(recorded, n))


def test_every_operation_that_writes_is_in_the_table():
    asked = [f"{method} /v1/{{prefix}}/{path}" for _, method, path, *_ in OPERATIONS.values()]
    for endpoint in WRITE_ENDPOINTS:
        pattern = re.sub(r"\\{(namespace|table|view)\\}", "[^/]+", re.escape(endpoint))
        assert any(re.fullmatch(pattern, one) for one in asked), endpoint


def numbered(template: str, n: int) -> str:
    return template.replace("{n}", str(n)).replace("{n:012}", f"{n:012}")


def changes(served) -> list[str]:
    """What DuckLake lists of each snapshot."""
    rows = served[0].database.run(
        "SELECT changes_made FROM ducklake_snapshot_changes ORDER BY snapshot_id"
    )
    return [made for (made,) in rows]
