"""Values that DuckLake inlines inside a STRUCT, as SQL text, and cannot read again."""

from contextlib import closing

import duckdb
import pytest
from polynya_local.clients import pyiceberg
from polynya_local.clients.canonical import canonical, columns_of, difference, from_arrow
from polynya_local.clients.duckdb import LAKE, connect, literal
from polynya_local.clients.native import Lake

from tests.support.servers.in_process import standing_in

UNREADABLE = {
    "dates": "DATE '2020-01-01'",
    "times": "TIME '01:02:03'",
    "timestamps": "TIMESTAMP '2020-01-01 01:02:03'",
    "zoned": "TIMESTAMPTZ '2020-01-01 01:02:03+00'",
    "uuids": "'c6b3a9a2-8b6f-4d7c-9a53-3f6d2c1b0a99'::UUID",
}
READABLE = {"blobs": "'a''b'::BLOB", "texts": "'a'", "numbers": "1.5::DECIMAL(9, 2)"}
"""What DuckLake reads is not what was written: lake 81 for texts, docs/ducklake.md for blobs."""


@pytest.fixture(scope="module")
def lake(postgres_server, moto):
    name = "unreadable_inlining"
    return Lake(name, postgres_server.create_database(name), f"s3://lakes/{name}")


@pytest.fixture(scope="module")
def native(lake, moto):
    """Gives new connections: the first internal error of a DuckDB ends all work with it."""

    def attached() -> duckdb.DuckDBPyConnection:
        con = connect(LAKE, moto)
        source = literal(f"ducklake:postgres:{lake.database.libpq}")
        con.execute(f"ATTACH {source} AS lake (DATA_PATH {literal(lake.data_path)})")
        con.execute("USE lake")
        return con

    with closing(attached()) as con:
        for table, value in {**UNREADABLE, **READABLE}.items():
            con.execute(f"CREATE TABLE {table} AS SELECT {{'z': {value}}} AS s WHERE false")
            con.execute(f"INSERT INTO {table} VALUES ({{'z': {value}}}), (NULL), ({{'z': NULL}})")
    return attached


@pytest.fixture(scope="module")
def bridge(lake, native, moto):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL_S3", moto)
        patch.setenv("POWERTOOLS_METRICS_DISABLED", "true")
        with standing_in(lake, moto) as bridge:
            yield bridge


@pytest.mark.parametrize("table", UNREADABLE)
def test_a_table_that_ducklake_cannot_read_is_refused(table, bridge, native):
    with closing(native()) as con, pytest.raises(duckdb.InternalException):
        con.execute(f"SELECT * FROM {table}").fetchall()
    with (
        closing(pyiceberg.open(bridge.api_uri, "lake", bridge.s3_uri)) as reader,
        pytest.raises(OSError, match="HTTP status 400"),
    ):
        reader.rows("main", table, None)


@pytest.mark.parametrize("table", READABLE)
def test_other_values_are_those_that_ducklake_reads(table, bridge, native):
    with closing(native()) as con:
        columns = columns_of(con, table)
        rows = canonical(con, table, columns)
    with closing(pyiceberg.open(bridge.api_uri, "lake", bridge.s3_uri)) as reader:
        assert difference(rows, from_arrow(reader.rows("main", table, None), columns)) == []
