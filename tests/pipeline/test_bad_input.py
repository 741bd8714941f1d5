"""An impossible job fails with one sentence and writes nothing."""

import json
from dataclasses import replace

import boto3
import duckdb
import pytest
from polynya.ducklake.connection.url import connection_arguments
from polynya_local.cli import app
from polynya_pipeline.common.database import _secret_url, add_credentials
from polynya_pipeline.common.errors import BadInput, Unavailable
from polynya_pipeline.common.text_values import TableName, table_name
from polynya_pipeline.ingest.job import ingest
from polynya_pipeline.verify.job import verify
from typer.testing import CliRunner

from tests.support.catalog_versions import to_1_0, to_1_1
from tests.support.nested_schemas import flatten, nest

pytestmark = pytest.mark.spark


@pytest.fixture
def lake(folder_lake):
    return folder_lake


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("t", ("main", "t")),
        ("s.t", ("s", "t")),
        ('"a.b"."c""d"', ("a.b", 'c"d')),
        ('s."x y"', ("s", "x y")),
        ("a.b.c", ("b", "c", ("a",))),
        ('a."b.c".d."e""f"', ("d", 'e"f', ("a", "b.c"))),
    ],
)
def test_a_table_name_is_read_with_its_quotes(text, name):
    assert table_name(text) == TableName(*name)


@pytest.mark.parametrize(
    "text", ["", ".", "a.", ".b", "a..c", '""', 'a."".c', '"a', '"a"b', "a\0b"]
)
def test_an_invalid_table_name_is_refused(text):
    with pytest.raises(BadInput):
        table_name(text)


def test_names_with_quotes_and_dots_and_spaces(lake, spark):
    lake.sql('CREATE SCHEMA "my.schema"')
    frame = spark.range(3).selectExpr('id AS `a"b.c`', "CAST(id AS string) AS `x y`")
    made = lake.ingest(frame, '"my.schema"."t ""1"".x"', create=True, partition_by=("x y",))
    assert made.table == '"my.schema"."t ""1"".x"'
    assert lake.sql('SELECT "a""b.c" FROM "my.schema"."t ""1"".x" ORDER BY 1') == [(0,), (1,), (2,)]
    lake.sql('INSERT INTO "my.schema"."t ""1"".x" VALUES (9, \'q\')')
    assert lake.verify().findings == []


def test_column_names_are_refused_that_native_ducklake_cannot_inline(lake, spark):
    lake.sql("CREATE TABLE t (id BIGINT)")
    for name in ("Row_ID", "_ducklake_internal_snapshot_id", "ctid"):
        with pytest.raises(duckdb.Error, match=rf"(?i){name}.*(reserved|system column)"):
            lake.sql(f'CREATE TABLE native (id BIGINT, "{name}" INTEGER)')
    to_1_1(lake.as_lake)
    address = {"database": lake.database.url, "evolve": True}
    for name, is_1_1 in (("_ducklake_x", True), ("CTID", True), ("row_id", False)):
        if not is_1_1:
            to_1_0(lake.as_lake)
        frame = spark.range(3).selectExpr("id", f"1 AS `{name}`")
        for table, options in (("t", {}), ("new", {"create": True})):
            with pytest.raises(BadInput, match=f"reserves the column name {name} "):
                ingest(frame, table, **address, **options)
    # Within a column they are free.
    ingest(spark.sql("SELECT 1L AS id, named_struct('row_id', 2) AS s"), "t", **address)
    assert lake.sql("FROM t") == [(1, {"row_id": 2})]


@pytest.mark.slow
def test_a_table_in_a_schema_of_several_levels(lake, spark):
    for name in ("sales", "in_sales", '"sales.europe"', "europe"):
        lake.sql(f"CREATE SCHEMA {name}")
    to_1_1(lake.as_lake)
    nest(lake.as_lake, [("in_sales", "sales", "Europe")])
    address = {"database": lake.database.url, "create": True}
    assert ingest(spark.range(3), "sales.europe.t", **address).table == "sales.europe.t"
    ingest(spark.range(5), "sales.Europe.t", **address)
    ingest(spark.range(1), '"sales.europe".t', **address)
    [[made]] = lake.catalog(
        "SELECT changes_made FROM ducklake_snapshot_changes WHERE changes_made LIKE '%%Europe%%'"
    )
    assert made.startswith('created_table:"sales"."Europe"."t",')
    with pytest.raises(BadInput, match=r"no schema sales\.north in this lake"):
        ingest(spark.range(1), "sales.north.t", **address)
    assert verify(database=lake.database.url, footers=True).findings == []
    flatten(lake.as_lake)
    to_1_0(lake.as_lake)
    for name, rows in (('"sales/Europe"', 8), ('"sales.europe"', 1)):
        assert lake.sql(f"SELECT count(*) FROM {name}.t") == [(rows,)]


