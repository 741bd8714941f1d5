"""Schemas within schemas are Iceberg namespaces of several levels: routes, rows and rights.

A lake of native DuckLake has flat schemas; its catalog is migrated to 1.1, and they are put into
each other. Each table must have the rows that native DuckLake reads in the flat lake.
"""

import json
import re
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import pytest
import requests
from polynya.ducklake import queries
from polynya.ducklake.connection.catalog_connection import CatalogConnection
from polynya.ducklake.queries import named_objects
from polynya_local.clients import duckdb, native, pyiceberg
from polynya_local.clients.canonical import Canonical, Columns, difference, from_arrow
from polynya_local.clients.native import Lake

from tests.support.catalog_versions import catalog_of, to_1_1
from tests.support.native_lakes import snapshots
from tests.support.nested_schemas import FLAT, NESTED, nest, script
from tests.support.servers.in_process import bridge as bridged


@dataclass(frozen=True)
class Case:
    """The lake with nested schemas, and what its tables were in the flat one."""

    lake: Lake
    columns: Columns
    table_ids: dict[str, int]
    rows: dict[str, Canonical]
    """Of each table now, by the name of its schema in the flat lake."""
    europe: dict[int, Canonical]
    """Those of `sales.europe.t` at each snapshot that changed it."""


@pytest.fixture(scope="module")
def case(lake, moto) -> Case:
    made = lake.write("nested", script())
    with closing(native.Native(made, moto)) as reader:
        columns = reader.columns("main", "t")

        def rows(flat: str, snapshot_id: int | None = None) -> Canonical:
            return from_arrow(reader.rows(flat, "t", snapshot_id), columns)

        ids = {table.namespace: table.table_id for table in reader.tables()}
        changed = [
            snapshot_id
            for snapshot_id, changes in snapshots(reader).items()
            if re.search(rf':("in_sales"."t"|{ids["in_sales"]})(,|$)', changes)
        ]
        found = Case(
            made,
            columns,
            ids,
            {flat: rows(flat) for flat in ids},
            {snapshot_id: rows("in_sales", snapshot_id) for snapshot_id in changed},
        )
    to_1_1(made)
    nest(made, NESTED)
    return found


@pytest.fixture(scope="module")
def bridge(case, moto):
    with bridged(case.lake, moto) as served:
        yield served


def path_of(namespace: Sequence[str]) -> str:
    return quote("\x1f".join(namespace), safe="")


def ask(bridge, path: str, method: str = "GET", body: object = None) -> tuple[int, Any]:
    uri = f"{bridge.catalog_uri}/v1/lake/namespaces{path}"
    answer = requests.request(method, uri, json=body, timeout=60)
    return answer.status_code, answer.json() if answer.content else None


def test_pyiceberg(case, bridge):
    with closing(pyiceberg.open(*where(bridge))) as client:
        catalog = client._catalog
        found: set[tuple[str, ...]] = set()
        waiting: list[tuple[str, ...]] = [()]
        while waiting:
            parent = waiting.pop()
            text = "".join(parent)
            inner = catalog.list_namespaces(parent) if quote(text) == text else []
            waiting += inner
            found |= set(inner)
        # PyIceberg 0.12.0 encodes a level of the parameter `parent` twice.
        assert found == set(FLAT) - {("sp ace", "in ner")}
        for namespace, flat in FLAT.items():
            assert catalog.namespace_exists(namespace)
            assert catalog.list_tables(namespace) == [(*namespace, "t")]
            assert catalog.list_views(namespace) == [(*namespace, "v")]
            rows = catalog.load_table((*namespace, "t")).scan().to_arrow()
            assert not difference(case.rows[flat], from_arrow(rows, case.columns)), namespace
        table = catalog.load_table(("sales", "europe", "t"))
        assert [one.snapshot_id for one in table.snapshots()] == list(case.europe)
        for snapshot_id, rows in case.europe.items():
            shown = table.scan(snapshot_id=snapshot_id).to_arrow()
            assert not difference(rows, from_arrow(shown, case.columns)), snapshot_id


def test_duckdb(case, bridge):
    """It takes the dots of a name for levels, and lists those of several only on demand."""
    with closing(duckdb.open(*where(bridge))) as reader:
        for namespace, flat in FLAT.items():
            if any({".", '"'} & set(level) for level in namespace):
                continue
            name = ".".join(namespace)
            rows = from_arrow(reader.rows(name, "t"), case.columns)
            assert not difference(case.rows[flat], rows), namespace
        for snapshot_id, rows in case.europe.items():
            shown = from_arrow(reader.rows("sales.europe", "t", snapshot_id), case.columns)
            assert not difference(rows, shown), snapshot_id
        # Of ("a.b",) and ("a", "b") it finds the second, until it has listed all schemas.
        rows = from_arrow(reader.rows("a.b", "t"), case.columns)
        assert not difference(case.rows["in_a"], rows)
        reader.query("DETACH ice")
        attaching = duckdb.attaching(bridge.catalog_uri, "lake")
        reader.query(attaching.replace(")", ", SUPPORT_NESTED_NAMESPACES true)"))
        schemas = reader.query("SELECT schema_name FROM duckdb_schemas WHERE database_name = 'ice'")
        assert set(schemas["schema_name"].to_pylist()) == {".".join(name) for name in FLAT}


