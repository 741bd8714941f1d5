"""PyIceberg appends to, and deletes from, every table of every lake; native DuckLake has the rows.

A table that refuses is as before, row by row of the catalog; what it says is printed at the end.
"""

from collections import Counter
from contextlib import closing

import pyarrow as pa
import pytest
from polynya_local.clients import native, pyiceberg
from polynya_local.clients.canonical import Canonical, difference, from_arrow
from pyiceberg.exceptions import BadRequestError, NotInstalledError, ServerError
from pyiceberg.expressions import EqualTo, IsNull, Or
from pyiceberg.types import BooleanType, DateType, IntegerType, LongType, StringType

from tests.support.servers.in_process import bridge
from tests.support.writes.twins import catalog_rows
from tests.support.writes.writable import set_up_writes

COMPARABLE = (IntegerType, LongType, StringType, DateType, BooleanType)
CLIENTS_OWN = (
    *(NotImplementedError, ValueError, TypeError, KeyError, OverflowError),
    *(pa.ArrowException, NotInstalledError),
)
"""What PyIceberg itself cannot read or write."""

IN_BOTH_VERSIONS = False
NOT_SERVED = {"29"}
"""An encrypted lake."""

WRONG = {("02", "n")}
"""PyIceberg reads NULL as an empty map there, and writes that."""


@pytest.fixture(scope="module")
def served(lake_name, lake, moto):
    if lake_name.partition("_")[0] in NOT_SERVED:
        pytest.skip("an encrypted lake is not served: tests/e2e has its refusal")
    one = set_up_writes(lake.fresh(lake_name))
    with bridge(one, moto, writes=True) as found:
        yield one, found


@pytest.mark.slow(but=["[17_"])
def test_rows_are_appended_and_deleted(lake_name, served, moto, left_out):
    number = lake_name.partition("_")[0]
    lake, found = served
    where = (found.catalog_uri, found.warehouse, found.s3_endpoint)
    with (
        closing(native.open(lake, moto)) as judge,
        closing(pyiceberg.open(*where)) as client,
    ):
        for table in judge.tables():
            if (number, table.name) in WRONG:
                continue
            for action in (_append, _delete):
                try:
                    action(judge, client._catalog, lake, table)
                except Refused as refused:
                    name = f"{lake_name} {table.namespace}.{table.name}"
                    left_out.append(f"write to {name}: {action.__name__[1:]}: {refused}")


class Refused(Exception):
    """The table was not changed, and it is said why."""


def _load(catalog, table):
    try:
        return catalog.load_table((table.namespace, table.name))
    except BadRequestError as error:
        raise Refused(str(error)) from None


def _rows(opened, **limits):
    try:
        rows = opened.scan(**limits).to_arrow()
        rows.to_pylist()
    except CLIENTS_OWN as error:
        raise Refused(f"PyIceberg does not read it: {type(error).__name__}: {error}") from None
    return rows


def _append(judge, catalog, lake, table):
    opened = _load(catalog, table)
    rows = _rows(opened, limit=2)
    _change(judge, opened, lake, table, lambda: opened.append(rows), lambda before: before + rows)


def _delete(judge, catalog, lake, table):
    opened = _load(catalog, table)
    rows = _rows(opened)
    for field in opened.schema().fields:
        values = [v for v in rows[field.name].to_pylist() if v is not None] if rows else []
        if isinstance(field.field_type, COMPARABLE) and values:
            break
    else:
        raise Refused("no column for a filter")
    value = values[len(values) // 2]
    kept = [row not in (None, value) for row in rows[field.name].to_pylist()]
    after = rows.filter(pa.array(kept, pa.bool_()))
    condition = Or(EqualTo(field.name, value), IsNull(field.name))
    _change(judge, opened, lake, table, lambda: opened.delete(condition), lambda _: after)


def _change(judge, opened, lake, table, action, expected):
    """Do something, and compare the rows; `expected` gives those after it."""
    visible = {field.name for field in opened.schema().fields}
    types = judge.columns(table.namespace, table.name)
    hidden = tuple(name for name in types if name not in visible)
    nested = opened.properties.get("polynya.hidden-columns")
    if nested and not hidden:
        raise Refused(f"fields within columns are hidden: {nested}")
    before = judge.canonical(table.namespace, table.name, hidden=hidden)
    catalog = catalog_rows(lake)
    try:
        action()
    except (BadRequestError, *CLIENTS_OWN) as error:
        assert catalog_rows(lake) == catalog
        raise Refused(f"{type(error).__name__}: {' '.join(str(error).split())[:200]}") from None
    except ServerError as error:
        pytest.fail(f"{table.namespace}.{table.name}: {error}")
    wanted = expected(_Rows(before, types, hidden))
    if isinstance(wanted, pa.Table):
        wanted = from_arrow(wanted, types, hidden)
    report = difference(wanted, judge.canonical(table.namespace, table.name, hidden=hidden))
    assert report == [], f"{table.namespace}.{table.name}"


class _Rows:
    """Canonical rows to which a client's can be added."""

    def __init__(self, rows: Canonical, types, hidden) -> None:
        self._rows, self._types, self._hidden = rows, types, hidden

    def __add__(self, other: pa.Table) -> Canonical:
        more = from_arrow(other, self._types, self._hidden)
        return Canonical(self._rows.columns, Counter(self._rows.rows) + Counter(more.rows))
