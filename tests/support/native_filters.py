"""Tests which rows DuckDB finds with conditions on every column of a table.

A filter lets DuckDB skip files by DuckLake's statistics and row groups by the file's own. The
expected rows come from a plain table of DuckDB with the same rows.
"""

from collections.abc import Iterator

from polynya_local.clients.duckdb import identifier

AT_ONCE = 100
"""The number of conditions in one statement."""
FLOATS = ("nan", "inf", "-inf", "0.0", "-0.0", "1e38")


def wrong(con, table: str, plain: str) -> list[str]:
    """The conditions under which `table` and `plain` give different rows, with both counts."""
    columns = con.sql(f"DESCRIBE {plain}").fetchall()
    tested = [
        condition
        for name, type_, *_ in columns
        for expression in parts(con, plain, identifier(name), type_)
        for condition in conditions(con, plain, *expression)
    ]
    assert len(tested) > 10 * len(columns)
    found = []
    for start in range(0, len(tested), AT_ONCE):
        some = tested[start : start + AT_ONCE]
        answers = [con.sql(_counted(source, some)).fetchall() for source in (table, plain)]
        for condition, one, other in zip(some, *answers, strict=True):
            if one != other:
                found.append(f"{condition}: {one[1]} rows, not {other[1]}")
    return found


def parts(con, plain: str, expression: str, type_: str) -> Iterator[tuple[str, str]]:
    """The column itself and expressions for all parts of it, each with its type."""
    yield expression, type_
    if type_.startswith("STRUCT(") and not type_.endswith("]"):
        fields = con.sql(f"SELECT unnest({expression}) FROM {plain}")
        inside = [f"{expression}.{identifier(name)}" for name in fields.columns]
    elif type_.startswith("MAP(") and not type_.endswith("]"):
        inside = [f"map_keys({expression})[1]", f"map_values({expression})[1]"]
    elif type_.endswith("]"):
        inside = [f"{expression}[1]", f"{expression}[2]"]
    else:
        return
    for one in inside:
        [[below]] = con.sql(f"SELECT any_value(typeof({one})) FROM {plain}").fetchall()
        yield from parts(con, plain, one, below)


def conditions(con, plain: str, expression: str, type_: str) -> Iterator[str]:
    yield from (f"{expression} IS NULL", f"{expression} IS NOT NULL")
    if type_.startswith(("STRUCT(", "MAP(")) or type_.endswith("]"):
        return
    # As bytes, because a text may contain what a literal cannot.
    found = con.sql(
        f"SELECT DISTINCT hex(encode({expression}::VARCHAR)) FROM {plain} "
        f"WHERE {expression} IS NOT NULL ORDER BY ALL"
    ).fetchall()
    values = [f"decode(from_hex('{digits}'))::{type_}" for (digits,) in found]
    if type_ in {"FLOAT", "DOUBLE"}:
        values += [f"'{text}'::{type_}" for text in FLOATS]
        yield f"isnan({expression})"
    for value in values:
        yield from (f"{expression} {sign} {value}" for sign in ("=", "<", "<=", ">", ">="))
        # `<>` loses the NaN of a file with one other number, also in DuckLake's own files.
        unequal = "IS DISTINCT FROM" if type_ in {"FLOAT", "DOUBLE"} else "<>"
        yield f"{expression} {unequal} {value}"
    if len(values) > 1:
        yield f"{expression} IN ({', '.join(values)})"
        yield f"{expression} NOT IN ({', '.join(values)})"
        yield f"{expression} BETWEEN {values[0]} AND {values[-1]}"


def _counted(source: str, conditions: list[str]) -> str:
    """A query for the number of rows of each condition, and for a hash of the rows."""
    counts = (
        f"SELECT {number} AS n, count(*) AS c, bit_xor(hash(t)) AS h FROM {source} AS t "
        f"WHERE {condition}"
        for number, condition in enumerate(conditions)
    )
    return " UNION ALL ".join(counts) + " ORDER BY n"
