"""A catalog of a version that Polynya does not write: it is read, and every change is refused."""

import pyarrow as pa
import pytest
from polynya_local.clients.pyiceberg import s3_properties
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import BadRequestError

from tests.support.catalog_versions import to_1_1
from tests.support.servers.in_process import bridge
from tests.support.writes.twins import catalog_rows
from tests.support.writes.writable import set_up_writes

SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
USE lake;
CREATE TABLE t (a INTEGER); INSERT INTO t VALUES (1), (2);
CREATE SCHEMA nothing; CREATE VIEW v AS SELECT 1 AS a;
"""
ROWS = pa.table({"a": pa.array([3], pa.int32())})

# What a client asks for, by its name in the REST catalog's specification.
CHANGES = {
    "createNamespace": lambda catalog: catalog.create_namespace("new"),
    "updateProperties": lambda catalog: catalog.update_namespace_properties(
        "nothing", updates={"owner": "me"}
    ),
    "dropNamespace": lambda catalog: catalog.drop_namespace("nothing"),
    "createTable": lambda catalog: catalog.create_table("main.new", ROWS.schema),
    "updateTable": lambda catalog: catalog.load_table("main.t").append(ROWS),
    "dropTable": lambda catalog: catalog.drop_table("main.t"),
    "renameTable": lambda catalog: catalog.rename_table("main.t", "main.u"),
    "dropView": lambda catalog: catalog.drop_view("main.v"),
}


@pytest.fixture(scope="module")
def newer(lake):
    made = set_up_writes(lake.write("newer-version", SCRIPT))
    to_1_1(made)
    return made


@pytest.fixture(scope="module")
def catalog(newer, moto):
    with bridge(newer, moto, writes=True) as served:
        s3 = s3_properties(served.s3_endpoint)
        with load_catalog("p", type="rest", uri=served.catalog_uri, warehouse="lake", **s3) as one:
            yield one


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_is_refused_with_the_version(newer, catalog, change):
    before = catalog_rows(newer)
    with pytest.raises(BadRequestError, match=r"DuckLake version 1\.1"):
        CHANGES[change](catalog)
    assert catalog_rows(newer) == before


def test_its_rows_are_read(catalog):
    assert catalog.load_table("main.t").scan().to_arrow()["a"].to_pylist() == [1, 2]
