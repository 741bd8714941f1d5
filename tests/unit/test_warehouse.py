"""The names of a lake, in `warehouse` and in path prefixes."""

import pytest
from polynya.catalog.warehouse import Warehouse, no_such_warehouse
from polynya.runtime.settings import CLIENTS

# (name, prefix, warehouse)
NAMES = [
    ("lake", "lake", Warehouse("lake")),
    ("lake@0", "lake--at-0", Warehouse("lake", 0)),
    ("lake@12", "lake--at-12", Warehouse("lake", 12)),
    ("a--at-1@2", "a--at-1--at-2", Warehouse("a--at-1", 2)),
    (f"lake@{10**17}", f"lake--at-{10**17}", Warehouse("lake", 10**17)),
    ("lake+v3", "lake.v3", Warehouse("lake", None, True)),
    ("lake+v3@0", "lake.v3--at-0", Warehouse("lake", 0, True)),
    ("a-v3+v3@2", "a-v3.v3--at-2", Warehouse("a-v3", 2, True)),
    ("a--v3", "a--v3", Warehouse("a--v3")),
    ("lake+spark", "lake.spark", Warehouse("lake", None, False, frozenset(("spark",)))),
    (
        "lake+v3+iceberg-go+spark@7",
        "lake.v3.iceberg-go.spark--at-7",
        Warehouse("lake", 7, True, frozenset(("iceberg-go", "spark"))),
    ),
    ("lake+all", "lake.all", Warehouse("lake", None, False, CLIENTS)),
    ("lake+none@7", "lake.none--at-7", Warehouse("lake", 7, False, frozenset())),
]


@pytest.mark.parametrize(("name", "prefix", "warehouse"), NAMES)
def test_name_and_prefix_are_forms_of_the_same_warehouse(name, prefix, warehouse):
    assert Warehouse.parse_name(name) == Warehouse.parse_prefix(prefix) == warehouse
    assert (str(warehouse), warehouse.prefix) == (name, prefix)


def test_a_plus_that_a_client_has_not_escaped_is_a_space():
    assert Warehouse.parse_name("lake v3@7") == Warehouse.parse_name("lake+v3@7")


def test_clients_may_be_in_any_order():
    two = Warehouse("lake", 7, True, frozenset(("spark", "trino")))
    assert Warehouse.parse_name("lake+trino+v3 spark@7") == two


OTHERS = ["lake+sprak", "lake+spark+spark", "lake+all+spark", "lake+", "lake+spark+v2"]
OTHERS += ["lake@", "lake@012", "lake@-1", "a/b@1", f"lake@{10**18}", "@1", "+v3", "lake+v2"]
OTHERS += ["lake@1+v3", "lake+v3+v3", "lake+V3", "lake.v3"]


@pytest.mark.parametrize("text", OTHERS)
def test_another_text_is_a_name_without_a_snapshot(text):
    assert Warehouse.parse_name(text) == Warehouse(text)
    assert Warehouse.parse_prefix(text.replace("@", "--at-")).snapshot_id is None
    assert not Warehouse.parse_prefix(text).shows_version_3 or text == "lake.v3"


def test_the_words_that_are_known_are_listed_where_another_one_follows_a_plus():
    message = str(no_such_warehouse("lake+sprak"))
    assert "what follows a + may be v3, all, none, or some of clickhouse, daft" in message
    assert str(no_such_warehouse("lak")) == "Warehouse does not exist: lak"


def test_a_prefix_has_no_at_sign():
    assert Warehouse.parse_prefix("lake@12") == Warehouse("lake@12")