def where(bridge) -> tuple[str, str, str]:
    return bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint


# A path below `namespaces`, and the namespaces that the answer lists; or the status and type.
LISTS = [
    ("", [one for one in FLAT if len(one) == 1]),
    ("?parent=", [one for one in FLAT if len(one) == 1]),
    ("?parent=sales", [("sales", "europe")]),
    ("?parent=sales%1Feurope", [("sales", "europe", "north")]),
    ("?parent=sales%1Feurope%1Fnorth", []),
    ("?parent=europe", []),
    ("?parent=a", [("a", "b"), ("a", 'q"uo.te')]),
    ("?parent=a.b", []),
    ("?parent=a%1Fb", []),
    ("?parent=sp%20ace", [("sp ace", "in ner")]),
    ("?parent=sp%2Bace", [("sp ace", "in ner")]),
]


@pytest.mark.parametrize(("path", "namespaces"), LISTS)
def test_a_list_has_the_namespaces_directly_below(bridge, path, namespaces):
    status, answer = ask(bridge, path)
    assert (status, {tuple(one) for one in answer["namespaces"]}) == (200, set(namespaces))
    assert len(answer["namespaces"]) == len(namespaces)


def test_pages_go_on_below_a_parent(bridge):
    _, first = ask(bridge, "?parent=a&pageSize=1")
    _, second = ask(bridge, f"?parent=a&pageSize=1&pageToken={first['next-page-token']}")
    assert [*first["namespaces"], *second["namespaces"]] == [["a", "b"], ["a", 'q"uo.te']]
    assert "next-page-token" not in second


MISSING = [
    *("?parent=none", "?parent=sales.europe", "?parent=sales%1Fnone", "?parent=europe%1Fnorth"),
    *("/sales.europe", "/sales%1Fnone", "/europe%1Fsales", "/north", "/a%1Fb%1Fc", "/a%1F"),
    *("/%1Fa", "/sales%1Feurope.north", "/sales%1FEurope", "/sales.europe/tables"),
    *("/sales%1Fnone/views", "/in_sales", "/sales%1Feurope/tables/none", "/sales.europe/tables/t"),
    *("/europe%1Fnorth/tables/t", "/sales%1Fnorth/tables/t", "/north/tables/t", "/in_a/tables/t"),
    *("/sales%1Fnorth/views/v", "/sales.europe/views/v", "/" + "a%1F" * 3000 + "a/tables/t"),
]


@pytest.mark.parametrize("path", MISSING)
def test_other_names_do_not_exist(bridge, path):
    status, answer = ask(bridge, path)
    assert status == 404 and answer["error"]["type"].startswith("NoSuch"), answer


@pytest.mark.parametrize("namespace", FLAT)
def test_each_name_is_its_own(case, bridge, namespace):
    path = f"/{path_of(namespace)}"
    assert ask(bridge, path) == (200, {"namespace": list(namespace), "properties": {}})
    assert ask(bridge, path, "HEAD") == ask(bridge, f"{path}/tables/t", "HEAD") == (204, None)
    identifiers = [{"namespace": list(namespace), "name": "t"}]
    assert ask(bridge, f"{path}/tables") == (200, {"identifiers": identifiers})
    _, table = ask(bridge, f"{path}/tables/t")
    con = catalog_of(case.lake)
    table_id = case.table_ids[FLAT[namespace]]
    sql = "SELECT table_uuid::text FROM ducklake_table WHERE table_id = :table_id"
    [[uuid]] = con.run(sql, table_id=table_id)
    con.close()
    assert table["metadata"]["table-uuid"] == uuid
    _, view = ask(bridge, f"{path}/views/v")
    [version] = view["metadata"]["versions"]
    assert version["default-namespace"] == list(namespace)
    _, plan = ask(bridge, f"{path}/tables/t/plan", "POST", {})
    rows = sum(task["data-file"]["record-count"] for task in plan["file-scan-tasks"])
    # Those of files, and of inlined rows.
    wanted = 22 + 1 + 10 if FLAT[namespace] == "in_sales" else 20 + list(FLAT).index(namespace)
    assert (plan["status"], rows) == ("completed", wanted)


def test_java_writes_a_space_as_a_plus_at_each_level(bridge):
    assert ask(bridge, "/sp+ace%1Fin+ner")[1]["namespace"] == ["sp ace", "in ner"]
    assert ask(bridge, "/sp+ace%1Fin+ner/tables/t", "HEAD")[0] == 204


