"""Eight random operations on each table of each lake: native DuckLake, and PyIceberg.

A copy of the rows in memory judges after each operation. An operation that a writer refuses changes
nothing. POLYNYA_FIRST_HISTORY sets another seed.
"""

import os
from contextlib import closing
from random import Random

import pytest
from polynya_local.clients import native
from polynya_local.clients.duckdb import LAKE, connect, identifier
from polynya_local.clients.native import attach
from polynya_local.clients.pyiceberg import s3_properties
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import BadRequestError

from tests.e2e.writes.rows.test_lakes import CLIENTS_OWN, NOT_SERVED, WRONG
from tests.histories.mixed.clients.pyiceberg import without_retries
from tests.histories.mixed.lake_table import APPEND, DELETE, NATIVE, LakeTable
from tests.support.servers.in_process import bridge
from tests.support.writes.writable import set_up_writes

SEED = int(os.environ.get("POLYNYA_FIRST_HISTORY", "1"))
STEPS = 8
IN_BOTH_VERSIONS = False
LEFT_OUT = WRONG | {
    # DuckLake's own INSERT … SELECT finds no row for a filter on a promoted column.
    ("58", "me"),
    ("65", "pp"),
}
REFUSED = (BadRequestError, *CLIENTS_OWN)

pytestmark = pytest.mark.filterwarnings("ignore:Delete operation did not match any records")


@pytest.fixture
def opened(lake_name, lake, moto):
    """The lake, a connection that writes to it, and a client."""
    if lake_name.partition("_")[0] in NOT_SERVED:
        pytest.skip("an encrypted lake is not served: tests/e2e has its refusal")
    one = set_up_writes(lake.fresh(lake_name))
    with (
        bridge(one, moto, writes=True) as served,
        connect(LAKE, moto) as con,
        without_retries(),
    ):
        attach(con, one, read_only=False)
        properties = s3_properties(moto)
        catalog = RestCatalog("c", uri=served.catalog_uri, warehouse="lake", **properties)
        with closing(catalog):
            yield one, con, catalog


@pytest.mark.slow
def test_rows_are_those_of_the_copy(lake_name, opened, moto, left_out):
    lake, con, catalog = opened
    rng = Random(f"{lake_name} {SEED}")
    with closing(native.open(lake, moto)) as reader:
        tables = reader.tables()
    for table in tables:
        if (lake_name.partition("_")[0], table.name) in LEFT_OUT:
            continue
        name = (table.namespace, table.name)
        try:
            columns = [field.name for field in catalog.load_table(name).schema().fields]
        except BadRequestError as error:
            left_out.append(f"history of {lake_name} {'.'.join(name)}: {error}")
            continue
        source = ".".join(map(identifier, ("lake", *name)))
        done = _history(LakeTable(con, source, tuple(columns), rng), catalog, name, lake)
        if not done:
            left_out.append(f"history of {lake_name} {'.'.join(name)}: no column for a filter")


def _history(table, catalog, name, lake):
    """Do the operations; whether there were any."""
    done = []
    for _ in range(STEPS):
        where = table.where()
        if where is None:
            break
        action = table.rng.choice((_native, _native, _append, _delete))
        done.append(f"{action(table, catalog, name, where)} where {where.sql}")
        table.con.execute("DETACH lake")
        attach(table.con, lake, read_only=False)
        wrong = list(table.wrong())
        assert wrong == [], "\n".join([*map(str, name), *done, *wrong])
    return done


def _native(table, _, __, where):
    sql = table.rng.choice(NATIVE)
    table.natively(sql, where)
    return sql


def _append(table, catalog, name, where):
    """PyIceberg appends rows that it reads."""
    opened = catalog.load_table(name)
    try:
        rows = opened.scan(row_filter=where.expression).to_arrow()
        opened.append(rows)
    except REFUSED:
        return "refused append"
    table.change_twin(APPEND, where)
    return "append"


def _delete(table, catalog, name, where):
    """PyIceberg deletes rows."""
    try:
        catalog.load_table(name).delete(where.expression)
    except REFUSED:
        return "refused delete"
    table.change_twin(DELETE, where)
    return "delete"
