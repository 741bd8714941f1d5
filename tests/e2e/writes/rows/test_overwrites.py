"""PyIceberg deletes, overwrites and upserts (copy-on-write), on tables in all states."""

import re

import pyarrow as pa
import pytest

from tests.support.writes.starts import DO_NOT_INLINE, NATIVE, STARTS

pytestmark = pytest.mark.versions("1.1", "1.0")


def rows(table, *values):
    """Rows for a table: values of its first columns."""
    schema = table.schema().as_arrow()
    names = schema.names
    found = [dict(zip(names, (*value, *[None] * len(names)), strict=False)) for value in values]
    return pa.Table.from_pylist(found, schema=schema)


def delete(where):
    return lambda table: table.delete(where)


def overwrite(where, *values):
    return lambda table: table.overwrite(rows(table, *values), overwrite_filter=where)


def overwrite_all(*values):
    return lambda table: table.overwrite(rows(table, *values))


def upsert(*values):
    return lambda table: table.upsert(rows(table, *values), join_cols=["id"])


INSERT = "INSERT INTO {{t}} (id, s, p) VALUES {}"
OPERATIONS = {
    "delete some": (delete("id in (1, 6)"), "DELETE FROM {t} WHERE id IN (1, 6)"),
    "delete all": (delete("id >= 0"), "DELETE FROM {t}"),
    "overwrite by filter": (
        overwrite("id > 3", (4, "new", 1), (31, None, 2)),
        "DELETE FROM {t} WHERE id > 3;" + INSERT.format("(4, 'new', 1), (31, NULL, 2)"),
    ),
    "overwrite all": (
        overwrite_all((4, "new", 1), (31, None, 2)),
        "DELETE FROM {t};" + INSERT.format("(4, 'new', 1), (31, NULL, 2)"),
    ),
    "upsert": (
        upsert((4, "new", 1), (300, "new", 1)),
        "DELETE FROM {t} WHERE id = 4;" + INSERT.format("(4, 'new', 1), (300, 'new', 1)"),
    ),
}


@pytest.mark.slow(but=["[inlined rows of two versions-upsert]"])
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("start", STARTS)
def test_an_operation_gives_the_same_rows_everywhere(started, start, operation):
    action, sql = OPERATIONS[operation]
    if operation == "upsert" and start.startswith("partitions with"):
        pytest.skip("the table has an id twice, which PyIceberg's upsert refuses")
    started.changes(sql, lambda: action(started.table()))
    started.check()
    started.native(*NATIVE)
    started.check()


HIDDEN = ", h UBIGINT, i INTERVAL, n STRUCT(x INTEGER, u UBIGINT))"
VALUES = "hash(id, s) AS h, to_hours(id) AS i, {{'x': id, 'u': hash(s, id)}} AS n"


def with_hidden(start):
    """The statements of a start, for a table with columns that clients do not see."""
    for sql in STARTS[start]:
        if sql.startswith("CREATE"):
            yield sql.replace(")", HIDDEN)
        elif insert := re.match("INSERT INTO {t} (.*)", sql):
            width = len(re.split(r"\), \(", insert[1])[0].split(",")) if "VALUES" in sql else 3
            names = ", ".join(("id", "s", "p", "q")[:width])
            yield f"INSERT INTO {{t}} BY NAME SELECT *, {VALUES} FROM ({insert[1]}) AS r({names})"
        else:
            yield sql


@pytest.mark.slow
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("start", STARTS)
def test_hidden_columns_keep_their_values(twin, start, operation):
    action, sql = OPERATIONS[operation]
    if operation == "upsert" and start.startswith("partitions with"):
        pytest.skip("the table has an id twice, which PyIceberg's upsert refuses")
    twin.native(DO_NOT_INLINE, *with_hidden(start))
    twin.changes(sql, lambda: action(twin.table()))
    twin.check()
    twin.native(*NATIVE)
    twin.check()


HIDDEN_OF_EVERY_KIND = (
    "CREATE TABLE {t} (id BIGINT, s VARCHAR, h HUGEINT, u UHUGEINT, z TIMETZ, l UBIGINT[], "
    "m MAP(VARCHAR, INTERVAL), g GEOMETRY, d STRUCT(x STRUCT(y UBIGINT, z INTEGER)))",
    *(
        "INSERT INTO {t} SELECT i, 's' || i, -i, i, '10:00:00+00', [i::UBIGINT, hash(i)], "
        "MAP {{'k': to_days(i::INTEGER)}}, "
        "('POINT (' || i || ' 2)')::GEOMETRY, {{'x': {{'y': hash(i), 'z': i}}}} "
        f"FROM range({first}, {first + 6}) AS r(i)"
        for first in (0, 6)
    ),
)


def test_hidden_columns_of_every_kind_keep_their_values(twin):
    twin.native(DO_NOT_INLINE, *HIDDEN_OF_EVERY_KIND)
    where = "id in (3, 4, 8)"
    twin.changes(f"DELETE FROM {{t}} WHERE {where}", lambda: twin.table().delete(where))
    twin.check()
