"""Position deletes: DuckDB's DELETE, UPDATE, MERGE and TRUNCATE on tables in all states."""

from contextlib import closing

import pytest
from polynya_local.clients import duckdb

from tests.support.writes.starts import NATIVE, STARTS

pytestmark = pytest.mark.versions("1.1", "1.0")

MERGE = """
MERGE INTO {t} AS t USING (VALUES (4, 'new'), (300, 'new')) AS n (id, s) ON t.id = n.id
WHEN MATCHED THEN UPDATE SET s = n.s
WHEN NOT MATCHED THEN INSERT (id, s) VALUES (n.id, n.s)"""

OPERATIONS = {
    "delete": ["DELETE FROM {t} WHERE id IN (1, 6)", "DELETE FROM {t} WHERE id IN (4, 9)"],
    "update": ["UPDATE {t} SET s = 'new' WHERE id IN (3, 9)", "UPDATE {t} SET p = 5 WHERE id >= 3"],
    "merge": [MERGE],
    "delete all": ["DELETE FROM {t}"],
}


@pytest.fixture(scope="module")
def client(served):
    where = served[1].catalog_uri, served[1].warehouse, served[1].s3_endpoint
    with closing(duckdb.open(*where)) as found:
        yield found


@pytest.mark.slow(but=["[both deletes-update]"])
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("start", STARTS)
def test_an_operation_gives_the_same_rows_everywhere(started, client, operation):
    for sql in OPERATIONS[operation]:
        started.changes(sql, lambda sql=sql: client.query(sql.format(t=f"ice.main.{started.name}")))
    assert "deleted_from_table" in started.changes_made() or "inlined" in started.changes_made()
    started.check()
    started.native(*NATIVE)
    started.check()
