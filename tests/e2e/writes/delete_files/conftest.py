"""Commits of which all deleted rows go into delete files, as if they were too many to inline.

For each module a lake that Iceberg clients write, and for some a native twin of it.
"""

from contextlib import closing

import pytest
from polynya.commits.plan import row_deletes
from polynya_local.clients import duckdb

from tests.support.servers.in_process import bridge
from tests.support.writes.starts import DO_NOT_INLINE, LAKE
from tests.support.writes.twin import opened
from tests.support.writes.writable import set_up_writes


@pytest.fixture(autouse=True)
def nothing_is_inlined(monkeypatch):
    monkeypatch.setattr(row_deletes, "MOST_INLINED", 0)


@pytest.fixture(scope="module")
def served(lake, moto):
    """The lake, what serves it, and the endpoint of its S3."""
    one = set_up_writes(lake.write("delete_files", LAKE))
    with bridge(one, moto, writes=True) as found:
        yield one, found, moto


@pytest.fixture(scope="module")
def client(served):
    """DuckDB's extension iceberg, whose deletes are position deletes."""
    where = served[1].catalog_uri, served[1].warehouse, served[1].s3_endpoint
    with closing(duckdb.open(*where)) as found:
        yield found


@pytest.fixture
def twin(served):
    """A table with a twin in memory; it is not created yet."""
    with opened(*served) as found:
        found.native(DO_NOT_INLINE)
        yield found


@pytest.fixture
def change(twin, client):
    """Change the table through Iceberg, and its twin in memory."""

    def changed(sql, **more):
        twin.changes(sql, lambda: client.query(sql.format(t=f"ice.main.{twin.name}")), **more)

    return changed