def test_a_table_takes_no_more_statements_in_an_inner_schema(bridge, monkeypatch):
    sent, run = [], CatalogConnection.run

    def counted(con: CatalogConnection, sql: str, *given: Any, **named: Any) -> Any:
        sent.append(sql)
        return run(con, sql, *given, **named)

    monkeypatch.setattr(CatalogConnection, "run", counted)
    numbers = []
    for namespace in (("main",), ("sales",), ("sales", "europe", "north")):
        sent.clear()
        assert ask(bridge, f"/{path_of(namespace)}/tables/t")[0] == 200
        numbers.append(len(sent))
    assert len(set(numbers)) == 1, numbers


def test_other_tables_are_those_of_other_names_at_all_levels(case):
    """Vended credentials of a table hold no directory of a table of its name at another level."""
    con = catalog_of(case.lake)
    found = queries.lake().run(con)
    for table_id in case.table_ids.values():
        others = named_objects.others(found, table_id).run(con)
        assert others.table_ids == {table_id} and len(others.directories) == len(FLAT) - 1
    con.close()


# The tables of a policy for everybody; the namespaces that one sees, and those with their table.
RIGHTS = [
    ({"*": ["*"]}, FLAT, FLAT),
    ({"sales": ["*"]}, [("sales",), ("sales", "europe"), ("sales", "europe", "north")], None),
    (
        {"sales": [{"europe": ["t"]}]},
        [("sales",), ("sales", "europe")],
        [("sales", "europe")],
    ),
    (
        {"sales": [{"europe": [{"north": ["*"]}]}]},
        [("sales",), ("sales", "europe"), ("sales", "europe", "north")],
        [("sales", "europe", "north")],
    ),
    ({"europe": ["*"], "north": ["*"]}, [("europe",)], None),
    ({"a.b": ["*"]}, [("a.b",)], None),
    ({"a": [{"b": ["*"]}]}, [("a",), ("a", "b")], [("a", "b")]),
    ({"sales.europe": ["*"]}, [], []),
]


@pytest.mark.parametrize(("tables", "seen", "readable"), RIGHTS)
def test_rights_hold_at_all_levels(case, moto, tables, seen, readable):
    policy = json.dumps({"rules": [{"principals": ["*"], "tables": tables}]})
    how = {"delivery": "object-lambda", "settings": {"AUTHORIZATION": policy}}
    with bridged(case.lake, moto, **how) as served:
        found = set()
        for namespace in FLAT:
            path = f"/{path_of(namespace)}"
            status, _ = ask(served, path)
            _, inner = ask(served, f"?parent={path_of(namespace[:-1])}")
            is_listed = list(namespace) in inner.get("namespaces", [])
            assert is_listed == (status == 200) == (namespace in seen), namespace
            if ask(served, f"{path}/tables/t", "HEAD")[0] == 204:
                found.add(namespace)
            tables_there = ask(served, f"{path}/tables")[1].get("identifiers", [])
            assert bool(tables_there) == (namespace in found)
        assert found == set(seen if readable is None else readable)


@pytest.fixture
def broken(case):
    """Runs a statement in the catalog, and takes it back after the test."""
    con = catalog_of(case.lake)
    before = con.run("SELECT schema_id, parent_schema_id FROM ducklake_schema")

    def run(sql: str) -> None:
        con.run(sql)

    yield run
    for schema_id, parent_id in before:
        con.run(
            "UPDATE ducklake_schema SET parent_schema_id = :p WHERE schema_id = :s",
            p=parent_id,
            s=schema_id,
        )
    con.close()


def test_a_schema_within_itself_is_refused(bridge, broken):
    broken(
        "UPDATE ducklake_schema SET parent_schema_id = (SELECT schema_id FROM ducklake_schema "
        "WHERE schema_name = 'north') WHERE schema_name = 'sales'"
    )
    for path in ("", "?parent=a", "/a%1Fb", "/a%1Fb/tables"):
        status, answer = ask(bridge, path)
        assert status == 400 and "is within itself (parent_schema_id)" in answer["error"]["message"]
    assert ask(bridge, "/a%1Fb/tables/t", "HEAD")[0] == 204
    assert ask(bridge, "/sales%1Feurope/tables/t", "HEAD")[0] == 404


def test_a_schema_in_one_that_does_not_exist_counts_as_dropped(bridge, broken):
    """So native DuckLake reads it, and skips its tables."""
    broken("UPDATE ducklake_schema SET parent_schema_id = 4711 WHERE parent_schema_id IS NOT NULL")
    names = {tuple(one) for one in ask(bridge, "")[1]["namespaces"]}
    assert names == {one for one in FLAT if len(one) == 1}
    assert ask(bridge, "?parent=sales") == (200, {"namespaces": []})
    for path in ("/sales%1Feurope", "/sales%1Feurope/tables/t", "/europe%1Fnorth", "/b/tables/t"):
        assert ask(bridge, path)[0] == 404
