"""`polynya doctor` over real lakes: it finds planted faults, and no fault in a healthy lake."""

import json
from contextlib import closing
from dataclasses import replace

import boto3
import duckdb
import pytest
from pg8000.native import identifier
from polynya_local.cli import app
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.duckdb import identifier as quoted
from polynya_local.clients.native import attach
from polynya_local.lakes.address import add_tls_default
from polynya_local.reports import table_checks
from polynya_local.reports.native_duckdb import redacted, secrets_of
from typer.testing import CliRunner

from tests.differential.test_catalog_versions import WRITTEN, restored
from tests.support.catalog_versions import to_1_1
from tests.support.servers.in_process import settings

LAKES = ["13", "56", "29"]  # inlined rows; evolution and vectors; one that is refused
OTHERS = ("09", "14", "16", "17", "22", "25", "27", "31", "36", "38")
LAKES += [pytest.param(number, marks=pytest.mark.slow) for number in OTHERS]

OLD = (WRITTEN[0], WRITTEN[-1])

READER, PASSWORD = "doctor's reader", "p@ss/w:rd"

INDEXES = [
    f'CREATE INDEX CONCURRENTLY ON "My Lake".{table_and_columns};'
    for table_and_columns in (
        '"ducklake_data_file" (table_id, data_file_id)',
        '"ducklake_delete_file" (table_id, data_file_id)',
        '"ducklake_data_file" USING hash (path)',
        '"ducklake_file_column_stats" (table_id, data_file_id)',
        '"ducklake_file_partition_value" (table_id, data_file_id)',
        '"ducklake_file_partition_value" '
        '(table_id, partition_key_index, partition_value COLLATE "C", data_file_id)',
    )
]


@pytest.fixture
def doctor(moto):
    """Runs the command in this process and returns its exit code and its output."""

    def run(lake, *options: str, user: str = "", password: str = "") -> tuple[int, str]:
        database = replace(lake.database, user=user, password=password) if user else lake.database
        where = ["--database", database.url, "--metadata-schema", lake.metadata_schema]
        with settings(AWS_ENDPOINT_URL_S3=moto):
            done = CliRunner().invoke(app, ["doctor", *where, "--s3-endpoint", moto, *options])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        assert database.url not in done.output and PASSWORD not in done.output
        return done.exit_code, done.output

    return run


@pytest.fixture
def report(doctor):
    """The command's JSON; its verdict must agree with the exit code."""

    def run(lake, *options: str, **role: str) -> dict:
        code, output = doctor(lake, "--json", *options, **role)
        document = json.loads(output)
        errors = findings(document, "error")
        assert document["well"] == (code == 0) == (not errors), output
        return document

    return run


def findings(report: dict, level: str, about: str = "") -> list[str]:
    return [
        finding["message"]
        for finding in report["findings"]
        if finding["level"] == level and about in finding["about"]
    ]


def remedies(report: dict, about: str) -> list[str]:
    return [f["remedy"] for f in report["findings"] if f["about"] == about and f["remedy"]]


def run(lake, *statements: str) -> None:
    with closing(lake.database.connect()) as con:
        if lake.metadata_schema != "public":
            con.run(f"SET search_path = {identifier(lake.metadata_schema)}")
        for remedies in statements:
            for statement in remedies.split(";"):
                if statement.strip():
                    con.run(statement)


def write(lake, moto: str, *statements: str) -> None:
    with connect(LAKE, moto) as con:
        attach(con, lake, read_only=False)
        con.execute("USE lake")
        for statement in statements:
            con.execute(statement)


@pytest.mark.parametrize("number", LAKES)
def test_a_healthy_lake_has_the_counts_of_ducklake(number, lake, report, moto):
    given = lake(f"{number}-1.0")  # DuckDB 1.5.5 judges no other
    document = report(given, "--past", "4")
    if number == "29":
        [refusal] = findings(document, "error")
        assert refusal.startswith("this DuckLake is encrypted") and document["tables"] == []
        return
    assert document["well"] and document["counted_by"].startswith("DuckDB 1.")
    claims = [one["message"] for one in document["findings"] if "claims" in one["message"]]
    assert not claims or number == "27"  # files were added that lack columns
    assert document["tables"] and {table["status"] for table in document["tables"]} == {"served"}
    with connect(LAKE, moto) as con:
        attach(con, given)
        for table in document["tables"]:
            schema, name = table["name"].split(".")
            *past, newest = table["counts"]
            assert len(past) == min(4, table["snapshots"] - 1)
            assert all(count["same"] for count in table["counts"])
            source = f"lake.{quoted(schema)}.{quoted(name)}"
            [(rows,)] = con.execute(f"SELECT count(*) FROM {source}").fetchall()
            assert newest["iceberg"] == rows