# Options of a job on an existing table t(id BIGINT), and a part of the message.
REFUSED = [
    ({"table": "nothing"}, "no table main.nothing: --create creates it"),
    ({"table": "nowhere.t"}, "no schema nowhere"),
    ({"table": "v"}, "main.v is a view"),
    ({"mode": "upsert"}, "the mode must be one of append, overwrite, overwrite-partitions"),
    ({"mode": "overwrite-partitions"}, "main.t is not partitioned"),
    ({"partition_by": ("id",)}, "exists already"),
    ({"token": ""}, "the token must not be empty"),
    ({"table": "n", "create": True, "partition_by": ("day(x)",)}, "there is no column x"),
    ({"table": "n", "create": True, "partition_by": ("day(id)",)}, "partitioning by day of id"),
    ({"columns": ["CAST(id AS string) AS id"]}, "id is int64 in the table, string in the DataFr"),
    ({"columns": ["id", "1 AS x"]}, "x is not in the table"),
    ({"columns": ["1 AS x"]}, "id is not in the DataFrame; x is not in the table"),
    ({"columns": ["array(id) AS id"]}, "id is int64 in the table, array<bigint>"),
    ({"columns": ["id", "id AS ID"], "evolve": True}, "two columns that are one to DuckLake"),
    ({"table": "n", "create": True, "columns": ["INTERVAL 1 DAY AS i"]}, "interval day"),
    ({"table": "n", "create": True, "columns": ["NULL AS x"]}, "void"),
    ({"table": "odd"}, "interval, which Spark does not have"),
]


def test_an_impossible_job_is_refused_with_a_reason(lake, spark):
    lake.sql("CREATE TABLE t(id BIGINT)")
    lake.sql("CREATE VIEW v AS SELECT 1")
    lake.sql("CREATE TABLE odd(id BIGINT, i INTERVAL)")
    before = lake.catalog("SELECT max(snapshot_id) FROM ducklake_snapshot")
    for options, words in REFUSED:
        options = {"table": "t", **options}
        frame = spark.range(3).selectExpr(*options.pop("columns", ["id"]))
        if options["table"] == "odd":
            options["evolve"] = True
        with pytest.raises(BadInput) as raised:
            lake.ingest(frame, **options)
        assert words in str(raised.value), raised.value
    assert lake.catalog("SELECT max(snapshot_id) FROM ducklake_snapshot") == before
    assert lake.sql(f"FROM glob('{lake.data_path}/**')") == []


def test_unsupported_lakes_are_refused(open_lake, spark, tmp_path, postgres_server):
    encrypted = open_lake(f"{tmp_path}/e/", ENCRYPTED=1)
    encrypted.sql("CREATE TABLE t(id BIGINT)")
    with pytest.raises(BadInput, match="encrypted"):
        encrypted.ingest(spark.range(3))
    newer = open_lake(f"{tmp_path}/n/")
    newer.sql("CREATE TABLE t(id BIGINT)")
    newer.catalog("UPDATE ducklake_metadata SET value = '2.7' WHERE key = 'version'")
    with pytest.raises(BadInput, match=r"version 2.7; this job writes to 1.0"):
        newer.ingest(spark.range(3))
    empty = postgres_server.create_database("no lake")
    with pytest.raises(BadInput, match="no DuckLake catalog"):
        ingest(spark.range(3), "t", database=empty.url)
    with pytest.raises(BadInput, match="must read postgresql://"):
        ingest(spark.range(3), "t", database="mysql://x/y")


