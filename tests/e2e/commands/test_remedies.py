"""What `polynya doctor` and the page say to do is done: the finding is gone, and no row is changed.

Each case makes a fault in a lake of its own, runs exactly what the report says in the program that
it is for, asks for the report again, and compares all rows of all tables, natively and through
PyIceberg. `test_every_remedy_is_run` fails if the code has a remedy that no case runs.
"""

import ast
import json
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import polynya_local
import pytest
from duckdb import DuckDBPyConnection
from moto.s3.models import s3_backends
from pg8000.native import identifier as pg_identifier
from polynya.storage.aws import AwsSettings
from polynya_local.cli import app
from polynya_local.clients import duckdb as duckdb_client
from polynya_local.clients import pyiceberg
from polynya_local.clients.duckdb import LAKE, connect, identifier, literal
from polynya_local.clients.native import Lake, attach, filled_in
from polynya_local.processes.serving import Bridge, serving
from polynya_local.reports import table_checks
from polynya_local.reports.difference import difference
from polynya_local.reports.generator import Generator
from polynya_local.reports.opened_table import TableRef
from typer.testing import CliRunner

from tests.support import file_lakes
from tests.support.lakes import BUCKET
from tests.support.servers.in_process import bridge, settings
from tests.support.variants import written_by_duckdb_2
from tests.support.writes.writable import client_of, set_up_writes

ROOT = Path(__file__).parents[3]
REPORTS = Path(polynya_local.__file__).parent / "reports"
LEVELS = {"ERROR", "WARNING", "NOTE"}

