"""Names with escape sequences and newlines never reach a terminal or a log as such."""

import json
import logging
import unicodedata
from contextlib import closing

import pytest
from polynya.runtime.metrics import function_logger
from polynya.runtime.printable import printable, printable_json
from polynya_local.cli import app
from polynya_local.clients.duckdb import LAKE, connect, identifier, literal
from polynya_local.server.logs import PrintableFormatter
from typer.testing import CliRunner

# What clears the screen, sets the title, turns the text, and looks like another line.
CONTROL = "\x1b[2J\x1b]0;title\x07\u202e\x9b31m\x7f\nWARNING: all is well\r\t"
NAMES = {kind: f"{kind}{CONTROL}" for kind in ("schema", "table", "column", "hidden", "view")}


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """A lake with such names everywhere that DuckLake permits them."""
    folder = tmp_path_factory.mktemp("names")
    schema, table, column, hidden, view = map(identifier, NAMES.values())
    with closing(connect(LAKE)) as con:
        catalog, data = literal(f"ducklake:{folder}/m.ducklake"), literal(f"{folder}/data")
        con.execute(f"ATTACH {catalog} AS lake (DATA_PATH {data}, DATA_INLINING_ROW_LIMIT 0)")
        con.execute(f"CREATE SCHEMA lake.{schema}")
        con.execute(f"CREATE TABLE lake.{schema}.{table} ({column} INT, {hidden} TIMETZ)")
        con.execute(f"ALTER TABLE lake.{schema}.{table} SET PARTITIONED BY ({column})")
        con.execute(f"INSERT INTO lake.{schema}.{table} VALUES (1, NULL)")
        con.execute(f"COMMENT ON COLUMN lake.{schema}.{table}.{column} IS {literal(CONTROL)}")
        con.execute(f"CREATE TABLE lake.{schema}.refused (a TIMETZ)")
        con.execute(f"CREATE VIEW lake.{schema}.{view} AS SELECT 1 AS a")
    return f"{folder}/m.ducklake"


TABLE = f"{NAMES['schema']}.{NAMES['table']}"
COMMANDS = {
    "doctor": ("doctor",),
    "doctor --json": ("doctor", "--json"),
    "inspect": ("inspect", NAMES["table"]),
    "inspect --json": ("inspect", NAMES["table"], "--json"),
    "inspect, of none": ("inspect", f"none{CONTROL}"),
}


TURNING = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def control_characters(text: str) -> set[str]:
    """Control characters, and those of the direction of text, but the ends of lines."""
    is_control = {c for c in text if unicodedata.category(c) in {"Cc", "Cs", "Zl", "Zp"}}
    return is_control - {"\n"} | {c for c in text if unicodedata.bidirectional(c) in TURNING}


@pytest.mark.parametrize("case", COMMANDS)
def test_no_control_character_of_a_name_is_printed(lake, case):
    done = CliRunner().invoke(app, [*COMMANDS[case], lake])
    printed = done.output
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert control_characters(printed) == set()
    assert not any(line.startswith("WARNING: all is well") for line in printed.splitlines())
    assert "title" in printed
    if "--json" in COMMANDS[case]:
        assert any(CONTROL in text for text in texts(json.loads(done.stdout)))


def texts(document) -> list[str]:
    if isinstance(document, dict):
        return [text for pair in document.items() for part in pair for text in texts(part)]
    if isinstance(document, list):
        return [text for part in document for text in texts(part)]
    return [document] if isinstance(document, str) else []


def test_every_character_is_printable_or_escaped():
    every = "".join(map(chr, range(0x110000)))
    assert control_characters(printable(every)) == set()
    assert "\n" not in printable(every)
    assert json.loads(printable_json({"a": "é\x1b\x9b\u202e𐀀"})) == {"a": "é\x1b\x9b\u202e𐀀"}


def test_a_log_line_is_one_line_and_printable(capsys):
    function_logger("test").warning(f"refused {CONTROL}")
    line = capsys.readouterr().err
    assert control_characters(line) == set() and line.count("\n") == 1
    record = logging.makeLogRecord({"msg": "%s failed", "args": (CONTROL,)})
    assert control_characters(PrintableFormatter("%(message)s").format(record)) == set()