@pytest.mark.parametrize(
    "name", [pytest.param(w, marks=[pytest.mark.slow] * (w not in OLD)) for w in WRITTEN]
)
def test_an_old_catalog_is_compared_with_its_own_counts(name, report, postgres_server, moto):
    given = restored(name, " for the doctor", postgres_server, moto)
    document = report(given)
    assert document["well"] and document["lake"]["version"] == name.split("-")[0]
    assert document["counted_by"] == "the counts in DuckLake's catalog"
    counts = [count for table in document["tables"] for count in table["counts"]]
    assert {count["same"] for count in counts if count["ducklake"] is not None} == {True}
    assert sum(count["same"] for count in counts) > len(counts) / 2
    # Older releases than 1.5 wrote all numbers too.
    assert not [one for one in document["findings"] if "claims" in one["message"]]


def test_a_newer_catalog_is_not_advised_to_migrate(lake, report):
    """DuckDB 1.5.5 advises AUTOMATIC_MIGRATION, which fails with a catalog of 1.1."""
    given = lake.copied("22")
    to_1_1(given)
    document = report(given)
    assert document["well"] and document["counted_by"] == "the counts in DuckLake's catalog"
    [message] = findings(document, "note", "row counts")
    assert "up to catalog version 1.0, and this catalog has 1.1: the comparison" in message
    assert "MIGRATION" not in message


def test_the_last_line_is_a_summary(lake, doctor):
    code, output = doctor(lake("08"))
    assert code == 0 and "\x1b" not in output
    assert output.splitlines()[-1] == (
        "All is well: 3 of 3 tables served, 7 of 7 row counts the same, 1 warning, 6 notes."
    )
    assert "main.a          3     1,090    1,090  same  2 of 2 same" in output


# Faults of the lake


def test_a_wrong_row_count_in_the_catalog_is_found(lake, report, doctor):
    given = lake.copied("08")
    run(given, "UPDATE ducklake_data_file SET record_count = 1005 WHERE data_file_id = 0")
    document = report(given)
    counts = {table["name"]: table["counts"][-1] for table in document["tables"]}
    assert counts["main.a"] == {"snapshot_id": 4, "ducklake": 1090, "iceberg": 1095, "same": False}
    assert counts["main.b"]["same"]
    wrong = findings(document, "error", "main.a")
    assert "at snapshot 4 DuckLake has 1,090 rows, Iceberg clients get 1,095" in wrong
    assert any("holds 1,000 rows; the catalog says 1,005" in words for words in wrong)
    assert findings(document, "error", "main.b") == []
    code, output = doctor(given)
    assert code == 1 and "DIFFERS" in output and "Not all is well: 3 of 3 tables" in output


def test_a_delete_missing_from_the_catalog_is_found(lake, report):
    given = lake.copied("09")
    run(given, "DELETE FROM ducklake_delete_file WHERE begin_snapshot = 4")
    document = report(given, "--past", "20")
    assert document["well"]  # because DuckLake reads the same catalog: a lost row is no difference
    run(given, "UPDATE ducklake_data_file SET record_count = 0 WHERE data_file_id = 1")
    [table] = report(given, "--past", "20")["tables"]
    differing = [count["snapshot_id"] for count in table["counts"] if not count["same"]]
    # From the file's first snapshot until all of its rows are deleted.
    assert differing == [3, 4, 5]


def test_a_missing_file_is_found(lake, report, moto):
    given = lake.fresh("40")
    with closing(given.database.connect()) as con:
        [[path]] = con.run('SELECT path FROM "My Lake".ducklake_data_file')
    bucket, _, prefix = given.data_path.removeprefix("s3://").partition("/")
    key = f"{prefix}/main/t/{path}"
    boto3.client("s3", endpoint_url=moto).delete_object(Bucket=bucket, Key=key)
    wrong = findings(report(given), "error", "main.t")
    assert any(f"({given.data_path}/main/t/{path}) cannot be read" in words for words in wrong)