READER = "remedies' reader"
ATTACH = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
USE lake;
"""
# Names that SQL has to quote, and beside it a table of the same name in another schema.
NAMESPACE, TABLE = "s'x", 't "q'
T = '"s\'x"."t ""q"'
NAMES = f"""{ATTACH}
CREATE SCHEMA "s'x";
CREATE TABLE "t ""q" AS SELECT 7 AS other;
"""


@dataclass(frozen=True, slots=True)
class Case:
    """A fault, and where its remedy is to be found."""

    remedy: str
    """In the code: the function that makes the statements, or a constant; or `Advice.what`."""
    finding: str
    """Words of its message."""
    script: str
    fault: Callable[["Patient"], None] = lambda patient: None
    """What makes the fault, after the script."""
    doctored: Callable[["Patient", str], None] = lambda patient, text: patient.native(text)
    """Runs the statements; by default DuckDB does, with the lake attached as `lake`."""
    client: ModuleType = pyiceberg
    """The Iceberg client that reads all rows."""
    is_reader: bool = False
    """Whether `doctor` connects as a role that may only read."""
    slow: bool = False


Rows = dict[str, dict[str, Counter]]
"""By client and table."""


class Patient:
    """A lake with a fault."""

    def __init__(self, lake: Lake, s3_endpoint: str) -> None:
        self.lake, self.s3_endpoint = lake, s3_endpoint

    def native(self, text: str) -> None:
        """Run statements in a DuckDB of their own."""
        with closing(connect(LAKE, self.s3_endpoint)) as con:
            attach(con, self.lake, read_only=False)
            for statement in con.extract_statements(text):
                con.execute(statement)

    def catalog(self, text: str) -> None:
        """Run statements in PostgreSQL."""
        with closing(self.lake.database.connect()) as con:
            con.run(f"SET search_path = {pg_identifier(self.lake.metadata_schema)}")
            for statement in filter(str.strip, text.split(";")):
                con.run(statement)

    def undo(self, table: str, before: int, after: int) -> str:
        """What the page says to run to undo the snapshots between two."""
        generator = Generator(
            self.lake.database.url,
            self.lake.metadata_schema,
            AwsSettings.from_s3_endpoint(self.s3_endpoint),
        )
        ref = TableRef(NAMESPACE, table, after)
        with closing(generator.database):
            report, _ = generator.read(lambda con: difference(generator, con, ref, before, after))
        return report.undo

    def newest(self) -> int:
        [[snapshot_id]] = self.lake.database.run("SELECT max(snapshot_id) FROM ducklake_snapshot")
        return snapshot_id

    def report(self, user: str = "") -> list[dict[str, str]]:
        """What `polynya doctor` finds and advises: `message` and `text`, what is to be run."""
        database = self.lake.database
        database = replace(database, user=user) if user else database
        where = ["--database", database.url, "--metadata-schema", self.lake.metadata_schema]
        with settings(AWS_ENDPOINT_URL_S3=self.s3_endpoint):
            return said([*where, "--s3-endpoint", self.s3_endpoint])

    def rows(self, client: ModuleType = pyiceberg) -> Rows:
        with closing(connect(LAKE, self.s3_endpoint)) as con:
            attach(con, self.lake)
            with bridge(self.lake, self.s3_endpoint, delivery="object-lambda") as served:
                return all_rows(con, served, client)


def all_rows(con: DuckDBPyConnection, served: Bridge, client: ModuleType = pyiceberg) -> Rows:
    """All rows of all tables, natively and as an Iceberg client gets them, by client and table.

    Args:
        con: has the lake attached as `lake`.
    """
    rows: Rows = {"DuckLake": {}, client.NAME: {}}
    tables = con.execute(
        "SELECT schema_name, table_name FROM duckdb_tables() WHERE database_name = 'lake'"
    ).fetchall()
    with closing(client.open(served.catalog_uri, "lake", served.s3_endpoint)) as iceberg:
        for schema, table in tables:
            source = f"lake.{identifier(schema)}.{identifier(table)}"
            values = con.execute(f"SELECT columns(*)::VARCHAR FROM {source}").fetchall()
            rows["DuckLake"][f"{schema}.{table}"] = Counter(values)
            values = iceberg.rows(schema, table).to_pylist()
            rows[client.NAME][f"{schema}.{table}"] = Counter(map(repr, values))
    assert all(any(counter for counter in of.values()) for of in rows.values())
    return rows


def said(where: list[str]) -> list[dict[str, str]]:
    """What `polynya doctor` finds and advises: `level`, `message` and `text`, what to run."""
    done = CliRunner().invoke(app, ["doctor", "--json", *where])
    document = json.loads(done.stdout)
    advice = [*document["advice"], *(a for t in document["tables"] for a in t["advice"])]
    return [
        *({**finding, "text": finding["remedy"]} for finding in document["findings"]),
        *({"message": f"{a['what']}: {a['message']}", "text": a["statements"]} for a in advice),
    ]


# The faults


def revoke(statement: str) -> Callable[[Patient], None]:
    return lambda patient: patient.catalog(statement.format(pg_identifier(READER)))


def tag(snapshot: int) -> Callable[[Patient], None]:
    return lambda patient: patient.catalog(
        "INSERT INTO ducklake_tag (object_id, begin_snapshot, key, value) "
        f"SELECT table_id, begin_snapshot, 'polynya.reference.old', '[{snapshot}, null]' "
        "FROM ducklake_table ORDER BY table_id DESC LIMIT 1"
    )


def aged(column: str) -> Callable[[Patient], None]:
    table, _, name = column.partition(".")
    return lambda patient: patient.catalog(
        f"UPDATE {table} SET {name} = {name} - interval '30 days'"
    )


def lose_a_file(patient: Patient) -> None:
    """A file that a write which failed has left, two days ago."""
    patient.native(f"COPY (SELECT 1 AS x) TO '{patient.lake.data_path}/lost.parquet'")
    _, account = s3_backends.bucket_accounts[BUCKET]
    keys = s3_backends[account]["aws"].buckets[BUCKET].keys
    prefix = patient.lake.data_path.removeprefix(f"s3://{BUCKET}/")
    keys[f"{prefix}/lost.parquet"].last_modified = datetime.now(UTC) - timedelta(days=2)


def claim(table: str, change: str) -> Callable[[Patient], None]:
    """Other values in the rows that the catalog has of the files of the table."""
    return lambda patient: patient.catalog(
        f"UPDATE ducklake_{table} SET {change} AND table_id = "
        "(SELECT max(table_id) FROM ducklake_data_file)"
    )


# The remedies


def as_owner(patient: Patient, text: str) -> None:
    patient.catalog(text)


def drop_tag(patient: Patient, text: str) -> None:
    """The words have a statement of PyIceberg."""
    statements, _, _ = text.partition(" in PyIceberg")
    set_up_writes(patient.lake)
    with bridge(patient.lake, patient.s3_endpoint, writes=True) as served:
        exec(statements, {"table": client_of(served).load_table((NAMESPACE, TABLE))})


def without_expiry(patient: Patient, text: str) -> None:
    """Nothing expires after it, however old it is."""
    patient.native(text)
    snapshots = patient.lake.database.run("SELECT count(*) FROM ducklake_snapshot")
    time.sleep(1.1)
    patient.native("CALL ducklake_expire_snapshots('lake')")
    assert patient.lake.database.run("SELECT count(*) FROM ducklake_snapshot") == snapshots


def with_duckdb_2(patient: Patient, text: str) -> None:
    patient.native(text)
    written_by_duckdb_2(patient.lake, patient.s3_endpoint, [TABLE], suffix="-2")


SMALL = f"""{NAMES}
CREATE TABLE {T}(id BIGINT, v VARCHAR);
CALL ducklake_set_option('lake', 'data_inlining_row_limit', 0);
-- @repeat 5
INSERT INTO {T} SELECT {{{{i}}}} * 100 + i, 'c' || i FROM range(20) AS r(i);
"""
INLINED = f"""{NAMES}
CREATE TABLE {T}(id BIGINT, v VARCHAR);
INSERT INTO {T} SELECT i, 'c' || i FROM range(100) AS r(i);
INSERT INTO {T} VALUES (100, 'ä'), (101, 'it''s'), (102, NULL);
DELETE FROM {T} WHERE id IN (3, 101) OR id BETWEEN 20 AND 60;
"""
DEFAULT = f"""
ALTER TABLE {T} ADD COLUMN "a d" INTEGER DEFAULT 7;
INSERT INTO {T} VALUES (200, 'later', 8);
"""

CLAIMED = f"""{NAMES}
CREATE TABLE {T}(id BIGINT, v VARCHAR, f DOUBLE);
ALTER TABLE {T} SET PARTITIONED BY (v);
CALL ducklake_set_option('lake', 'data_inlining_row_limit', 0);
INSERT INTO {T} SELECT i, 'c' || i % 2, i / 4 FROM range(20) AS r(i);
INSERT INTO {T} VALUES (100, NULL, NULL), (101, NULL, 'nan');
DELETE FROM {T} WHERE id IN (3, 101);
"""
OF_STATS, OF_VALUES = "file_column_stats", "file_partition_value"
CLAIMS = {
    "a bound of id that is no value of its type": claim(
        OF_STATS, "min_value = 'many', column_size_bytes = 0 WHERE column_id = 1"
    ),
    "a lower bound of id above the upper one": claim(
        OF_STATS, "min_value = max_value, max_value = min_value WHERE column_id = 1"
    ),
    "a partition value of v that the statistics": claim(
        OF_VALUES, "partition_value = 'None' WHERE partition_value IS NULL"
    ),
    "partition values, such as that of v,": claim(
        OF_VALUES, "partition_key_index = 1 WHERE partition_value = 'c1'"
    ),
    "no NaN in f, which nothing has checked": claim(
        OF_STATS, "contains_nan = false, column_size_bytes = 0 WHERE column_id = 3"
    ),
    "numbers of values and of NULLs in v": claim(
        OF_STATS, "value_count = 1 WHERE column_id = 2 AND value_count > 0"
    ),
}
"""What the catalog says of files and cannot be true; by the words of the finding."""

CASES = {
    **{
        words: Case("new_files_statements", words, CLAIMED, fault, slow=number > 0)
        for number, (words, fault) in enumerate(CLAIMS.items())
    },
    "two partitionings": Case(
        "partitioning_statements",
        "2 partitionings at once",
        f"""{NAMES}
        CREATE TABLE {T}(id BIGINT, v VARCHAR, day DATE);
        ALTER TABLE {T} SET PARTITIONED BY (year(day), bucket(4, id), v);
        INSERT INTO {T} SELECT i, 'c' || i, DATE '2020-02-29' FROM range(20) AS r(i);
        """,
        lambda patient: patient.catalog(
            "INSERT INTO ducklake_partition_info SELECT 7001, table_id, begin_snapshot - 1, NULL "
            "FROM ducklake_partition_info; INSERT INTO ducklake_partition_column "
            "SELECT 7001, table_id, 0, 1, 'identity' FROM ducklake_partition_info LIMIT 1"
        ),
    ),
    "a partitioning of none": Case(
        "new_files_statements",
        "of a partitioning that ducklake_partition_info does not have",
        CLAIMED,
        claim("data_file", "partition_id = 7001 WHERE record_count > 2"),
        slow=True,
    ),
    "no grant on a table": Case(
        "grant",
        "may not read 1 of DuckLake's",
        SMALL,
        revoke("REVOKE SELECT ON ducklake_metadata FROM {}"),
        as_owner,
        is_reader=True,
    ),
    "no grant on the schema": Case(
        "grant",
        "may not use the schema My Lake",
        SMALL.replace("(DATA_PATH", "(METADATA_SCHEMA 'My Lake', DATA_PATH"),
        revoke('REVOKE USAGE ON SCHEMA "My Lake" FROM {}'),
        as_owner,
        is_reader=True,
        slow=True,
    ),
    "no default privileges": Case(
        "default_privileges",
        "may not read tables of inlined rows that",
        SMALL,
        doctored=as_owner,
        is_reader=True,
    ),
    "no index": Case("index_statement", "has no index", SMALL, doctored=as_owner),
    "many small files": Case("merge_statement", "data files of ", SMALL),
    "variants": Case(
        "new_files_statements",
        "other clients than DuckDB misread",
        f"""{NAMES}
        CREATE TABLE {T}(id BIGINT, v VARIANT);
        INSERT INTO {T} SELECT i, i::VARIANT FROM range(30) AS r(i);
        DELETE FROM {T} WHERE id < 3;
        INSERT INTO {T} VALUES (99, 'inlined'::VARIANT);
        """,
        doctored=with_duckdb_2,
        client=duckdb_client,  # PyIceberg knows no VARIANT
    ),
    "a default": Case(
        "new_files_statements",
        "has a default: files lack it",
        f"""{INLINED}
        {DEFAULT}
        """,
    ),
    "a tag whose snapshot has expired": Case(
        "drop_statements", "the tags old are not shown", SMALL, tag(77), drop_tag
    ),
    "a tag whose snapshot will expire": Case(
        "NO_EXPIRY_REMEDY",
        "the tags old end when",
        SMALL + "CALL lake.set_option('expire_older_than', '1 second');",
        tag(4),
        without_expiry,
    ),
    "inlined rows": Case("flush", "flush: inlined: ", INLINED),
    "deleted rows": Case("rewrite", "rewrite: ", INLINED),
    "small files": Case("merge", "merge: ", SMALL, slow=True),
    "old snapshots": Case("expire", "expire: ", SMALL, aged("ducklake_snapshot.snapshot_time")),
    "files that are scheduled": Case(
        "clean up",
        "clean up: ",
        SMALL + "CALL ducklake_merge_adjacent_files('lake', 't \"q', schema => 's''x');",
        aged("ducklake_files_scheduled_for_deletion.schedule_start"),
    ),
    "a file of a failed write": Case("orphans", "orphans: ", SMALL, lose_a_file),
}

WORDS = {
    "CLIENTS_REMEDY": "names a page and a document",
    "VENDING_REMEDY": "names a document",
    "VERSION_3_REMEDY": "names a setting, which tests/differential/test_version_3.py has",
    "PAST_DEFAULTS_REMEDY": "names a setting; past snapshots are for their owner to end",
}
"""Remedies that are nothing to run, and why."""

ELSEWHERE = {
    "COPY_REMEDY": "tests/differential/test_shared_files.py",
    "NEVER_INLINE": "tests/e2e/faults/test_copied_catalogs.py",
    "REFRESH": "tests/e2e/faults/test_copied_catalogs.py",
    "REPAIR": "tests/e2e/commands/test_repairs.py",
    "REPAIR_FIRST": "tests/e2e/commands/test_repairs.py",
    "SCATTERED_REMEDY": "tests/e2e/commands/test_repairs.py",
    "flush_first_statement": "tests/e2e/commands/test_doctor.py",
}
"""Remedies that another test runs, because the fault is its subject."""


@pytest.fixture
def reader(postgres_server):
    """A role that may read the tables of a lake that exist now."""
    patients: list[Patient] = []

    def made(patient: Patient) -> None:
        role, schema = map(pg_identifier, (READER, patient.lake.metadata_schema))
        patients.append(patient)
        patient.catalog(
            f"CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA {schema} TO {role}; "
            f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}"
        )

    yield made
    for patient in patients:
        patient.catalog(f"DROP OWNED BY {pg_identifier(READER)}")
        patient.catalog(f"DROP ROLE {pg_identifier(READER)}")


@pytest.fixture(autouse=True)
def many_files(monkeypatch):
    """Fewer files are many: each costs the test."""
    monkeypatch.setattr(table_checks, "MANY_FILES", 5)


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, id=n, marks=[pytest.mark.slow] * c.slow) for n, c in CASES.items()],
)
def test_a_remedy_ends_its_finding_and_changes_no_row(case, lake, moto, reader):
    patient = Patient(lake.write("remedies", case.script), moto)
    if case.is_reader:
        reader(patient)
    case.fault(patient)
    user = READER if case.is_reader else ""
    found = [f for f in patient.report(user) if case.finding in f["message"]]
    assert found and all(f["text"] for f in found)
    rows = patient.rows(case.client)
    for text in dict.fromkeys(f["text"] for f in found):
        case.doctored(patient, text)
    assert [f["message"] for f in patient.report(user) if case.finding in f["message"]] == []
    assert patient.rows(case.client) == rows


@pytest.mark.slow
@pytest.mark.parametrize("kind", file_lakes.KINDS)
def test_all_that_is_said_of_a_lake_in_a_file(kind, tmp_path):
    """Each statement once; then there is none left."""
    lake = file_lakes.FileLake("remedies", kind, tmp_path)
    lake.data.mkdir()
    script = f"{INLINED} {DEFAULT} CALL ducklake_set_option('lake', 'expire_older_than', '1 year');"
    file_lakes.execute(filled_in(script, lake.address, str(lake.data)))
    file_lakes.change_tables(
        lake,
        "INSERT INTO ducklake_tag (object_id, begin_snapshot, key, value) "
        "SELECT table_id, 4, 'polynya.reference.old', '[4, null]' FROM ducklake_table",
    )

    def rows() -> Rows:
        with (
            serving(lake.address, None, delivery="object-lambda", page=False) as served,
            closing(connect(file_lakes.EXTENSIONS)) as con,
        ):
            con.execute(f"ATTACH {literal(f'ducklake:{lake.address}')} AS lake (READ_ONLY)")
            return all_rows(con, served)

    def texts() -> list[str]:
        with settings():  # the clients of S3: each command has a port of its own
            findings = said([lake.address])
        assert not [f["message"] for f in findings if f.get("level") == "error"]
        return [f["text"] for f in findings if f["text"].endswith(";")]

    before, done = rows(), []
    while left := texts():
        assert left[0] not in done, "it is still advised"
        done.append(left[0])
        with file_lakes.writing(lake) as con:
            for statement in con.extract_statements(left[0]):
                con.execute(statement)
    assert len(done) >= 2
    assert rows() == before


# What would change rows


def by_text(partition: str, value: str, ended: str = f"DELETE FROM {T} WHERE id = 75;") -> str:
    """A table that is partitioned by a text, with inlined rows."""
    return f"""{NAMES}
