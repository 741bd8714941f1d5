"""How many statements a commit sends to PostgreSQL, at any number of commits before it."""

from contextlib import closing

import pyarrow as pa
import pytest
from polynya.catalog.writer import WritableCatalog
from polynya.ducklake.connection.catalog_connection import CatalogConnection
from polynya_local.clients import duckdb as duckdb_client
from polynya_local.clients.pyiceberg import s3_properties
from pyiceberg.catalog.rest import RestCatalog

from tests.support.servers.in_process import bridge
from tests.support.writes.writable import EMPTY, set_up_writes

DATA = pa.table({"id": pa.array(range(100), pa.int64()), "s": ["x"] * 100})

MOST = {"append": 40, "delete": 42}
"""BEGIN and COMMIT included; of a warm function that materializes. In most commits they have 38 and
41: chunks of the table come and go."""

MOST_HELD = 15
"""From the claim of an append's snapshot to COMMIT, while all other writers of the lake wait."""


@pytest.fixture(scope="module")
def served(lake, moto):
    one = set_up_writes(lake.write("counted_statements", EMPTY))
    with bridge(one, moto, writes=True) as found:
        yield found


@pytest.fixture
def sent(monkeypatch):
    """The statements of each commit, from the parsed request to the answer."""
    commits: list[list[str]] = []
    run, commit_targets = CatalogConnection.run, WritableCatalog.commit_targets

    def recorded(self, sql, *arguments, **parameters):
        commits[-1].append(sql)
        return run(self, sql, *arguments, **parameters)

    def counted(self, targets):
        commits.append([])
        with monkeypatch.context() as patch:
            patch.setattr(CatalogConnection, "run", recorded)
            return commit_targets(self, targets)

    monkeypatch.setattr(WritableCatalog, "commit_targets", counted)
    return commits


@pytest.mark.slow
def test_earlier_commits_add_no_statements(served, sent):
    where = served.catalog_uri, served.warehouse, served.s3_endpoint
    properties = s3_properties(served.s3_endpoint)
    counts = {"append": [], "delete": []}
    held = []
    with (
        closing(RestCatalog("c", uri=where[0], warehouse=where[1], **properties)) as catalog,
        closing(duckdb_client.open(*where)) as duckdb,
    ):
        catalog.create_table("main.t", DATA.schema).append(DATA)
        for _ in range(12):
            catalog.load_table("main.t").append(DATA)
            counts["append"].append(len(sent[-1]))
            [claim] = [n for n, sql in enumerate(sent[-1]) if "LOCK TABLE polynya_commits" in sql]
            held.append(sent[-1].index("COMMIT", claim) - claim)
            duckdb.query(f"DELETE FROM ice.main.t WHERE id = {len(sent)}")
            counts["delete"].append(len(sent[-1]))
    # Twelve commits of each kind: one statement more for each would be too many.
    for what, most in MOST.items():
        assert max(counts[what]) <= most, counts[what]
    assert max(held) <= MOST_HELD, held
