"""The snippets of clients: which snapshot they name, and that no name escapes its quotes."""

import ast

import pytest
from polynya.runtime.namespaces import dotted
from polynya_local.reports.snippets import (
    CLIENTS,
    FIRST_CLIENTS,
    Place,
    blocks,
    client,
    connect_blocks,
)

PLACE = Place("http://127.0.0.1:8181", "lake", "http://127.0.0.1:8182", "main", "t")
THEN = Place("http://127.0.0.1:8181", "lake", "http://127.0.0.1:8182", "main", "t", 7, 12)
WITHOUT_OWN_WAY = Place("http://127.0.0.1:8181", "lake", "http://127.0.0.1:8182", "main", "t", 7)
HOSTILE = 'a"b\'c`d\\e\n$warehouse"""; --'

OWN_WAYS = {
    "DuckDB": 'FROM ice."main"."t" AT (VERSION => 12);',
    "PyIceberg": ".scan(snapshot_id=12)",
    "Spark": '"SELECT * FROM ice.`main`.`t` VERSION AS OF 12"',
    "Polars": "scan_iceberg(table, snapshot_id=12, storage_options",
    "Daft": "read_iceberg(table, snapshot_id=12, io_config",
    "DataFusion": '"warehouse": "lake@7"',
    "ClickHouse": "FROM ice.`main.t` SETTINGS iceberg_snapshot_id = 12;",
    "Trino": 'FROM ice."main"."t" FOR VERSION AS OF BIGINT \'12\';',
    "Flink": "FROM ice.`main`.`t` /*+ OPTIONS('snapshot-id'='12') */;",
}


def text(name: str, place: Place) -> str:
    return "\n".join(block.text for block in blocks(client(name), place))


def test_each_client_has_a_snippet():
    assert [one.name for one in CLIENTS] == list(OWN_WAYS)


@pytest.mark.parametrize("name", OWN_WAYS)
def test_a_snapshot_is_named_in_the_clients_own_way(name):
    assert OWN_WAYS[name] in text(name, THEN)


@pytest.mark.parametrize("name", OWN_WAYS)
def test_without_an_own_way_the_warehouse_is_pinned(name):
    assert "lake@7" in text(name, WITHOUT_OWN_WAY)
    assert "12" not in text(name, WITHOUT_OWN_WAY).replace("127.0.0.1", "")


@pytest.mark.parametrize("name", OWN_WAYS)
def test_the_newest_state_has_no_snapshot(name):
    assert "lake@" not in text(name, PLACE)
    assert not any(word in text(name, PLACE) for word in ("VERSION", "snapshot_id", "snapshot-id"))


@pytest.mark.parametrize("place", [PLACE, WITHOUT_OWN_WAY])
@pytest.mark.parametrize("name", FIRST_CLIENTS)
def test_connecting_is_how_the_tested_snippet_begins(name, place):
    (block,) = connect_blocks(client(name), place)
    assert block.text.strip() and text(name, place).startswith(block.text)
    assert "SELECT" not in block.text and "load_table" not in block.text


@pytest.mark.parametrize("one", [c for c in CLIENTS if c.read.language.name == "python"])
def test_python_has_the_names_as_constants(one):
    place = Place("http://c", HOSTILE, "http://s", dotted(HOSTILE), HOSTILE, key_id=HOSTILE)
    (block,) = blocks(one, place)
    constants = {
        node.value for node in ast.walk(ast.parse(block.text)) if isinstance(node, ast.Constant)
    }
    assert HOSTILE in constants
    if one.read.query is None:
        assert sum(HOSTILE in str(constant) for constant in constants) == 1
