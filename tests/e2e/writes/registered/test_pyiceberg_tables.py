"""Tables of PyIceberg's own catalog that are registered: all readers get the rows of the source."""

import json
from datetime import date

import pyarrow as pa
import pytest

from tests.support.writes.everywhere import everywhere, plain
from tests.support.writes.sources import ROOT, pyiceberg_source

RULE = {
    "principals": ["*"],
    "tables": {"*": ["*"]},
    "write": {"*": ["*"]},
    "add_files": [ROOT],
}


@pytest.fixture(scope="module")
def lake_of(lake, moto):
    policy = json.dumps({"rules": [RULE]})
    with everywhere(lake, moto, "registered", AUTHORIZATION=policy) as one:
        yield one


@pytest.fixture(scope="module")
def source(tmp_path_factory, moto):
    with pyiceberg_source(tmp_path_factory.mktemp("source"), moto) as catalog:
        yield catalog


def test_plain(lake_of, source):
    at, name = lake_of, lake_of.new("plain")
    rows = pa.table(
        {
            "id": pa.array([1, 2, 3], pa.int64()),
            "s": ["a", None, "c"],
            "day": [date(2024, 1, 1), date(2024, 1, 2), date(2024, 1, 2)],
        }
    )
    table = source.create_table(f"main.{name}", rows.schema)
    table.append(rows)
    table.append(rows)
    table.delete("id = 2")
    with at.commits():
        at.catalog.register_table(f"main.{name}", table.metadata_location)
    assert plain(at.check(name)) == plain(
        tuple(r.values()) for r in table.scan().to_arrow().to_pylist()
    )
    print(at.document(name)["snapshots"])
    at.catalog.load_table(f"main.{name}").append(rows)
    at.native(f"INSERT INTO main.{name} VALUES (9, 'x', NULL)")
    at.check(name)
    print(at.document(name)["snapshots"][0])