CREATE TABLE {T}(id BIGINT, v VARCHAR);
ALTER TABLE {T} SET PARTITIONED BY ({partition});
INSERT INTO {T} SELECT i, 'c' FROM range(30) AS r(i);
INSERT INTO {T} VALUES (74, 'z'), (75, '{value}');
DELETE FROM {T} WHERE id < 10;
{ended}
"""


# The table of inlined rows is made at an INSERT, after the table has changed.
LATE = f"""{NAMES}
CALL ducklake_set_option('lake', 'data_inlining_row_limit', 0);
CREATE TABLE {T}(id BIGINT, v VARCHAR);
INSERT INTO {T} SELECT i, 'c' FROM range(30) AS r(i);
ALTER TABLE {T} ADD COLUMN d INTEGER;
CALL ducklake_set_option('lake', 'data_inlining_row_limit', 10);
INSERT INTO {T} VALUES (74, 'z', 1);
ALTER TABLE {T} ADD COLUMN e INTEGER;
"""
UNFLUSHED = {
    "text": by_text("v", "ä"),
    "bucket": by_text("bucket(3, v)", "it''s"),
    "backslash": by_text("v", r"a\b"),
    "late": LATE,
}


@pytest.mark.parametrize(
    "script",
    [
        pytest.param(script, id=name, marks=[pytest.mark.slow] * (name in ("bucket", "backslash")))
        for name, script in UNFLUSHED.items()
    ],
)
def test_no_flush_is_advised_that_changes_rows(script, lake, moto):
    """DuckLake's own faults (docs/ducklake.md): rows are there again, or values are lost."""
    patient = Patient(lake.write("unflushed", script), moto)
    rows = patient.rows()
    for finding in patient.report():
        if finding["text"].startswith("CALL"):
            patient.native(finding["text"])
    assert patient.rows() == rows
    patient.native("CALL ducklake_flush_inlined_data('lake')")
    assert patient.rows() != rows  # otherwise it can be advised


