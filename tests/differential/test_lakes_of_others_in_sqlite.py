"""Lakes in SQLite that other programs wrote: each table has the rows that were written, or is
refused with the column and the row; no value takes another table with it."""

import json
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pyarrow as pa
import pytest
from polynya_local.clients import duckdb, pyiceberg
from polynya_local.processes.serving import serving
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import ServiceUnavailableError

from tests.support import rest
from tests.support.file_lakes import FileLake, change_tables, query

OTHERS = Path(__file__).parents[1] / "lakes" / "others" / "sqlite"
NO_MORE = "; correct the rows of the catalog, or restore it from a backup"


def wrong(table: str, type_: str, column: str, row: str) -> str:
    return f"{table} has a value that is no {type_} in its column {column}, in the row {row}"


# Native DuckLake fails on these tables too.
REFUSED = {
    ("sdk", "floats"): wrong("ducklake_inlined_data_2_2", "DOUBLE", "v", "with the row_id 1"),
    ("sdk", "dates"): wrong("ducklake_inlined_data_3_3", "DATE", "v", "with the row_id 1"),
    ("sdk", "zoned"): wrong("ducklake_inlined_data_4_4", "TIMESTAMPTZ", "v", "with the row_id 1"),
    ("dataframe", "bytes"): wrong("ducklake_inlined_data_2_2", "VARCHAR", "v", "with the row_id 0"),
}


def restored(name: str, folder: Path) -> FileLake:
    """A lake as the other program has written it."""
    lake = FileLake("lake", "sqlite", folder)
    shutil.copytree(OTHERS / name / "data", lake.data)
    catalog = (OTHERS / name / "catalog.sql").read_text().replace("{{DATA_PATH}}", str(lake.data))
    with closing(sqlite3.connect(lake.file)) as con:
        con.executescript(catalog)
    return lake


def truth(name: str) -> dict[str, list[dict[str, object]]]:
    return json.loads((OTHERS / name / "truth.json").read_text())


def served(lake: FileLake, **how):
    return serving(lake.address, None, delivery="object-lambda", page=False, **how)


def check(name: str, bridge, clients) -> None:
    catalog = rest.Rest(bridge.catalog_uri, bridge.warehouse)
    assert sorted(catalog.tables()) == sorted(("main", table) for table in truth(name))
    for client in clients:
        with closing(client.open(bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)) as one:
            for table, rows in truth(name).items():
                if words := REFUSED.get((name, table)):
                    with pytest.raises(rest.Refused) as refused:
                        catalog.load_table("main", table)
                    assert refused.value.message.endswith(f"is not served: {words}{NO_MORE}")
                else:
                    found = json.loads(json.dumps(one.rows("main", table).to_pylist(), default=str))
                    assert sorted(found, key=str) == sorted(rows, key=str), (client.NAME, table)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sdk", "dataframe", "dataframe-mapped"])
def test_each_table_has_its_rows_or_is_refused_with_the_reason(name, tmp_path):
    """Among them times with a zone, whose type DuckDB does not know as it is spelled."""
    with served(restored(name, tmp_path / "lake")) as bridge:
        check(name, bridge, (pyiceberg, duckdb))


@pytest.mark.slow
def test_tables_that_share_a_mapping_id(tmp_path):
    """As in a lake where one program takes ids from another counter. DuckDB reads NULLs then."""
    lake = restored("dataframe-mapped", tmp_path / "lake")
    tables = ("data_file", "column_mapping", "name_mapping")
    change_tables(
        lake,
        "; ".join(f"UPDATE ducklake_{t} SET mapping_id = 3 WHERE mapping_id = 4" for t in tables),
    )
    assert query(lake, "SELECT count(*) FROM ducklake_name_mapping WHERE mapping_id = 3") == [(4,)]
    with served(lake) as bridge:
        check("dataframe-mapped", bridge, (pyiceberg, duckdb))


def test_a_wrong_value_stops_no_other_table_while_the_lake_is_served(tmp_path):
    lake = restored("sdk", tmp_path / "lake")
    with served(lake, writes=True) as bridge:
        check("sdk", bridge, (pyiceberg,))
        client = load_catalog("c", uri=bridge.catalog_uri, warehouse=bridge.warehouse)
        catalog = rest.Rest(bridge.catalog_uri, bridge.warehouse)

        def ids(table: str) -> list[int]:
            return sorted(client.load_table(f"main.{table}").scan().to_arrow()["id"].to_pylist())

        def reason(table: str) -> str:
            with pytest.raises(rest.Refused) as refused:
                catalog.load_table("main", table)
            return refused.value.message

        # Each of these values comes while the lake is served.
        change_tables(lake, "UPDATE ducklake_inlined_data_1_1 SET v = 'x' WHERE id = 2")
        assert "no BIGINT in its column v, in the row with the row_id 1" in reason("numbers")
        # A commit of a client to another table goes on, and its rows are seen.
        frame = pa.table({"id": pa.array([3]), "v": pa.array([None], pa.decimal128(12, 2))})
        client.load_table("main.decimals").append(frame)
        assert ids("decimals") == [1, 2, 3]
        change_tables(lake, "UPDATE ducklake_inlined_data_1_1 SET v = NULL WHERE id = 2")
        assert ids("numbers") == [1, 2]
        # A column of inlined rows without a type.
        v = "WHERE table_id = 1 AND column_name = 'v'"
        [[type_]] = query(lake, f"SELECT column_type FROM ducklake_column {v}")
        change_tables(lake, f"UPDATE ducklake_column SET column_type = NULL {v}")
        assert "the column 'v' has no type" in reason("numbers")
        assert ids("decimals") == [1, 2, 3]
        change_tables(lake, f"UPDATE ducklake_column SET column_type = '{type_}' {v}")
        assert ids("numbers") == [1, 2]
        # A text for a number of a file, and its remedy.
        own = "WHERE table_id = 5 AND column_id = 1"
        change_tables(lake, f"UPDATE ducklake_file_column_stats SET null_count = 'none' {own}")
        words = "ducklake_file_column_stats has a value that is no BIGINT in its column null_count"
        assert words in reason("decimals")
        assert ids("numbers") == [1, 2]
        change_tables(lake, f"UPDATE ducklake_file_column_stats SET null_count = 0 {own}")
        assert ids("decimals") == [1, 2, 3]
        # A data file without an id.
        change = "UPDATE ducklake_data_file SET data_file_id = {} WHERE data_file_id = {}"
        change_tables(lake, change.format("'x'", 4))
        assert "no BIGINT in its column data_file_id" in reason("decimals")
        assert ids("numbers") == [1, 2]
        change_tables(lake, change.format(4, "'x'"))
        # What nobody reads, in rows that do not say whose they are. DuckDB reads all tables then.
        change_tables(
            lake,
            "UPDATE ducklake_schema SET schema_uuid = 'none';"
            "UPDATE ducklake_snapshot_changes SET commit_message = x'00ff' WHERE snapshot_id = 1",
        )
        assert ids("numbers") == [1, 2]
        # A row that does not say whose it is: clients get an error, and no older state.
        change_tables(lake, "UPDATE ducklake_data_file SET table_id = 'a/b' WHERE data_file_id = 4")
        words = wrong("ducklake_data_file", "BIGINT", "table_id", "with the data_file_id 4")
        assert words in reason("numbers")
        with pytest.raises(ServiceUnavailableError, match="cannot be served"):
            client.load_table("main.decimals")
        change_tables(lake, "UPDATE ducklake_data_file SET table_id = 5 WHERE data_file_id = 4")
        assert ids("decimals") == [1, 2, 3]
