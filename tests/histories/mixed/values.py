"""SQL literals of all types that a mixed history uses, difficult ones among them."""

from random import Random

from duckdb.sqltypes import DuckDBPyType

POOLS = {
    "boolean": ("true", "false"),
    "tinyint": ("0", "1", "-128", "127"),
    "smallint": ("0", "1", "-32768", "32767"),
    "integer": ("0", "1", "2", "3", "-2147483648", "2147483647"),
    "uinteger": ("0", "1", "4294967295"),
    "bigint": ("0", "1", "2", "3", "-9223372036854775808", "9223372036854775807"),
    # DuckLake writes DOUBLE, and cannot read what is larger than HUGEINT as one.
    "hugeint": ("0", "9223372036854775808"),
    # Neither 3.4e38 nor 1e-45: DuckLake's own filters do not find them. Nor -0.0: it loses the sign
    # of zeros where rows are inlined.
    "float": ("0", "1.5", "-2.5", "0.1", "'inf'", "'-inf'"),
    "double": ("0", "1.5", "1.7976931348623157e308", "5e-324", "0.1", "'inf'", "'-inf'"),
    # Not repeat('é', 200): it has no bound, and DuckLake's next INSERT loses rows.
    "varchar": (
        *("''", "'a'", "'b'", "'it''s'", "'q\"uo'", "'NULL'", "'ä🦆'", "'x/y=z %41'"),
        "repeat('z', 300)",
    ),
    "blob": ("''", "'ab'", "'\\x00\\xFF'", "repeat('b', 300)"),
    "date": ("'0001-01-01'", "'1969-12-31'", "'2024-02-29'", "'2024-03-01'", "'9999-12-31'"),
    "time": ("'00:00:00'", "'12:34:56.789012'", "'23:59:59.999999'"),
    "timestamp": (
        *("'0001-01-01 00:00:00'", "'1969-12-31 23:59:59.999999'", "'2024-02-29 12:00:00'"),
        *("'2024-02-29 23:00:00'", "'9999-12-31 23:59:59.999999'"),
    ),
    "timestamp with time zone": ("'1883-11-18 12:00:00+00'", "'2024-01-01 00:00:00.5+00'"),
    "timestamp_ms": ("'1969-12-31 23:59:59.999'", "'2024-02-29 12:00:00'"),
    "uuid": ("'00000000-0000-0000-0000-000000000000'", "'ffffffff-ffff-4fff-bfff-ffffffffffff'"),
    "ubigint": ("0", "1", "18446744073709551615"),
    "interval": ("'1 day'", "'2 months'"),
}
NAN = ("float", "double")
# DuckLake loses quotes of texts inside structs while they are inlined (lake 81).
TEXTS_INSIDE = ("''", "'a'", "'b'", "'ä🦆'")


def literal(kind: DuckDBPyType, rng: Random, *, nan: bool = False) -> str:
    """A value of a type in SQL, sometimes NULL.

    Args:
        nan: NaN is possible.
    """
    return f"CAST({_value(kind, rng, nan, inside=False)} AS {kind})"


def _value(kind: DuckDBPyType, rng: Random, nan: bool, *, inside: bool) -> str:
    if rng.random() < 0.2:
        return "NULL"
    children = kind.children if kind.id in {"struct", "list", "map", "decimal"} else []
    if kind.id == "struct":
        parts = [f"'{name}': {_value(of, rng, nan, inside=True)}" for name, of in children]
        return f"{{{', '.join(parts)}}}"
    if kind.id == "list":
        [(_, of)] = children
        values = [_member(of, rng, nan) for _ in range(rng.randrange(3))]
        return f"CAST([{', '.join(values)}] AS {kind})"
    if kind.id == "map":
        keys = rng.sample(("'a'", "'b'", "''"), rng.randrange(3))
        values = [_member(children[1][1], rng, nan) for _ in keys]
        pairs = [f"{key}: {value}" for key, value in zip(keys, values, strict=True)]
        return f"CAST(MAP {{{', '.join(pairs)}}} AS {kind})"
    if kind.id == "decimal":
        (_, precision), (_, scale) = children
        most = "9" * (precision - scale) + "." + "9" * scale
        return rng.choice(("0", "1.5", f"'{most}'", f"'-{most}'"))
    if kind.id == "varchar" and inside:
        return rng.choice(TEXTS_INSIDE)
    pool = POOLS[str(kind).lower()]
    if nan and str(kind).lower() in NAN:
        pool = (*pool, "'nan'")
    return rng.choice(pool)


def _member(kind: DuckDBPyType, rng: Random, nan: bool) -> str:
    """A value in a list or map, with its type: beside a number, DuckDB reads '-inf' as one."""
    return f"CAST({_value(kind, rng, nan, inside=True)} AS {kind})"