def test_an_update_that_a_flush_would_double_is_not_advised(lake, moto):
    script = by_text("v", "ä", ended="") + f"ALTER TABLE {T} ADD COLUMN d INTEGER DEFAULT 7;"
    patient = Patient(lake.write("not_updated", script), moto)
    [default] = [f for f in patient.report() if "has a default" in f["message"]]
    assert default["text"] == "write the rows into a new table, whose files DuckLake writes"


# Past states that come back


@dataclass(frozen=True, slots=True)
class Change:
    """What an undo leads back from."""

    statements: str
    drops: bool = False
    """Whether the table is gone then, and its last snapshot is the one before."""
    name: str = TABLE
    """Of the table that has the rows after the undo."""
    of: str = TABLE
    """The table whose undo it is."""


AGAIN = f'DROP TABLE {T}; DROP SCHEMA "s\'x"; CREATE SCHEMA "s\'x"'
NEW = "a new table"
CHANGES = {
    "rows": Change(
        f"INSERT INTO {T} VALUES (300, 'new'); UPDATE {T} SET v = 'ö' WHERE id < 5; "
        f"DELETE FROM {T} WHERE id BETWEEN 3 AND 9"
    ),
    NEW: Change('CREATE TABLE "s\'x"."n ""w" AS SELECT 1 AS a', of='n "w'),
    "a dropped table": Change(f"DROP TABLE {T}", drops=True),
    "a dropped schema": Change(f'DROP TABLE {T}; DROP SCHEMA "s\'x"', drops=True),
    "a schema that is made again": Change(AGAIN, drops=True),
    "a replaced table": Change(
        f"CREATE OR REPLACE TABLE {T} AS SELECT 1 AS another", drops=True, name=f"{TABLE}_6"
    ),
    "a view of its name": Change(
        f"DROP TABLE {T}; CREATE VIEW {T} AS SELECT 1 AS a", drops=True, name=f"{TABLE}_6"
    ),
}
IN_CI = ("rows", NEW, "a dropped schema", "a replaced table")


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(c, id=n, marks=[pytest.mark.slow] * (n not in IN_CI))
        for n, c in CHANGES.items()
    ],
)
def test_an_undo_leads_back_to_the_rows(change, lake, moto):
    patient = Patient(lake.write("undone", INLINED), moto)
    expected, before = patient.rows(), patient.newest()
    patient.native(f"USE lake; {change.statements}")
    after = before if change.drops else patient.newest()
    if change.drops:  # what else there is now stays
        rows = {client: tables[f"{NAMESPACE}.{TABLE}"] for client, tables in expected.items()}
        expected = patient.rows()
        for client in expected:
            expected[client][f"{NAMESPACE}.{change.name}"] = rows[client]
    patient.native(patient.undo(change.of, before - change.drops, after))
    assert patient.rows() == expected


