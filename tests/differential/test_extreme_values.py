"""The least and the greatest values of each type and their neighbours, inlined and in files."""

from contextlib import closing

import pytest
from polynya_local.clients import native, pyiceberg
from polynya_local.clients.canonical import difference, from_arrow

from tests.support.servers import in_process

# The values of each type, as DuckDB reads them; all that native DuckLake can write.
VALUES = {
    "BOOLEAN": ["false", "true"],
    "TINYINT": ["-128", "-127", "126", "127"],
    "SMALLINT": ["-32768", "-32767", "32766", "32767"],
    "INTEGER": ["-2147483648", "-2147483647", "2147483646", "2147483647"],
    "BIGINT": [
        *("-9223372036854775808", "-9223372036854775807"),
        *("9223372036854775806", "9223372036854775807"),
    ],
    "UTINYINT": ["0", "1", "254", "255"],
    "USMALLINT": ["0", "1", "65534", "65535"],
    "UINTEGER": ["0", "1", "4294967294", "4294967295"],
    "FLOAT": ["-inf", "-3.4028235e38", "-1e-45", "1e-45", "3.4028235e38", "inf", "nan"],
    "DOUBLE": [
        *("-inf", "-1.7976931348623157e308", "-5e-324"),
        *("5e-324", "1.7976931348623157e308", "inf", "nan"),
    ],
    "DECIMAL(4, 2)": ["-99.99", "-99.98", "99.98", "99.99"],
    "DECIMAL(9, 0)": ["-999999999", "-999999998", "999999998", "999999999"],
    "DECIMAL(18, 18)": ["-0.999999999999999999", "0.999999999999999999"],
    "DECIMAL(38, 0)": ["-" + "9" * 38, "-" + "9" * 37 + "8", "9" * 37 + "8", "9" * 38],
    "DATE": [
        *("-infinity", "5877642-06-25 (BC)", "5877642-06-26 (BC)", "0001-12-31 (BC)"),
        *("0001-01-01", "9999-12-31", "10000-01-01", "5881580-07-09", "5881580-07-10", "infinity"),
    ],
    "TIME": ["00:00:00", "00:00:00.000001", "23:59:59.999998", "23:59:59.999999"],
    "TIMESTAMP": [
        *("-infinity", "290309-12-22 (BC) 00:00:00", "290309-12-22 (BC) 00:00:00.000001"),
        *("0001-12-31 (BC) 23:59:59.999999", "0001-01-01 00:00:00", "9999-12-31 23:59:59.999999"),
        *("294247-01-10 04:00:54.775805", "294247-01-10 04:00:54.775806", "infinity"),
    ],
    "TIMESTAMP_NS": [
        *("-infinity", "1677-09-22 00:00:00", "1677-09-22 00:00:00.000000001"),
        *("1969-12-31 23:59:59.999999999", "1970-01-01", "2262-04-11 23:47:16.854775805"),
        *("2262-04-11 23:47:16.854775806", "infinity"),
    ],
    "VARCHAR": ["", "\x01", "\U0010ffff"],
    "UUID": ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"],
}
# Without infinite ones: DuckDB 1.5.5 cannot write a TIMESTAMP_S into a file, and PyIceberg cannot
# read a TIMESTAMP_MS in a list.
VALUES["TIMESTAMP_S"] = VALUES["TIMESTAMP_MS"] = [
    value for value in VALUES["TIMESTAMP"] if "." not in value and "infinity" not in value
]
VALUES["TIMESTAMPTZ"] = [
    value if "infinity" in value else f"{value}+00" for value in VALUES["TIMESTAMP"]
]


def table(name: str, limit: int) -> str:
    """SQL of a table with a column for each type, and with each value in a list, too.

    Not in a struct: natively DuckDB 1.5.5 reads few of those in PostgreSQL.
    """
    columns = {f"c{n}": type_ for n, type_ in enumerate(VALUES)}
    nested = {f"n{n}": f"{type_}[]" for n, type_ in enumerate(VALUES)}
    rows = [
        ", ".join(
            [
                *(cast(type_, row) for type_ in VALUES),
                *(f"[{cast(type_, row)}, NULL]" for type_ in VALUES),
            ]
        )
        for row in range(max(map(len, VALUES.values())))
    ]
    types = ", ".join(f"{column} {type_}" for column, type_ in (columns | nested).items())
    return f"""
CREATE TABLE {name}({types});
CALL lake.set_option('data_inlining_row_limit', {limit}, table_name => '{name}');
INSERT INTO {name} VALUES {", ".join(f"({row})" for row in rows)};"""


def cast(type_: str, row: int) -> str:
    values = VALUES[type_]
    return f"'{values[row]}'::{type_}" if row < len(values) else f"NULL::{type_}"


# So many of both zeros that DuckDB would write a dictionary, which has one of them.
ZEROS = """
CREATE TABLE zeros(id INTEGER, f FLOAT, d DOUBLE, l DOUBLE[], m MAP(INTEGER, FLOAT[]));
CALL lake.set_option('data_inlining_row_limit', 100, table_name => 'zeros');
INSERT INTO zeros SELECT i, z, z, [z, NULL], MAP {1: [z]}
FROM (SELECT i, CASE WHEN i % 2 = 0 THEN '-0.0' ELSE '0.0' END::DOUBLE AS z FROM range(60) r(i));
INSERT INTO zeros VALUES (60, 1, NULL, NULL, NULL);"""

SCRIPT = (
    "ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}'); USE lake;"
    + table("inlined", 100)
    + table("filed", 0)
    + ZEROS
)


@pytest.fixture(scope="module")
def served(lake, moto):
    made = lake.write("extreme values", SCRIPT)
    settings = {"FORMAT_VERSION_3": "always-shown"}
    with (
        in_process.bridge(made, moto, delivery="object-lambda", settings=settings) as bridge,
        closing(native.open(made, moto)) as truth,
    ):
        yield bridge, truth


@pytest.mark.parametrize("name", ["inlined", "filed"])
def test_duckdb_reads_them(served, shared_duckdb, name):
    bridge, truth = served
    reader = shared_duckdb.attached_to(bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)
    compare(truth, reader, name)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["inlined", "filed"])
def test_pyiceberg_reads_them(served, name):
    bridge, truth = served
    where = bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint
    with closing(pyiceberg.open(*where)) as reader:
        compare(truth, reader, name)


def compare(truth, reader, name: str) -> None:
    columns, expected = truth.columns("main", name), truth.canonical("main", name)
    assert expected.rows.total() == 10
    assert difference(expected, from_arrow(reader.rows("main", name), columns)) == []


def test_inlined_zeros_keep_their_signs(served, shared_duckdb):
    """The text of a value tells them apart: in SQL they are equal."""
    bridge, truth = served
    where = bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint
    expected = texts(truth.rows("main", "zeros"))
    assert sum("-0.0" in text for text in expected) == 30
    assert texts(shared_duckdb.attached_to(*where).rows("main", "zeros")) == expected
    with closing(pyiceberg.open(*where)) as reader:
        assert texts(reader.rows("main", "zeros")) == expected


def texts(rows) -> list[str]:
    return sorted(str(row) for row in rows.to_pylist())