TWICE = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
USE lake;
CREATE TABLE deleted AS SELECT i FROM range(100) AS r(i);
CREATE TABLE added(i BIGINT);
COPY (SELECT i FROM range(5) AS r(i)) TO '{{DATA_PATH}}/added.parquet';
CALL ducklake_add_data_files('lake', 'added', '{{DATA_PATH}}/added.parquet');
CALL ducklake_add_data_files('lake', 'added', '{{DATA_PATH}}/added.parquet');
CREATE TABLE once(i BIGINT);
CALL ducklake_add_data_files('lake', 'once', '{{DATA_PATH}}/added.parquet');
DELETE FROM once WHERE i = 1;
"""


@pytest.fixture(scope="module")
def twice(lake, moto):
    """A lake in which two writers have deleted a row at the same time, one of them inlined."""
    given = lake.write("twice", TWICE)
    with connect(LAKE, moto) as one, connect(LAKE, moto) as other:
        for con, condition in ((one, "i = 5"), (other, "i < 20")):
            attach(con, given, read_only=False)
            con.execute("BEGIN")
            con.execute(f"DELETE FROM lake.deleted WHERE {condition}")
        one.execute("COMMIT")
        other.execute("COMMIT")
    return given


def test_a_row_with_two_deletes_is_ducklakes_fault_and_the_remedy_helps(twice, report, moto):
    document = report(twice)
    wrong = findings(document, "error", "main.deleted")
    assert "at snapshot 9 DuckLake has 94 rows, Iceberg clients get 80" in wrong
    assert any(w.startswith("1 row of 1 data file with two deletes") for w in wrong)
    assert any("The rows that Iceberg clients get are right" in w for w in wrong)
    assert findings(document, "error", "main.once") == []
    [remedy] = [text for text in remedies(document, "main.deleted") if "flush" in text]
    write(twice, moto, remedy)
    document = report(twice)
    assert findings(document, "error") == []
    [table] = [table for table in document["tables"] if table["name"] == "main.deleted"]
    assert {count["same"] for count in table["counts"]} == {True}
    assert table["counts"][-1]["iceberg"] == 80
    with connect(LAKE, moto) as con:
        attach(con, twice)
        rows = con.execute("SELECT i FROM lake.deleted ORDER BY i").fetchall()
        assert rows == [(i,) for i in range(20, 100)]


def test_a_file_that_is_there_twice_is_named_and_the_remedy_helps(twice, report, moto):
    warnings = [w for w in findings(report(twice), "warning") if "twice" in w]
    place = f"such as {twice.data_path}/added.parquet"
    [warning] = warnings  # none for main.once, which has the file once
    assert warning.startswith(f"1 data file registered twice, {place}")
    write(
        twice,
        moto,
        "CREATE TABLE copied AS FROM added",
        "DROP TABLE added",
        "ALTER TABLE copied RENAME TO added",
    )
    document = report(twice)
    assert not [w for w in findings(document, "warning", "main.added") if "twice" in w]
    [table] = [table for table in document["tables"] if table["name"] == "main.added"]
    assert (table["counts"][-1]["ducklake"], table["counts"][-1]["iceberg"]) == (10, 10)


def test_a_refused_table_is_named_and_the_others_are_compared(lake, report, doctor, moto):
    given = lake.fresh("40")
    write(given, moto, "CREATE TABLE spans(i INTERVAL)", "CREATE TABLE half(i INTERVAL, j INTEGER)")
    document = report(given)
    tables = {table["name"]: table for table in document["tables"]}
    assert {name: table["status"] for name, table in tables.items()} == {
        "main.half": "served",
        "main.spans": "refused",
        "main.t": "served",
    }
    assert findings(document, "error") == [tables["main.spans"]["reason"]]
    assert tables["main.spans"]["reason"] == (
        "the table main.spans is not served: no column can be shown (i: Iceberg has no interval)"
    )
    assert tables["main.half"]["hidden_columns"] == {"i": "Iceberg has no interval"}
    assert tables["main.t"]["counts"][-1]["same"]
    code, output = doctor(given)
    assert code == 1 and "REFUSED" in output and "2 of 3 tables served" in output


def test_a_default_missing_from_files_is_a_warning_for_clients_of_the_owner(lake, report, moto):
    given = lake.fresh("40")
    write(
        given,
        moto,
        "CREATE TABLE lacking AS SELECT i FROM range(20) AS r(i)",
        "ALTER TABLE lacking ADD COLUMN d INTEGER DEFAULT 7",
        "CREATE TABLE rewritten AS FROM lacking",
        "ALTER TABLE rewritten ADD COLUMN e INTEGER DEFAULT 7",
        "UPDATE rewritten SET e = 8",
    )
    document = report(given)
    words = "the column {} has a default: {} it, and Trino, Flink, Daft and ClickHouse read NULL"
    assert any(
        finding.startswith(words.format("d", "files lack"))
        for finding in findings(document, "note")  # none of these is the owner's client
    )
    assert any(
        finding.startswith(words.format("e", "files of past snapshots lack"))
        for finding in findings(document, "note")
    )
    assert "some rows are wrong in Spark" in findings(document, "warning", "main.lacking")
    others = "4 clients of 11 would read wrong rows: Daft, ClickHouse, Trino, Flink"
    assert others in findings(document, "note", "main.lacking")
    assert document["worst"] == "wrong rows" and document["well"]  # the lake itself is right
    assert document["summary"].startswith("Some clients read wrong rows: 3 of 3 tables served")
    wrong = [one["message"] for one in document["findings"] if one["consequence"] == "wrong rows"]
    assert set(wrong) == {"some rows are wrong in Spark"}
    [lacking] = [table for table in document["tables"] if table["name"] == "main.lacking"]
    assert {(one["columns"][0], one["files"]) for one in lacking["client_faults"]} == {("d", 1)}
    assert document["well"]


CLAIMS = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
USE lake;
CREATE TABLE "by bucket"(id BIGINT, user_id VARCHAR);
ALTER TABLE "by bucket" SET PARTITIONED BY (bucket(4, user_id));
COPY (SELECT i AS id, 'alice' AS user_id, 999 AS bucket FROM range(20) AS r(i)) TO '{{DATA_PATH}}_ext/b' (FORMAT parquet, PARTITION_BY (bucket));
CALL ducklake_add_data_files('lake', 'by bucket', '{{DATA_PATH}}_ext/b/**/*.parquet', hive_partitioning => true, ignore_extra_columns => true);
CREATE TABLE by_year(id BIGINT, dt DATE);
ALTER TABLE by_year SET PARTITIONED BY (year(dt));
COPY (SELECT i AS id, DATE '2020-01-01' AS dt, 2024 AS year FROM range(20) AS r(i)) TO '{{DATA_PATH}}_ext/y' (FORMAT parquet, PARTITION_BY (year));
CALL ducklake_add_data_files('lake', 'by_year', '{{DATA_PATH}}_ext/y/**/*.parquet', hive_partitioning => true, ignore_extra_columns => true);
COPY (SELECT i AS id, 2024 AS year FROM range(20) AS r(i)) TO '{{DATA_PATH}}_ext/a' (FORMAT parquet, PARTITION_BY (year));
CALL ducklake_add_data_files('lake', 'by_year', '{{DATA_PATH}}_ext/a/**/*.parquet', hive_partitioning => true, allow_missing => true, ignore_extra_columns => true);
"""  # noqa: E501


