"""Trino reads namespaces of several levels; `make trino` runs this file.

In Trino the levels are one name with dots between them, so that `a.b` is always two levels.
"""

from contextlib import closing

import pytest
from polynya_local.clients.canonical import difference, from_arrow

from tests.e2e.test_nested_schemas import bridge, case  # noqa: F401
from tests.engines.trino.client import Failed, Trino
from tests.engines.trino.server import trino
from tests.support.nested_schemas import FLAT

NESTED = {"iceberg.rest-catalog.nested-namespace-enabled": "true"}


def test_tables_of_all_levels(case, bridge):  # noqa: F811
    with trino() as address, closing(Trino(address, bridge, settings=NESTED)) as client:
        schemas = client.query(f"SHOW SCHEMAS FROM {client.catalog}").column(0).to_pylist()
        assert set(schemas) == {".".join(name) for name in FLAT} | {"information_schema", "system"}
        for namespace, flat in FLAT.items():
            if any("." in level for level in namespace):
                continue
            rows = from_arrow(client.rows(".".join(namespace), "t"), case.columns)
            assert not difference(case.rows[flat], rows), namespace
        for snapshot_id, rows in case.europe.items():
            shown = from_arrow(client.rows("sales.europe", "t", snapshot_id), case.columns)
            assert not difference(rows, shown), snapshot_id


def test_without_the_setting_only_the_first_level_is_there(case, bridge):  # noqa: F811
    with trino() as address, closing(Trino(address, bridge)) as client:
        rows = from_arrow(client.rows("sales", "t"), case.columns)
        assert not difference(case.rows["sales"], rows)
        with pytest.raises(Failed, match="Nested namespace is not enabled"):
            client.rows("sales.europe", "t")