def test_a_refusal_of_database_or_storage_is_reported(open_lake, lake, spark, postgres_server):
    lake.sql("CREATE TABLE t(id BIGINT)")
    nobody = replace(lake.database, user="nobody we know", password="secret word")
    with pytest.raises(Unavailable, match="refuses this role") as raised:
        ingest(spark.range(3), "t", database=nobody.url)
    assert "secret" not in str(raised.value)
    with pytest.raises(Unavailable, match="does not answer"):
        ingest(spark.range(3), "t", database=replace(lake.database, port=1).url)
    lake.catalog('CREATE ROLE "reader of ingest" LOGIN')
    lake.catalog('GRANT SELECT ON ALL TABLES IN SCHEMA public TO "reader of ingest"')
    try:
        with pytest.raises(Unavailable, match="needs SELECT, INSERT, UPDATE"):
            ingest(
                spark.range(3), "t", database=replace(lake.database, user="reader of ingest").url
            )
    finally:
        lake.catalog('DROP OWNED BY "reader of ingest"')
        lake.catalog('DROP ROLE "reader of ingest"')
    assert lake.sql("FROM t") == []
    without_bucket = open_lake("s3://no-such-bucket/x")
    without_bucket.sql("CREATE TABLE t(id BIGINT)")
    with pytest.raises(Unavailable, match="cannot be written"):
        without_bucket.ingest(spark.range(3))
    assert without_bucket.catalog("SELECT count(*) FROM ducklake_data_file") == [[0]]