def test_claims_that_are_not_published_are_named_and_the_remedy_cures_them(lake, report, moto):
    one = lake.write("claims", CLAIMS)
    document = report(one)
    said = {
        about: [text for text in findings(document, "warning", about) if "claims" in text]
        for about in ("main.by bucket", "main.by_year")
    }
    [bucket], years = said.values()
    assert bucket.startswith("the catalog claims a bucket of user_id")
    assert "_ext/b/bucket=999/data_0.parquet); written by DuckDB version v" in bucket
    assert {text.removeprefix("the catalog claims ").partition(";")[0] for text in years} == {
        "a partition value of dt that the statistics of the same file contradict",
        "statistics of the column dt, which the name mapping of the file does not have",
    }
    of_claims = [one for one in document["findings"] if "claims" in one["message"]]
    assert {one["consequence"] for one in of_claims} == {"hidden"} and document["well"]
    sql = {text for about in said for text in remedies(document, about) if "UPDATE" in text}
    assert {text.partition("; ")[0] for text in sql} == {
        'UPDATE "lake"."main"."by bucket" SET "id" = "id"',
        'UPDATE "lake"."main"."by_year" SET "id" = "id"',
    }
    rows = 'SELECT * FROM "by bucket" UNION ALL SELECT id, dt::VARCHAR FROM by_year ORDER BY ALL'
    with closing(connect(LAKE, moto)) as con:
        attach(con, one, read_only=False)
        con.execute("USE lake")
        before = con.execute(rows).fetchall()
        for statement in sql:
            con.execute(statement)
        assert con.execute(rows).fetchall() == before and len(before) == 60
        of_alice = con.execute("SELECT id FROM \"by bucket\" WHERE user_id = 'alice'")
        assert len(of_alice.fetchall()) == 20
    assert not [text for text in findings(report(one), "warning") if "claims" in text]


