"""`polynya inspect` over real lakes shows what DuckLake has."""

import json
import re
import subprocess

import pytest
from polynya_local.cli import app
from polynya_local.clients.duckdb import LAKE, connect, identifier
from polynya_local.clients.native import attach
from polynya_local.processes.serving import COMMAND, environment
from typer.testing import CliRunner

from tests.support.servers.in_process import settings

LAKES = ["13", "22", "29"]  # inlined rows; evolution; one that is refused
OTHERS = ("09", "14", "16", "17", "25", "27", "31", "36", "38")
LAKES += [pytest.param(number, marks=pytest.mark.slow) for number in OTHERS]


@pytest.fixture
def inspect(moto):
    """Runs the command in this process and returns its exit code and its output."""

    def run(lake, *words: str) -> tuple[int, str]:
        where = ["--database", lake.database.url, "--metadata-schema", lake.metadata_schema]
        with settings(AWS_ENDPOINT_URL_S3=moto):
            done = CliRunner().invoke(app, ["inspect", *words, *where, "--s3-endpoint", moto])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.output

    return run


@pytest.fixture
def document_of(inspect):
    """The command's JSON."""

    def run(lake, *words: str) -> dict:
        code, output = inspect(lake, *words, "--json")
        assert code == 0, output
        return json.loads(output)

    return run


@pytest.fixture
def open_natively(moto):
    """Opens lakes with DuckDB's own extension."""
    opened = []

    def open(lake, read_only: bool = True):
        con = connect(LAKE, moto)
        opened.append(con)
        attach(con, lake, read_only=read_only)
        return con

    yield open
    for con in opened:
        con.close()


def entries(document: dict, *kinds: str) -> list[dict]:
    """The files that are not deleted, in the manifests of some kinds."""
    return [
        file
        for manifest in document["snapshot"]["manifest_list"]["manifests"]
        for file in manifest["entries"]
        if manifest["kind"] in kinds and file["status"] != "deleted"
    ]


def live_rows(document: dict) -> int:
    rows = sum(file["rows"] for file in entries(document, "data", "inlined rows"))
    return rows - sum(file["rows"] for file in entries(document, "deletes"))


def tables(con) -> list[tuple[str, str]]:
    sql = "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'lake'"
    return con.execute(sql).fetchall()


def native_row(
    con, schema: str, table: str, select: str = "count(*)", at: int | None = None
) -> tuple:
    version = "" if at is None else f" AT (VERSION => {at})"
    source = f"lake.{identifier(schema)}.{identifier(table)}{version}"
    [row] = con.execute(f"SELECT {select} FROM {source}").fetchall()
    return row


@pytest.mark.parametrize("number", LAKES)
def test_every_table_is_shown_with_its_rows_and_columns(
    number, lake, document_of, inspect, open_natively
):
    given = lake(number)
    con = open_natively(given)
    assert tables(con)
    for schema, table in tables(con):
        if number == "29":
            code, output = inspect(given, f"{schema}.{table}")
            assert code == 1 and output.startswith("polynya: this DuckLake is encrypted")
            continue
        document = document_of(given, f"{schema}.{table}")
        assert document["name"] == f"{schema}.{table}"
        assert (live_rows(document),) == native_row(con, schema, table)
        current = document["document"]["schemas"][-1]
        names = [field["name"] for field in current["fields"]]
        relation = con.sql(f"SELECT * FROM lake.{identifier(schema)}.{identifier(table)}")
        assert names == [name for name in relation.columns if name not in document["hidden"]]
    assert inspect(given, f"{schema}.{table}")[0] == (number == "29")


PAST = [("09", "d")]
PAST += [pytest.param(*one, marks=pytest.mark.slow) for one in (("14", "fl"), ("36", "mg"))]


@pytest.mark.parametrize(("number", "table"), PAST)
def test_the_files_of_every_past_snapshot_hold_what_ducklake_had(
    number, table, lake, document_of, open_natively
):
    given = lake(number)
    con = open_natively(given)
    snapshots = [snapshot["snapshot_id"] for snapshot in document_of(given, table)["snapshots"]]
    assert len(snapshots) > 10
    for at in snapshots:
        document = document_of(given, table, "--snapshot", str(at))
        assert document["snapshot"]["snapshot_id"] == at
        assert (live_rows(document),) == native_row(con, "main", table, at=at)


def test_a_snapshot_of_the_lake_shows_the_table_as_it_was_then(lake, document_of):
    document = document_of(
        lake("08"), "b", "--snapshot", "3"
    )  # this snapshot changed only another table
    assert document["snapshot"]["snapshot_id"] == 2
    assert live_rows(document) == 0


def test_bounds_are_the_minimum_and_the_maximum(lake, document_of, open_natively):
    given = lake("09")
    document = document_of(given, "d", "--snapshot", "2")
    [file] = entries(document, "data")
    least, greatest = native_row(open_natively(given), "main", "d", "min(i), max(i)", 2)
    assert file["columns"]["i"] == {"lower": f"{least}", "upper": f"{greatest}", "nulls": 0}
    assert file["columns"]["s"] == {"lower": '"v0"', "upper": '"v999"', "nulls": 0}


def test_bounds_and_partitions_are_readable(lake, document_of):
    document = document_of(lake("17"), "p2")
    first, *_ = entries(document, "data")
    assert first["partition"] == {"d": "2024-01-01", "b": "true", "dc": "1.50"}
    assert first["columns"]["ts"]["lower"] == "2024-01-01T01:02:03"
    specs = {
        spec["spec-id"]: len(spec["fields"]) for spec in document["document"]["partition-specs"]
    }
    assert specs == {0: 0, 1: 3, 2: 1}
    days = {
        day
        for file in entries(document_of(lake("18"), "tymd"), "data")
        for day in file["partition"].values()
    }
    assert days == {f"2023-12-{day}" for day in (30, 31)} | {f"2024-01-0{day}" for day in (1, 2, 3)}


