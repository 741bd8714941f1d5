"""Deletes of more rows than are inlined: native delete files."""

from contextlib import closing

import pytest
from polynya.translate.commits import new_deletes
from polynya_local.clients import duckdb

from tests.support.writes.starts import NATIVE, STARTS


@pytest.fixture(scope="module")
def client(served):
    where = served[1].catalog_uri, served[1].warehouse, served[1].s3_endpoint
    with closing(duckdb.open(*where)) as found:
        yield found


@pytest.fixture(autouse=True)
def few_inlined(monkeypatch):
    monkeypatch.setattr(new_deletes, "MOST_INLINED", 0)


OPERATIONS = {
    "delete": ["DELETE FROM {t} WHERE id IN (1, 6)", "DELETE FROM {t} WHERE id IN (4, 9)"],
}

@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("start", STARTS)
def test_an_operation_gives_the_same_rows_everywhere(started, client, operation):
    for sql in OPERATIONS[operation]:
        started.changes(sql, lambda sql=sql: client.query(sql.format(t=f"ice.main.{started.name}")))
    print(started.changes_made())
    started.check()
    started.native(*NATIVE)
    started.check()
