"""`make duckdb-suite`: the catalog tests of DuckDB's iceberg extension, against `polynya serve`.

They are taken from a clone of duckdb-iceberg (DUCKDB_ICEBERG), of the branch of the release. Their
own generators make tables with Spark first. DuckDB's program `unittest` is in no package, so this
reads the scripts (sqllogictest) itself, each in a process of its own, because the extension can
abort. It needs the package duckdb-extension-tpch. What fails is counted by its reason.
"""

import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from importlib import import_module
from itertools import zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import duckdb
from polynya_local.clients.duckdb import connect, extension_path, literal

from tests.catalog_tests.pyiceberg_suite import archive, settings_of
from tests.catalog_tests.run import served
from tests.catalog_tests.spark_session import spark_session

BRANCH = "v1.5-variegata"
TESTS = "test/sql/local/catalog_test_config_setup"
GENERATORS = [f"scripts/data_generators/{name}" for name in ("connections", "tests")]
EXTENSIONS = ("avro", "httpfs", "iceberg", "ducklake", "tpch")
AVAILABLE = {*EXTENSIONS, "core_functions", "parquet", "icu", "json", "no_extension_autoloading"}
SECONDS = 120
DELIVERY = "object-lambda"
"""With `materialize` there is no metadata log, by which DuckDB isolates schemas."""


class Skipped(Exception):
    """The script needs what is not here."""


def main(words: list[str]) -> int:
    """Run the scripts and print what fails, by reason.

    Args:
        words: parts of the paths of the scripts to run; none: all.
    """
    match words:
        case ["--generate"]:
            return generate()
        case ["--one", path]:
            return run_file(Path(path))
    with TemporaryDirectory() as name, served(is_1_1=True, delivery=DELIVERY) as bridge:
        folder = Path(name)
        files = archive("DUCKDB_ICEBERG", BRANCH, TESTS, *GENERATORS)
        subprocess.run(["tar", "-x", "-C", folder], input=files, check=True)
        environ = {**os.environ, **settings_of(bridge)}
        environ["PYTHONPATH"] = os.pathsep.join(
            [str(folder), str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
        )
        module = [sys.executable, "-m", "tests.catalog_tests.duckdb_suite"]
        subprocess.run([*module, "--generate"], cwd=folder, env=environ, check=False)
        reasons: Counter[str] = Counter()
        for path in sorted((folder / TESTS).rglob("*.test*")):
            script = str(path.relative_to(folder / TESTS))
            if words and not any(word in script for word in words):
                continue
            reason = outcome([*module, "--one", str(path)], folder, environ)
            print(f"{reason[:300]:60} {script}", flush=True)
            reasons[re.sub(r"[0-9a-f-]{8,}|'[^']*'|\"[^\"]*\"|\d+", "…", reason)[:160]] += 1
    passed, skipped = reasons.pop("passed", 0), 0
    for reason in [reason for reason in reasons if reason.startswith("skipped")]:
        skipped += reasons.pop(reason)
    print(f"{passed} of {passed + reasons.total()} pass; {skipped} are for other catalogs")
    for reason, number in reasons.most_common():
        print(f"{number:4} {reason}")
    return 0


def outcome(command: list[str], folder: Path, environ: dict[str, str]) -> str:
    """`passed`, `skipped: …` or why the script fails."""
    try:
        done = subprocess.run(
            command, cwd=folder, env=environ, capture_output=True, text=True, timeout=SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"does not end within {SECONDS} seconds"
    lines = done.stdout.strip().splitlines()
    return lines[-1] if done.returncode == 0 and lines else f"aborts: {done.stderr.strip()[-200:]}"


def generate() -> int:
    """Make the tables of the generators with Spark; an error ends one table only."""
    open_duckdb = duckdb.connect

    def with_tpch(*arguments: Any, **options: Any) -> duckdb.DuckDBPyConnection:
        con = open_duckdb(*arguments, **options)
        con.execute(f"LOAD {literal(str(extension_path('tpch')))}")
        return con

    duckdb.connect = with_tpch  # type: ignore[assignment]
    spark: Any = spark_session()
    spark.sql("CREATE NAMESPACE IF NOT EXISTS default")
    spark.sql("USE default")
    generators = import_module("scripts.data_generators.tests").IcebergTest
    generators.get_connection = lambda *_, **__: SimpleNamespace(con=spark, name="spark-rest")
    generators.close_connection = lambda *_: None
    for kind in generators.registry:
        try:
            spark.sql("USE rest.default")
            test = kind()
            test.write_intermediates = False
            test.generate("spark-rest")
        except Exception as error:
            print(f"not made: {kind.__module__}: {str(error)[:200]}", flush=True)
    return 0


def run_file(path: Path) -> int:
    """Run one script and print the outcome."""
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
            if rest[0] != "CATALOG_TEST_CONFIG_SETUP" or rest[1:] not in ([], ["fixture"]):
                raise Skipped(f"needs {' '.join(rest)}")
        elif word in {"statement", "query"}:
            text = "\n".join(body)
            for name, value in variables.items():
                text = text.replace(f"${{{name}}}", value)
            text = text.replace("__TEST_DIR__", self._folder.name)
            text = text.replace("__WORKING_DIRECTORY__", os.getcwd())
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
            assert rest[0] == "maybe" or _is_same(str(error), wanted, is_part=True), (
                f"another error: {error}"
            )
        else:
            assert rest[0] != "error", f"no error: {sql}"

    def _query(self, sql: str, expected: list[str] | None, rest: list[str]) -> None:
        types, *options = rest
        modes = {"nosort", "rowsort", "valuesort", "sort"}
        con = self._connection(next((o for o in options if o.startswith("con")), ""))
        rows = _texts(con.execute(sql).to_arrow_table())
        labels = options[1:] if options and options[0] in modes else []
        if labels and labels[0] in self._labels:
            assert rows == self._labels[labels[0]], f"other rows than before: {sql}"
        elif labels:
            self._labels[labels[0]] = rows
        if (not expected and labels) or expected is None:
            return
        wanted = [line.split("\t") for line in expected]
        if all(len(line) == 1 for line in wanted) and len(types) > 1:
            flat = [line[0] for line in wanted]
            wanted = [flat[i : i + len(types)] for i in range(0, len(flat), len(types))]
        if options[:1] == ["rowsort"] or options[:1] == ["sort"]:
            rows, wanted = sorted(rows), sorted(wanted)
        same = len(rows) == len(wanted) and all(
            _is_same(value, want)
            for row, line in zip(rows, wanted, strict=True)
            for value, want in zip_longest(row, line, fillvalue="")
        )
        assert same, f"other rows: {sql} gives {rows[:3]} for {wanted[:3]}"


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


def _texts(table: Any) -> list[list[str]]:
    """The values of a result as DuckDB's texts."""
    with connect() as con:
        columns = [f"c{i}" for i in range(table.num_columns)]
        con.register("result", table.rename_columns(columns))
        texts = ", ".join(f"CAST({column} AS VARCHAR)" for column in columns)
        rows = con.execute(f"SELECT {texts} FROM result").fetchall()
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
    sys.exit(main(sys.argv[1:]))