def test_files_whose_variants_clients_misread_are_named(lake, report, moto):
    """`UPDATE` of all rows by DuckDB 2.0 is what writes them again."""
    one = lake.fresh("07")
    document = report(one)
    [message] = [text for text in findings(document, "note", "main.va") if "misread" in text]
    assert message.startswith("variants (v) in 3 data files of DuckDB version v1.5.5")
    [remedy] = [text for text in remedies(document, "main.va") if "UPDATE" in text]
    assert remedy.startswith('UPDATE "lake"."main"."va" SET ')
    live = (
        "SELECT data_file_id FROM ducklake_data_file "
        "WHERE end_snapshot IS NULL AND table_id = 1 ORDER BY 1"
    )
    before = one.database.run(live)
    with closing(connect(LAKE, moto)) as con:
        attach(con, one, read_only=False)
        con.execute("CALL ducklake_rewrite_data_files('lake', 'va', delete_threshold => 0)")
        assert one.database.run(live) == before
        con.execute("USE lake")
        con.execute(remedy)
    after = one.database.run(live)
    assert after and not [row for row in after if row in before]


def test_tags_whose_snapshots_expire_are_named(lake, report):
    one = lake.write("doctor_tags", TAGGED)
    of_branch = ', "branch", null, null'
    for name, snapshot_id, more in (("kept", 2, ""), ("gone", 77, ""), ("lost", 78, of_branch)):
        run(
            one,
            "INSERT INTO ducklake_tag (object_id, begin_snapshot, key, value) "
            f"VALUES (1, 2, 'polynya.reference.{name}', '[{snapshot_id}, null{more}]')",
        )
    [gone, expiring] = findings(report(one), "warning", "main.t")
    assert gone.startswith("the tags or branches gone, lost are not shown")
    assert expiring.startswith("the tags kept end when") and expiring.endswith("after 7 days")


