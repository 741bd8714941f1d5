"""Runs a script of sqllogictest on the catalog that the environment names, and prints the outcome.

DuckDB's program `unittest` is in no package. Each script gets a process, because the extension can
abort.
"""

import json
import os
import re
import sys
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import duckdb
from polynya_local.clients.duckdb import connect, literal

EXTENSIONS = ("avro", "aws", "httpfs", "iceberg", "ducklake", "tpch")
AVAILABLE = {*EXTENSIONS, "core_functions", "parquet", "icu", "json", "no_extension_autoloading"}
SETTINGS = (
    ["CATALOG_TEST_CONFIG_SETUP"],
    ["CATALOG_TEST_CONFIG_SETUP", "fixture"],
    ["DUCKDB_ICEBERG_HAVE_GENERATED_DATA"],
)
"""What scripts require of the environment, and is so here."""


class Skipped(Exception):
    """The script needs what is not here."""


def main(path: Path) -> None:
    """Run a script and print the outcome."""
    try:
        Script(path).run()
        print("passed")
    except Skipped as reason:
        print(f"skipped: {reason}")
    except (AssertionError, duckdb.Error) as error:
        print(" ".join(str(error).split()) or type(error).__name__)
    sys.stdout.flush()
    os._exit(0)  # the extension may abort when its connections are closed


class Script:
    """A script of sqllogictest."""

    def __init__(self, path: Path) -> None:
        self._blocks = [block.splitlines() for block in _blocks(path.read_text())]
        self._folder = TemporaryDirectory()
        self._labels: dict[str, list[list[str]]] = {}
        self._main = connect(EXTENSIONS, os.environ["REST_S3_ENDPOINT"])
        attach = "ATTACH {} AS my_datalake (TYPE ICEBERG, ENDPOINT {}, AUTHORIZATION_TYPE 'none')"
        names = [literal(os.environ[name]) for name in ("REST_WAREHOUSE", "REST_URI")]
        self._main.execute(attach.format(*names))
        self._main.execute("CREATE SCHEMA IF NOT EXISTS my_datalake.default")
        self._connections = {"": self._main}
        self._is_on = True
        # Iceberg's REST fixture has no prefix.
        self._prefix = os.environ.get("REST_PREFIX", f"/v1/{os.environ['REST_WAREHOUSE']}")

    def run(self) -> None:
        self._run(self._blocks, {})

    def _run(self, blocks: list[list[str]], variables: dict[str, str]) -> None:
        position = 0
        while position < len(blocks):
            head, *body = blocks[position]
            word, *rest = head.split()
            position += 1
            if word in {"loop", "concurrentloop", "foreach", "concurrentforeach"}:
                name, *values = rest
                if "loop" in word:
                    values = [str(i) for i in range(int(values[0]), int(values[1]))]
                end = _end(blocks, position)
                for value in values:
                    self._run(blocks[position:end], {**variables, name: value})
                position = end + 1
                continue
            self._step(word, rest, body, variables)

    def _step(self, word: str, rest: list[str], body: list[str], variables: dict[str, str]) -> None:
        if word == "mode":
            self._is_on = rest != ["skip"] and (rest == ["unskip"] or self._is_on)
        elif not self._is_on:
            return
        elif word == "onlyif":
            name, _, value = rest[0].partition("=")
            if variables.get(name) == value:
                self._step(*_split(body), variables)
        elif word == "require" and rest[0] not in AVAILABLE:
            raise Skipped(f"needs {rest[0]}")
        elif word == "require-env":
            if rest not in SETTINGS:
                raise Skipped(f"needs {' '.join(rest)}")
        elif word in {"statement", "query"}:
            text = "\n".join(body)
            for name, value in variables.items():
                text = text.replace(f"${{{name}}}", value)
            text = text.replace("__TEST_DIR__", self._folder.name)
            text = text.replace("__WORKING_DIRECTORY__/", "")  # a dot would divide names
            text = text.replace("http://127.0.0.1:8181/v1", os.environ["REST_URI"] + self._prefix)
            sql, separator, expected = text.partition("\n----")
            (self._statement if word == "statement" else self._query)(
                sql, expected.strip("\n").splitlines() if separator else None, rest
            )

    def _connection(self, name: str) -> duckdb.DuckDBPyConnection:
        if name not in self._connections:
            self._connections[name] = self._main.cursor()
        return self._connections[name]

    def _statement(self, sql: str, expected: list[str] | None, rest: list[str]) -> None:
        con = self._connection(rest[1] if rest[1:] else "")
        if rest[0] == "maybe":
            expected = []
        try:
            con.execute(sql).fetchall()
        except duckdb.Error as error:
            if rest[0] == "ok":
                raise
            wanted = "\n".join(expected or [])
            # In Python an error of HTTP does not begin with its kind, nor end with a line's end.
            shown = re.sub(r'"exception_type":"([^"]*)"', r"\1 Error:", f"{error}\n")
            assert rest[0] == "maybe" or _is_same(shown, wanted, is_part=True), (
                f"another error: {error}"
            )
        else:
            assert rest[0] != "error", f"no error: {sql}"

    def _query(self, sql: str, expected: list[str] | None, rest: list[str]) -> None:
        types, *options = rest
        modes = {"nosort", "rowsort", "valuesort", "sort"}
        con = self._connection(next((o for o in options if o.startswith("con")), ""))
        rows = _texts(con, sql)
        labels = options[1:] if options and options[0] in modes else []
        if labels and labels[0] in self._labels:
            before = self._labels[labels[0]]
            assert rows == before, (
                f"other rows than before: {sql} gives {rows[:9]} for {before[:9]}"
            )
        elif labels:
            self._labels[labels[0]] = rows
        if (not expected and labels) or expected is None:
            return
        if expected and expected[0].startswith("<FILE>:"):
            lines = Path(expected[0].partition(":")[2]).read_text().splitlines()[1:]
            expected = [line.replace("|", "\t") for line in lines]
        wanted = [line.split("\t") for line in expected]
        if all(len(line) == 1 for line in wanted) and len(types) > 1:
            flat = [line[0] for line in wanted]
            wanted = [flat[i : i + len(types)] for i in range(0, len(flat), len(types))]
        if options[:1] == ["rowsort"] or options[:1] == ["sort"]:
            rows, wanted = sorted(rows), sorted(wanted)
        others = [
            f"{row} for {line}"
            for row, line in zip_longest(rows, wanted, fillvalue=[])
            if not all(_is_same(*pair) for pair in zip_longest(row, line, fillvalue=""))
        ]
        assert not others, f"other rows: {sql} gives {'; '.join(others[:3])}"


