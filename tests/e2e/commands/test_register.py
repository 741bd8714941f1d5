"""`polynya register`: the tables of PyIceberg become those of a lake that is served."""

import pyarrow as pa
import pytest
from polynya_local.cli import app
from polynya_local.processes.serving import serving
from pyiceberg.schema import Schema
from pyiceberg.types import FixedType, NestedField
from typer.testing import CliRunner

from tests.support.writes.sources import ROOT, pyiceberg_source
from tests.support.writes.twins import query
from tests.support.writes.writable import EMPTY, client_of, set_up_writes

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "s": ["a", None, "c"]})
OF_FIXED = Schema(NestedField(1, "f", FixedType(4)))


@pytest.fixture
def source(tmp_path, moto):
    with pyiceberg_source(tmp_path, moto, "whole") as catalog:
        catalog.create_namespace("sales")
        for name in ("main.birds", "sales.orders"):
            catalog.create_table(name, ROWS.schema, properties={"s3.region": "x"}).append(ROWS)
        catalog.load_table("sales.orders").delete("id = 2")
        catalog.create_table("main.fixed", OF_FIXED)
        yield catalog


def run(served, *words):
    """The exit code, the lines on stdout, and what is on stderr."""
    target = ["--to", served.catalog_uri]
    done = CliRunner().invoke(app, ["register", *words, *target])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done.exit_code, sorted(done.stdout.splitlines()), done.stderr


def test_a_whole_catalog(lake, source, moto):
    written = set_up_writes(lake.write("whole_catalog", EMPTY))
    of_source = [
        word
        for key, value in source.properties.items()
        for word in ("--property", f"{key}={value}")
    ]
    of_source += ["--property", "type=sql", "--from", source.name]
    with serving(
        written.database.url,
        moto,
        delivery="object-lambda",
        writes=True,
        options=("--files-from", ROOT),
    ) as served:
        code, dry, _ = run(served, *of_source, "--dry-run")
        assert code == 1, dry
        assert [line.partition(";")[0] for line in dry] == [
            "main.birds: 3 rows in 1 files would be registered",
            "main.fixed: refused: the column f has the type fixed[4]: DuckLake's blob has no fixed "
            "length, and clients do not read it as fixed",
            "sales.orders: 2 rows in 1 files would be registered",
        ]
        assert "left behind: the properties s3.region" in dry[0]
        assert query(written, moto, "SHOW ALL TABLES") == []
        code, lines, errors = run(served, *of_source)
        assert (code, [line.replace("registered", "would be registered") for line in lines]) == (
            1,
            dry,
        )
        assert "1 refused" in errors
        code, lines, _ = run(served, *of_source, "sales")
        assert (code, lines) == (
            1,
            ["sales.orders: refused: Requirement failed: table already exists: sales.orders"],
        )
        location = source.load_table("main.birds").metadata_location
        code, lines, _ = run(served, location, "--name", "again", "--dry-run")
        assert code == 1 and "is in the catalog already" in lines[0]
        code, lines, _ = run(served, "s3://elsewhere/t/metadata/v1.metadata.json")
        assert code == 1 and lines[0].startswith("main.t: refused: the metadata file is not below")
        expected = sorted(ROWS.to_pylist(), key=str)
        assert sorted(rows_of(served, "main.birds"), key=str) == expected
    native = query(written, moto, "FROM sales.orders ORDER BY id")
    assert native == [(1, "a"), (3, "c")]


def rows_of(served, name):
    return client_of(served).load_table(name).scan().to_arrow().to_pylist()


@pytest.mark.parametrize(
    "words",
    [["--name", "t"], [], ["--property", "no pair"], ["a.metadata.json", "b", "--name", "t"]],
)
def test_usage_errors(words):
    assert (
        CliRunner().invoke(app, ["register", *words, "--to", "http://127.0.0.1:9"]).exit_code != 0
    )


def test_files_from_takes_directories_of_s3_only():
    words = ["serve", "postgresql://localhost/lake", "--writes", "--files-from", "/tmp/x"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2 and "is not a directory in S3" in done.output
