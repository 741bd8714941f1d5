"""What SQL in the sandbox cannot do, even if the SQL is hostile."""

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
def test_a_statement_has_no_access_outside_the_sandbox(statement, tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    with pytest.raises((PolynyaError, Unreadable)) as failure, sandbox() as (con, _):
        con.execute(statement.format(folder=tmp_path))
    assert str(tmp_path) not in str(failure.value)
    assert [path.name for path in tmp_path.iterdir()] == ["secret.txt"]


def test_the_sandbox_folder_is_usable_and_is_removed():
    with sandbox() as (con, path):
        con.execute(f"COPY (SELECT 42 AS c) TO {literal(str(path))} (FORMAT parquet)")
        assert con.execute("FROM read_parquet(?)", [str(path)]).fetchall() == [(42,)]
    assert not path.parent.exists()


def test_a_folder_beside_the_sandbox_is_not_accessible():
    neighbour = Path(tempfile.gettempdir()) / "polynya-neighbour.txt"
    with pytest.raises((PolynyaError, Unreadable)), sandbox() as (con, path):
        con.execute(f"COPY (SELECT 1) TO '{path.parent}/../{neighbour.name}'")
    assert not neighbour.exists()


def test_the_error_for_an_invalid_cast_does_not_quote_the_value():
    with pytest.raises(Unreadable) as failure, sandbox() as (con, _):
        con.execute("SELECT 'a row'::DATE")
    assert str(failure.value) == "DuckDB says ConversionException"
    assert failure.value.__suppress_context__