# Whether a case is missing


def remedies_in_code() -> dict[str, str]:
    """What each finding of `doctor` has for a remedy, in the code: a function or a constant."""
    remedies = {}
    for path in [*REPORTS.glob("*.py"), REPORTS.parent / "doctor.py"]:
        for node in ast.walk(ast.parse(path.read_text())):
            if is_finding(node) and (remedy := remedy_of(node)) is not None:
                name = remedy.func if isinstance(remedy, ast.Call) else remedy
                assert isinstance(name, ast.Name), f"{path.name}:{node.lineno}: give it a name"
                remedies[name.id] = f"{path.name}:{node.lineno}"
    return remedies


def is_finding(node: ast.AST) -> bool:
    """Whether it is a call of `Report.add`: its first argument is a level."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and node.func.attr == "add"
        and len(node.args) >= len(("level", "about", "message"))
    )


def remedy_of(call: ast.Call) -> ast.expr | None:
    by_name = [keyword.value for keyword in call.keywords if keyword.arg == "remedy"]
    return next(iter([*call.args[3:4], *by_name]), None)


def advice_in_code() -> set[str]:
    """`Advice.what` of all advice."""
    calls = [
        node
        for path in REPORTS.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "Advice"
    ]
    return {ast.literal_eval(call.args[0]) for call in calls}


def test_every_remedy_is_run():
    """A new finding with a remedy needs a case, or a reason why there is nothing to run."""
    remedies, advice = remedies_in_code(), advice_in_code()
    assert len(remedies) > 5 and len(advice) > 5
    covered = {case.remedy for case in CASES.values()}
    assert {*remedies, *advice} == covered | WORDS.keys() | ELSEWHERE.keys(), remedies
    assert covered.isdisjoint(WORDS.keys() | ELSEWHERE.keys())
    assert all((ROOT / path).exists() for path in ELSEWHERE.values())


def test_words_are_nothing_to_run():
    """A remedy that ends with a semicolon is SQL, which the page lets people copy."""
    words = [getattr(table_checks, name) for name in WORDS]
    assert not [text for text in words if text.endswith(";") or "CALL" in text]
