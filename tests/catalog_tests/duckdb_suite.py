"""`make duckdb-suite`: the catalog tests of DuckDB's iceberg extension, against `polynya serve`.

They are taken from a clone of duckdb-iceberg (DUCKDB_ICEBERG), of the branch of the release. Their
own generators make tables with Spark first; the lake with these is saved. It needs the packages
duckdb-extension-tpch and duckdb-extension-aws. What fails is counted by its reason.
"""

import os
import re
import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module
from itertools import chain
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import boto3
import duckdb
from polynya_local.clients.duckdb import connect, extension_path, literal
from polynya_local.processes.serving import Bridge

from tests.catalog_tests.pyiceberg_suite import archive, settings_of
from tests.catalog_tests.run import served
from tests.catalog_tests.spark_session import spark_session
from tests.catalog_tests.sqllogictest import EXTENSIONS
from tests.support.lakes import BUCKET

BRANCH = "v1.5-variegata"
TESTS = "test/sql/local/catalog_test_config_setup"
GENERATORS = [f"scripts/data_generators/{name}" for name in ("connections", "tests")]
SAVED = Path(__file__).parents[2] / ".cache" / "duckdb-suite"
"""The lake of the generators, which take long; it is made again if this is removed."""

FOLDER = SAVED / "scripts"
MODULE = [sys.executable, "-m", "tests.catalog_tests.duckdb_suite"]
PARTS = 2
SECONDS = 900
PROPERTIES = "foo,page-write-size,property*,new_property_*,duckdb_man,another1"
"""The names that the scripts give to properties of tables."""

DELIVERY = "object-lambda"
"""With `materialize` there is no metadata log, by which DuckDB isolates schemas."""


def main(words: list[str]) -> int:
    """Run the scripts and print what fails, by reason.

    Args:
        words: parts of the paths of the scripts to run; none: all.
    """
    match words:
        case ["--generate"]:
            return generate()
        case ["--part", part, *words]:
            return run_part(int(part), words)
    os.environ["CUSTOM_PROPERTIES"] = PROPERTIES
    if not (SAVED / "catalog.sql").exists():
        make_lake()
    with ThreadPoolExecutor(PARTS) as pool:
        outcomes = chain(*pool.map(partial(part_outcomes, words), range(PARTS)))
    reasons = Counter(
        re.sub(r"[0-9a-f-]{8,}|'[^']*'|\"[^\"]*\"|\d+", "…", reason)[:160] for reason in outcomes
    )
    passed, skipped = reasons.pop("passed", 0), 0
    for reason in [reason for reason in reasons if reason.startswith("skipped")]:
        skipped += reasons.pop(reason)
    print(f"{passed} of {passed + reasons.total()} pass; {skipped} are for other catalogs")
    for reason, number in reasons.most_common():
        print(f"{number:4} {reason}")
    return 0


def make_lake() -> None:
    """Save a lake with the tables of the generators, and the scripts beside it."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    files = archive("DUCKDB_ICEBERG", BRANCH, TESTS, *GENERATORS, "data/persistent")
    subprocess.run(["tar", "-x", "-C", FOLDER], input=files, check=True)
    with served(is_1_1=True, delivery=DELIVERY) as bridge:
        subprocess.run([*MODULE, "--generate"], cwd=FOLDER, env=environ_of(bridge), check=True)
        save_answers(FOLDER / "duckdb/extension/tpch/dbgen/answers/sf1")
        store = boto3.client("s3", endpoint_url=os.environ["LAKE_S3"])
        for page in store.get_paginator("list_objects_v2").paginate(Bucket=BUCKET):
            for entry in page.get("Contents", []):
                path = SAVED / "objects" / entry["Key"]
                path.parent.mkdir(parents=True, exist_ok=True)
                store.download_file(BUCKET, entry["Key"], str(path))
        database("pg_dump", "--file", SAVED / "catalog.sql")


def save_answers(folder: Path) -> None:
    """Save the answers of TPC-H, which the extension has too."""
    folder.mkdir(parents=True, exist_ok=True)
    with connect(EXTENSIONS) as con:
        answers = "SELECT query_nr, answer FROM tpch_answers() WHERE scale_factor = 1"
        for number, answer in con.execute(answers).fetchall():
            (folder / f"q{number:02}.csv").write_text(answer)


def part_outcomes(words: list[str], number: int) -> list[str]:
    """The outcomes of a process that runs a part of the scripts, each printed when it is known."""
    command = [*MODULE, "--part", str(number), *words]
    with (
        (SAVED / f"part-{number}.log").open("w") as log,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True) as process,
    ):
        assert process.stdout is not None
        outcomes = []
        for line in process.stdout:
            script, _, reason = line.rstrip().partition(": ")
            print(f"{reason[:1500]:60} {script}", flush=True)
            outcomes.append(reason)
    if process.returncode:
        raise SystemExit(f"part {number} ends with an error: {log.name}")
    return outcomes


def run_part(number: int, words: list[str]) -> int:
    """Run every second script on a copy of the lake, because the scripts' tables share names."""
    scripts = sorted(FOLDER.glob(f"{TESTS}/**/*.test*"))[number::PARTS]
    with served(is_1_1=True, delivery=DELIVERY) as bridge:
        empty = "DROP SCHEMA public CASCADE; CREATE SCHEMA public"
        database("psql", "-q", "-o/dev/null", "-c", empty, "-f", SAVED / "catalog.sql")
        store = boto3.client("s3", endpoint_url=os.environ["LAKE_S3"])
        for path in filter(Path.is_file, (SAVED / "objects").rglob("*")):
            store.upload_file(str(path), BUCKET, str(path.relative_to(SAVED / "objects")))
        for path in scripts:
            script = str(path.relative_to(FOLDER / TESTS))
            if not words or any(word in script for word in words):
                reason = outcome(path, environ_of(bridge))
                print(f"{script}: {reason}", flush=True)
    return 0


