"""What SQL in the sandbox cannot do, whoever wrote it."""

import tempfile
from pathlib import Path

import pytest
from polynya.errors import PolynyaError
from polynya.iceberg.parquet.sandbox import Unreadable, literal, sandbox

STATEMENTS = [
    "SELECT * FROM read_text('{folder}/secret.txt')",
    "SELECT * FROM read_blob('{folder}/secret.txt')",
    "SELECT * FROM read_csv('{folder}/secret.txt')",
    "SELECT * FROM glob('{folder}/*')",
    "COPY (SELECT 1) TO '{folder}/written.txt'",
    "ATTACH '{folder}/written.db'",
    "EXPORT DATABASE '{folder}'",
    "LOAD httpfs",
    "INSTALL httpfs",
    "SELECT * FROM read_parquet('http://127.0.0.1:9/x.parquet')",
    "SET enable_external_access = true",
    "SET allowed_directories = ['/']",
    "SET threads = 8",
    "SET memory_limit = '100GB'",
    "RESET lock_configuration",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_a_statement_reaches_nothing_outside(statement, tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    with pytest.raises((PolynyaError, Unreadable)) as failure, sandbox() as (con, _):
        con.execute(statement.format(folder=tmp_path))
    assert str(tmp_path) not in str(failure.value)
    assert [path.name for path in tmp_path.iterdir()] == ["secret.txt"]


def test_its_own_folder_can_be_used_and_is_removed():
    with sandbox() as (con, path):
        con.execute(f"COPY (SELECT 42 AS c) TO {literal(str(path))} (FORMAT parquet)")
        assert con.execute("FROM read_parquet(?)", [str(path)]).fetchall() == [(42,)]
    assert not path.parent.exists()


def test_a_neighbour_of_its_folder_is_out_of_reach():
    neighbour = Path(tempfile.gettempdir()) / "polynya-neighbour.txt"
    with pytest.raises((PolynyaError, Unreadable)), sandbox() as (con, path):
        con.execute(f"COPY (SELECT 1) TO '{path.parent}/../{neighbour.name}'")
    assert not neighbour.exists()


def test_a_value_that_cannot_be_cast_is_not_quoted():
    with pytest.raises(Unreadable) as failure, sandbox() as (con, _):
        con.execute("SELECT 'a row'::DATE")
    assert str(failure.value) == "DuckDB says ConversionException"
    assert failure.value.__suppress_context__