def _blocks(text: str) -> Iterator[str]:
    # A block ends with an empty line. Comments are between blocks, and at the beginning of one.
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    for block in re.split(r"\n\s*\n", "\n".join(lines)):
        if block.strip():
            yield from _directives(block.strip("\n"))


def _directives(block: str) -> Iterator[str]:
    """Directives of one line need no empty line after them."""
    head, _, rest = block.partition("\n")
    if head.split()[0] in {"statement", "query", "onlyif"} or not rest:
        yield block
        return
    yield head
    yield from _directives(rest)


def _split(lines: list[str]) -> tuple[str, list[str], list[str]]:
    word, *rest = lines[0].split()
    return word, rest, lines[1:]


def _end(blocks: list[list[str]], position: int) -> int:
    depth = 1
    while depth:
        word = blocks[position][0].split()[0]
        depth += ("loop" in word or "foreach" in word) and word != "endloop"
        depth -= word == "endloop"
        position += 1
    return position - 1


def _texts(con: duckdb.DuckDBPyConnection, sql: str) -> list[list[str]]:
    """The values of a result as DuckDB's texts."""
    result = con.execute(sql)
    if any("VARIANT" in str(column[1]) for column in result.description or ()):  # Arrow has none
        types = f"SELECT CAST(COLUMNS(*) AS VARCHAR) FROM ({sql.rstrip().rstrip(';')})"
        return _shown(con.execute(types).fetchall())
    table = result.to_arrow_table()
    [(zone,)] = con.execute("SELECT current_setting('TimeZone')").fetchall()
    with connect() as other:
        other.execute(f"SET TimeZone = {literal(zone)}")
        columns = [f"c{i}" for i in range(table.num_columns)]
        other.register("result", table.rename_columns(columns))
        texts = ", ".join(f"CAST({column} AS VARCHAR)" for column in columns)
        return _shown(other.execute(f"SELECT {texts} FROM result").fetchall())


def _shown(rows: list[Any]) -> list[list[str]]:
    return [
        ["NULL" if value is None else value.replace("\0", "\\0") or "(empty)" for value in row]
        for row in rows
    ]


def _is_same(value: str, wanted: str, *, is_part: bool = False) -> bool:
    if wanted.startswith(("<REGEX>:", "<!REGEX>:")):
        kind, _, pattern = wanted.partition(":")
        matches = re.fullmatch(pattern, value, re.DOTALL) or (
            is_part and re.search(pattern, value, re.DOTALL)
        )
        return bool(matches) is (kind == "<REGEX>")
    if is_part:
        return wanted.strip().casefold() in value.casefold()
    if value == wanted or {value, wanted} <= {"true", "1"} or {value, wanted} <= {"false", "0"}:
        return True
    try:
        return abs(float(value) - float(wanted)) <= abs(float(wanted)) * 1e-6
    except ValueError:
        return bool(json.dumps(value) == json.dumps(wanted))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