def test_the_url_may_be_in_a_secret(lake, spark, moto, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", moto)
    lake.sql("CREATE TABLE t(id BIGINT)")
    secrets = boto3.client("secretsmanager")
    at = lake.database
    rds = {"username": at.user, "password": "-", "host": at.host, "port": at.port}
    for number, secret in enumerate([{"url": at.url}, rds | {"dbname": at.dbname}]):
        text, name = json.dumps(secret), f"{at.dbname} {number}"
        arn = secrets.create_secret(Name=name, SecretString=text)["ARN"]
        assert ingest(spark.range(3), "t", database=arn).rows == 3
    with pytest.raises(BadInput, match="secret cannot be read"):
        ingest(spark.range(3), "t", database=arn + "x")


@pytest.mark.slow
def test_each_process_fetches_role_and_password_itself(lake, spark, moto, monkeypatch, capfd):
    """The URL for the executors names a role that does not exist in PostgreSQL."""
    monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", moto)
    spark.sparkContext.environment["AWS_ENDPOINT_URL_SECRETS_MANAGER"] = moto
    lake.sql("CREATE TABLE t(id BIGINT)")
    lake.ingest(spark.range(3))
    secret = json.dumps({"username": lake.database.user, "password": "open sesame"})
    arn = boto3.client("secretsmanager").create_secret(
        Name=f"{lake.database.dbname} reader", SecretString=secret
    )["ARN"]
    bare = replace(lake.database, user="nobody", password="")
    url = add_credentials(bare.url, f"secret:{arn}")
    assert verify(database=url, spark=spark, footers=True).findings == []
    assert ingest(spark.range(3), "t", database=url).rows == 3
    with pytest.raises(Unavailable, match="refuses this role"):
        verify(database=bare.url)
    monkeypatch.setenv("DATABASE_CREDENTIALS", f"secret:{arn}")
    done = CliRunner().invoke(app, ["verify", "--json", "--database", bare.url])
    assert done.exit_code == 0 and json.loads(done.stdout)["findings"] == []
    for wrong, words in (("hunter2", "must be iam"), ("secret:hunter2", "cannot be read")):
        with pytest.raises(BadInput, match=words) as raised:
            ingest(spark.range(3), "t", database=add_credentials(bare.url, wrong))
        assert "hunter2" not in str(raised.value)
    assert "sesame" not in "".join(capfd.readouterr())


def test_a_secret_of_rds_trusts_the_certificates_of_rds(moto, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", moto)
    secret = {"username": "u", "password": "p@ss", "host": "db.example.com", "dbname": "lake"}
    arn = boto3.client("secretsmanager").create_secret(
        Name="in the form of RDS", SecretString=json.dumps(secret)
    )["ARN"]
    arguments = connection_arguments(_secret_url(arn))
    names = {
        dict(part[0] for part in one["subject"]).get("commonName")
        for one in arguments["ssl_context"].get_ca_certs()
    }
    assert "Amazon RDS eu-west-1 Root CA RSA2048 G1" in names
    assert (arguments["user"], arguments["password"]) == ("u", "p@ss")


@pytest.fixture
def run(lake, spark):
    def run(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, [*words, "--database", lake.database.url])
        assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
        return done.exit_code, done.stdout

    return run


def test_the_command_reads_files(lake, run, tmp_path):
    file = tmp_path / "events.json"
    lines = ['{"id": 1, "seen": "2024-01-01 10:00:00", "tags": ["a"]}', '{"id": 2, "tags": []}']
    file.write_text("\n".join(lines))
    lake.sql("CREATE TABLE t(id UINTEGER, seen TIMESTAMP, tags VARCHAR[], u UUID)")
    command = ["ingest", "t", str(file), "--format", "json", "--json"]
    code, output = run(*command)
    assert code == 2 and "u is not in the DataFrame" in json.loads(output)["message"]
    code, output = run(*command, "--evolve", "--dry-run")
    assert code == 0 and json.loads(output)["outcome"] == "dry-run" and lake.sql("FROM t") == []
    code, output = run(*command, "--evolve", "--token", "j1")
    assert code == 0 and json.loads(output)["rows"] == 2
    assert lake.sql("SELECT id, seen::VARCHAR, tags FROM t ORDER BY id") == [
        (1, "2024-01-01 10:00:00", ["a"]),
        (2, None, []),
    ]
    code, output = run(*command[:-1], "--evolve", "--token", "j1")
    assert code == 0 and "done already, as snapshot 2" in output
    file.write_text('{"id": 3, "seen": "no time", "tags": []}')
    code, output = run(*command, "--evolve")
    assert code in {1, 2} and len(json.loads(output)["message"]) < 1000
    file.write_text('{"id": 3, "seen": null, "tags": [], "more": {"x": 1}}')
    code, output = run(*command)
    assert code == 2 and "more is not in the table" in json.loads(output)["message"]
    assert run(*command, "--evolve")[0] == 0
    file.write_text('{"id": 4, "seen": null, "tags": [], "more": {"y": [{"z": "w"}]}}')
    code, output = run(*command)
    assert code == 2 and "does not have: more.y; --evolve" in json.loads(output)["message"]
    code, output = run(*command, "--evolve")
    assert code == 0 and json.loads(output)["added_columns"] == ["more.y"]
    lake.sql("CREATE TABLE s(id BIGINT, s STRUCT(a INTEGER, b STRUCT(c VARCHAR)[]))")
    of_struct = ["ingest", "s", *command[2:]]
    # DuckLake ignores the case of names.
    file.write_text('{"ID": 1, "S": {"A": 7, "b": [{"C": "x"}]}}')
    assert run(*of_struct)[0] == 0
    assert lake.sql("FROM s") == [(1, {"a": 7, "b": [{"c": "x"}]})]
    file.write_text('{"id": 1, "s": {"A": 7}}\n{"id": 2, "s": {"a": 8}}')
    code, output = run(*of_struct)
    assert code == 2 and "s has two columns that are one" in json.loads(output)["message"]
    file.write_text("no JSON at all")
    code, output = run(*of_struct)
    assert code == 2 and "Unrecognized token 'no'" in json.loads(output)["message"]
    file.write_text('{"id": 1, "s": 5}')
    code, output = run(*of_struct)
    assert code == 1 and "Cannot parse the field name 's'" in json.loads(output)["message"]
    lake.sql("CREATE TABLE m(id BIGINT, m MAP(VARCHAR, STRUCT(v DOUBLE)))")
    file.write_text('{"id": 1, "m": {"a": {"v": 1.5, "w": 2}, "b": {"w": 3, "z": "z"}}}')
    of_map = ["ingest", "m", *command[2:]]
    code, output = run(*of_map)
    assert code == 2 and "have: m.value.w, m.value.z; --e" in json.loads(output)["message"]
    assert run(*of_map, "--evolve")[0] == 0
    w, z = {"v": 1.5, "w": 2, "z": None}, {"v": None, "w": 3, "z": "z"}
    assert lake.sql("SELECT m FROM m") == [({"a": w, "b": z},)]
    found = lake.sql("SELECT more FROM t WHERE id > 2 ORDER BY id")
    assert found == [({"x": 1, "y": None},), ({"x": None, "y": [{"z": "w"}]},)]
    table = tmp_path / "rows.csv"
    table.write_text("id,name\n1,a\n2,\n")
    code, output = run(
        "ingest", "c", str(table), "--format", "csv", "--create", "--schema", "id int, name string"
    )
    assert code == 0 and "The table was created." in output
    assert lake.sql("FROM c ORDER BY id") == [(1, "a"), (2, None)]
    code, output = run("ingest", "c", str(tmp_path / "none.parquet"))
    assert code == 2
    assert run("verify", "--footers")[0] == 0