def test_every_file_names_its_source(lake, document_of):
    given = lake("13")
    document = document_of(given, "inl")
    con = given.database.connect()
    ids = con.run("SELECT data_file_id FROM ducklake_data_file")
    [[inlined]] = con.run("SELECT table_name FROM ducklake_inlined_data_tables")
    [[deleted]] = con.run("SELECT count(*) FROM ducklake_inlined_delete_1")
    con.close()
    sources = {kind: [file["source"] for file in entries(document, kind)] for kind in KINDS}
    assert [source["rows"]["ducklake_data_file"] for source in sources["data"]] == ids
    assert {name for source in sources["inlined rows"] for name in source["rows"]} == {inlined}
    assert [source["note"] for source in sources["deletes"]] == [f"{deleted} inlined"]


KINDS = ("data", "inlined rows", "deletes")


def test_hidden_columns_are_shown_with_the_reason(lake, document_of, inspect):
    hidden = document_of(lake("16"), "it")["hidden"]
    assert hidden.keys() == {"u64", "h", "uh", "tz", "ts_ns", "iv"}
    _, output = inspect(lake("16"), "it")
    assert all(f"  hidden: {column}: {reason}\n" in output for column, reason in hidden.items())


def test_defaults_missing_from_files_are_shown(lake, document_of, inspect):
    document = document_of(lake("56"), "df")
    _, output = inspect(lake("56"), "df")
    names = json.loads(document["document"]["properties"]["polynya.default-columns"])
    assert document["defaults"].keys() <= set(names) and document["defaults"]
    assert all(f"  default: {name}: files" in output for name in document["defaults"])


def test_the_tree_goes_from_the_list_to_the_deletes(lake, inspect):
    code, output = inspect(lake("14"), "main.fl", "--snapshot", "14")
    assert code == 0 and "\x1b" not in output
    tree = [line.strip("│├└─ ") for line in output[output.index("manifest list ") :].splitlines()]
    starts = ["manifest list g3/list-14-", "data: manifest ", "existing ducklake-", "a  100 … 199"]
    # Only the snapshot's own changes are added: it deletes rows.
    starts += ["existing ducklake-", "existing ducklake-", "deletes: manifest "]
    starts += ["added    g3/deletes-"]
    lines = iter(tree)
    assert all(any(line.startswith(start) for line in lines) for start in starts), output
    assert "100 rows, 3 of them deleted" in output and "ducklake_data_file 2" in output
    files = [line for line in tree if line.startswith(("existing ducklake-", "added    g3/"))]
    assert all(re.search(r"; (ducklake_\w+ \d|\d+ inlined)", line) for line in files), output


def test_long_lists_are_shortened(lake, inspect):
    _, some = inspect(lake("33"), "wide")
    assert "… and 290 fields" in some and "… and 90 columns" in some
    _, every = inspect(lake("33"), "wide", "--limit", "0")
    assert "… and" not in every and "c299" in every


def test_for_a_missing_table_the_existing_ones_are_listed(lake, inspect, open_natively):
    given = lake.fresh("25")
    code, output = inspect(given, "main.nothing")
    assert (code, output) == (
        1,
        "polynya: there is no table main.nothing; there are: main.final_in_tx, main.two, s2.one\n",
    )
    con = open_natively(given, read_only=False)
    con.execute("CREATE TABLE lake.main.one AS SELECT 1 AS i")
    assert inspect(given, "one") == (
        1,
        "polynya: several tables are called one: main.one, s2.one\n",
    )
    assert inspect(given, "s2.one")[0] == 0


@pytest.mark.parametrize(
    ("number", "table", "snapshot", "words"),
    [
        ("14", "fl", "99", "the lake has no snapshot 99; its newest is 14"),
        ("08", "c", "2", "main.c cannot be shown at snapshot 2; its oldest snapshot is 4"),
        ("38", "ex", "1", "main.ex cannot be shown at snapshot 1; its oldest snapshot is 6"),
    ],
)
def test_a_snapshot_that_cannot_be_shown_gets_a_reason(
    number, table, snapshot, words, lake, inspect
):
    assert inspect(lake(number), table, "--snapshot", snapshot) == (1, f"polynya: {words}\n")


def test_a_refused_table_gets_a_reason(lake, inspect, open_natively):
    given = lake.fresh("40")
    open_natively(given, read_only=False).execute("CREATE TABLE lake.main.spans(i INTERVAL)")
    code, output = inspect(given, "spans")
    assert code == 1
    assert output == (
        "polynya: the table main.spans is not served: no column can be shown "
        "(i: Iceberg has no interval)\n"
    )


def test_the_command_needs_no_server_and_shows_no_password(lake, moto):
    words = ["inspect", "t", "--metadata-schema", "My Lake", "--s3-endpoint", moto, "--database"]
    command = [*COMMAND, *words, lake("40").database.url]
    good = subprocess.run(command, capture_output=True, text=True, env=environment({}))
    assert good.returncode == 0 and "manifest list g3/list-3-" in good.stdout
    assert good.stderr in ("", "Reading t ...\n")  # on a busy machine it takes a second
    bad = CliRunner().invoke(app, [*words, "postgresql://u:s3cret@127.0.0.1:1/d"])
    assert (bad.exit_code, bad.stdout) == (1, "")
    assert bad.stderr == (
        "polynya: the catalog database at 127.0.0.1:1 cannot be reached: connection refused\n"
    )