TAGGED = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
CALL lake.set_option('expire_older_than', '7 days');
USE lake;
CREATE TABLE t AS SELECT 1 AS a;
INSERT INTO t VALUES (2);
"""


def test_snapshots_that_are_left_out_are_counted(lake, report, monkeypatch):
    given = lake.copied("08")
    run(given, "UPDATE ducklake_data_file SET end_snapshot = 4 WHERE data_file_id = 0")
    run(given, "UPDATE ducklake_data_file SET file_format = 'orc' WHERE data_file_id = 0")
    document = report(given)
    [table] = [table for table in document["tables"] if table["name"] == "main.a"]
    assert (table["snapshots"], table["left_out"]) == (2, {"data files of the format orc": 1})
    assert "1 snapshot left out: data files of the format orc" in findings(document, "note")
    monkeypatch.setenv("SNAPSHOT_LIMIT", "1")
    [table] = report(lake("14"))["tables"]
    assert table["left_out"] == {"older than the newest 1 (SNAPSHOT_LIMIT)": 13}


def test_only_the_newest_snapshots_of_a_long_history_are_read(lake, report, monkeypatch):
    monkeypatch.setattr(table_checks, "MOST_SNAPSHOTS", 4)
    monkeypatch.setenv("SNAPSHOT_LIMIT", "1")
    [table] = report(lake("14"))["tables"]
    [(reason, number)] = table["left_out"].items()
    # The four newest and the parent of the oldest of them, one of which is listed.
    assert (table["snapshots"], number) == (1, 4)
    first = lake("14").database.run("SELECT max(snapshot_id) FROM ducklake_snapshot")[0][0] - 4
    assert reason.endswith(f"(SNAPSHOT_LIMIT); those before snapshot {first} are not counted")


@pytest.mark.parametrize(
    ("key", "value", "about", "words"),
    [
        ("version", "9.9", "lake", "DuckLake catalog version '9.9' is not served"),
        ("encrypted", "true", "lake", "this DuckLake is encrypted"),
    ],
)
def test_a_lake_that_cannot_be_served_is_named(key, value, about, words, lake, report):
    given = lake.copied("40")
    run(given, f"UPDATE ducklake_metadata SET value = '{value}' WHERE key = '{key}'")
    document = report(given)
    assert findings(document, "error", about)[0].startswith(words)
    assert document["lake"][key] == (True if key == "encrypted" else value)


# Rights of the database role


@pytest.fixture
def reader(postgres_server):
    """Makes a role that may read the current tables of a lake, and no later ones."""
    lakes = []
    maintenance = postgres_server.maintenance

    def grant(lake) -> dict[str, str]:
        lakes.append(lake)
        role, schema = identifier(READER), identifier(lake.metadata_schema)
        run(
            lake,
            f"CREATE ROLE {role} LOGIN PASSWORD '{PASSWORD}'",
            f"GRANT USAGE ON SCHEMA {schema} TO {role}",
            f"GRANT SELECT ON ALL TABLES IN SCHEMA {schema} TO {role}",
        )
        return {"user": READER, "password": PASSWORD}

    yield grant
    for lake in lakes:
        run(lake, f"DROP OWNED BY {identifier(READER)}")
    with closing(maintenance.connect()) as con:
        con.run(f"DROP ROLE IF EXISTS {identifier(READER)}")


def test_select_and_default_privileges_are_enough_for_doctor(lake, report, reader):
    given = lake.fresh("13")
    role = reader(given)
    document = report(given, **role)
    assert document["well"] and document["counted_by"].startswith("DuckDB 1.")
    [warning] = findings(document, "warning")
    words = f"may not read tables of inlined rows that {given.database.user} will create"
    assert warning.endswith(words)
    run(given, *remedies(document, "grants"))
    assert findings(report(given, **role), "warning") == []


def test_a_revoked_grant_is_found_and_the_remedy_helps(lake, report, reader):
    given = lake.fresh("13")
    role = reader(given)
    run(given, f"REVOKE SELECT ON ducklake_inlined_data_1_1 FROM {identifier(READER)}")
    document = report(given, **role)
    [missing] = findings(document, "error", "grants")
    assert missing.startswith(f"the role {READER} may not read 1 of DuckLake's ")
    assert missing.endswith(" tables: ducklake_inlined_data_1_1")
    [table] = document["tables"]
    assert table["status"] == "fails" and "GRANT SELECT" in table["reason"]
    run(given, *remedies(document, "grants"))
    assert report(given, **role)["well"]


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("REVOKE SELECT ON ducklake_metadata FROM {}", "tables: ducklake_metadata"),
        ('REVOKE USAGE ON SCHEMA "My Lake" FROM {}', "may not use the schema My Lake"),
    ],
)
def test_a_catalog_that_cannot_be_read_at_all_is_found(statement, words, lake, report, reader):
    given = lake.fresh("40")
    role = reader(given)
    run(given, statement.format(identifier(READER)))
    document = report(given, **role)
    [missing] = findings(document, "error", "grants")
    assert missing.endswith(words) and document["tables"] == []
    run(given, *remedies(document, "grants"))
    assert report(given, **role)["well"]


def test_the_index_is_recommended_until_it_exists(lake, report):
    given = lake.copied("40")
    document = report(given)
    notes = findings(document, "note", "index")
    assert len(notes) == len(INDEXES) and all("has no index for" in note for note in notes)
    statements = remedies(document, "index")
    assert statements == INDEXES
    run(given, 'CREATE INDEX ON "My Lake".ducklake_file_column_stats(table_id, column_id)')
    run(
        given,
        'CREATE INDEX ON "My Lake".ducklake_file_partition_value'
        "(table_id, partition_key_index, partition_value, data_file_id)",
    )
    # These indexes are of no use here, nor are DuckLake's own of the files' ids.
    assert len(findings(report(given), "note", "index")) == len(INDEXES)
    run(given, 'CREATE INDEX ON "My Lake".ducklake_data_file (path)')
    assert len(findings(report(given), "note", "index")) == len(INDEXES) - 1
    for statement in statements:
        run(given, statement)
    assert findings(report(given), "note", "index") == []


def indexes(lake, *options: str, **role: str) -> tuple[int, str]:
    """The command's exit code and its output."""
    url = replace(lake.database, **role).url
    where = ["--database", url, "--metadata-schema", lake.metadata_schema]
    done = CliRunner().invoke(app, ["indexes", *where, *options])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    assert PASSWORD not in done.output
    return done.exit_code, done.output