def environ_of(bridge: Bridge) -> dict[str, str]:
    """The environment of a client, which finds the generators and this module."""
    paths = [str(FOLDER), str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, **settings_of(bridge), "PYTHONPATH": os.pathsep.join(paths)}


def database(program: str, *words: str | Path) -> None:
    """Run a program of PostgreSQL on the catalog that is served."""
    subprocess.run([program, *words, os.environ["LAKE_CATALOG"]], check=True)


def outcome(script: Path, environ: dict[str, str]) -> str:
    """`passed`, `skipped: …` or why the script fails."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "tests.catalog_tests.sqllogictest", str(script)],
            cwd=FOLDER,
            env=environ,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
    except subprocess.TimeoutExpired:
        return f"does not end within {SECONDS} seconds"
    lines, words = done.stdout.strip().splitlines(), " ".join(done.stderr.split())
    return lines[-1] if done.returncode == 0 and lines else f"aborts: {words[-200:]}"


def generate() -> int:
    """Make the tables of the generators with Spark; an error ends one table only."""
    open_duckdb = duckdb.connect

    def with_tpch(*arguments: Any, **options: Any) -> duckdb.DuckDBPyConnection:
        con = open_duckdb(*arguments, **options)
        con.execute(f"LOAD {literal(str(extension_path('tpch')))}")
        return con

    duckdb.connect = with_tpch
    spark: Any = spark_session("demo")
    for namespace in ("default", "demo.level1", "demo.level1.level2"):
        spark.sql(f"CREATE NAMESPACE IF NOT EXISTS {namespace}")
    spark.sql("USE default")
    for writer in ("datetimeRebaseModeInWrite", "int96RebaseModeInWrite"):
        spark.conf.set(f"spark.sql.parquet.{writer}", "CORRECTED")
    connections = import_module("scripts.data_generators.connections").IcebergConnection
    connections.get_class = lambda name: lambda: connection(spark, name)
    generators = import_module("scripts.data_generators.tests").IcebergTest
    generators.close_connection = lambda *_: None
    for kind in generators.registry:
        try:
            spark.sql("USE demo.default")
            test = kind()
            test.write_intermediates = False
            test.generate("spark-rest")
            if test.table.startswith("lineitem"):  # compared with the files of these tables
                last = f"data/generated/intermediates/spark-rest/{test.table}/last/data.parquet"
                spark.table(f"demo.default.{test.table}").write.parquet(str(Path(last).absolute()))
        except Exception as error:
            print(f"not made: {kind.__module__}: {str(error)[:200]}", flush=True)
    return 0


def connection(spark: Any, name: str) -> SimpleNamespace:
    """The session, which writes one file at a time if the name says so."""
    threads = 1 if name.endswith("single-thread") else 2
    spark.conf.set("spark.sql.leafNodeDefaultParallelism", threads)
    return SimpleNamespace(con=spark, name=name)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