def test_indexes_prints_and_makes_what_doctor_recommends(lake, report, reader):
    given = lake.copied("40")
    role = reader(given)
    assert indexes(given, **role) == (0, "".join(f"{statement}\n" for statement in INDEXES))
    code, output = indexes(given, "--create-as", given.database.url, **role)
    assert code == 0 and output.count("CREATE INDEX") == len(INDEXES)
    assert findings(report(given), "note", "index") == []
    assert indexes(given, **role) == (0, "polynya: no index is missing\n")


def test_only_the_owner_can_make_indexes(lake, reader):
    given = lake.copied("40")
    role = reader(given)
    code, output = indexes(given, "--create-as", replace(given.database, **role).url)
    assert code == 1 and "only the owner of DuckLake's tables" in output
    assert indexes(given)[1].count("CREATE INDEX") == len(INDEXES)


def test_indexes_reports_a_missing_lake(lake):
    given = replace(lake("40"), metadata_schema="nowhere")
    code, said = indexes(given)
    assert code == 1 and said.startswith(
        "polynya: no DuckLake catalog in the PostgreSQL schema 'nowhere' of the database"
    )
    assert said.endswith("; schemas that have one: 'My Lake'\n")


def test_a_role_that_may_write_is_warned(lake, report):
    [warning] = findings(report(lake("40")), "warning")
    assert warning.endswith("tables: SELECT is enough")


# Errors when doctor cannot read the lake


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("postgresql://u:s3cret@127.0.0.1:1/d", "the catalog database at 127.0.0.1:1 cannot be"),
        ("{}", "no DuckLake catalog in the PostgreSQL schema 'public'"),
    ],
)
def test_a_connection_error_is_reported_without_the_password(url, words, postgres_server):
    m = postgres_server.maintenance
    done = CliRunner().invoke(app, ["doctor", "--database", url.format(m.url)])
    assert (done.exit_code, done.stderr) == (1, "")
    first, last = done.stdout.splitlines()
    assert first.startswith(f"ERROR: catalog: {words}")
    assert last == "Not all is well: 1 error."
    assert "s3cret" not in done.stdout


def test_an_address_that_is_not_served_is_said_without_the_password():
    done = CliRunner().invoke(app, ["doctor", "mysql://u:s3cret@127.0.0.1/d"])
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr.startswith("polynya: Polynya does not read MySQL catalogs")
    assert "s3cret" not in done.stderr


def test_duckdbs_message_about_a_connection_is_not_repeated():
    url = "postgresql://u:s3cret@127.0.0.1:1/d"
    with connect(LAKE) as con, pytest.raises(duckdb.Error) as failed:
        con.execute(f"ATTACH 'ducklake:postgres:{url}' AS lake (READ_ONLY)")
    assert "s3cret" in str(failed.value)  # otherwise `said` is not needed
    assert redacted(failed.value, secrets_of(url)) == "DuckDB cannot attach the lake"


@pytest.mark.parametrize(
    ("url", "tls"),
    [
        ("postgresql://u@localhost/d", ""),
        ("postgresql://u@/d?host=/run/postgresql", ""),
        ("postgresql://u@db.example.com/d?sslmode=require", ""),
        ("postgresql://u@db.example.com/d", "?sslmode=verify-full&sslrootcert=system"),
        ("postgresql://u@db.example.com/d?sslrootcert=/ca", "&sslmode=verify-full"),
    ],
)
def test_duckdb_requires_the_same_tls_as_polynya(url, tls):
    assert add_tls_default(url) == url + tls
