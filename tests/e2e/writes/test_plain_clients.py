"""Clients as a newcomer configures them: DuckDB's ATTACH with its defaults, PyIceberg with an
address and a warehouse; no credentials are vended."""

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from threading import Event
from urllib.parse import urlsplit
from uuid import uuid4

import boto3
import pyarrow as pa
import pytest
import requests
from botocore.exceptions import ClientError
from duckdb import DuckDBPyConnection
from polynya.catalog.writer import WritableCatalog
from polynya.ducklake.rows import objects
from polynya_local.clients.duckdb import ICEBERG, Process, connect, literal, s3_secret
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import BadRequestError

from tests.e2e.writes.rows.test_deletes import OPERATIONS
from tests.support.servers.in_process import bridge
from tests.support.writes.starts import DO_NOT_INLINE, INLINE, LAKE, STARTS
from tests.support.writes.twin import opened
from tests.support.writes.writable import set_up_writes

HEADER = {"X-Iceberg-Access-Delegation": "vended-credentials"}
ONE_ROW = (
    INLINE,
    "CREATE TABLE {t} (id BIGINT, s VARCHAR)",
    "INSERT INTO {t} VALUES (1, 'a')",
)
"""A row that is inlined: Java's clients have to plan the scans of such a table."""
ROWS = pa.table({"id": pa.array([1, 2], pa.int64()), "s": ["a", None]})


@pytest.fixture(scope="module", params=["object-lambda", "materialize"])
def served(request, lake, moto):
    one = set_up_writes(lake.write("plain_clients", LAKE))
    with bridge(one, moto, delivery=request.param, writes=True) as found:
        yield one, found, moto


@pytest.fixture
def twin(served):
    with opened(*served) as found:
        yield found


@pytest.fixture(scope="module")
def duckdb(served) -> Iterator[Process]:
    where = served[1].catalog_uri, served[1].s3_endpoint
    with closing(Process(attached, *where)) as found:
        yield found


def attached(uri: str, s3_endpoint: str, options: str = "") -> DuckDBPyConnection:
    """DuckDB's ATTACH with its defaults, and a secret for S3, in a process without AWS's
    variables."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        del os.environ[name]
    con = connect(ICEBERG)
    con.execute(s3_secret(s3_endpoint))
    con.execute(
        f"ATTACH 'lake' AS ice (TYPE iceberg, ENDPOINT {literal(uri)}, "
        f"AUTHORIZATION_TYPE 'none', DEFAULT_SCHEMA 'main'{options})"
    )
    return con


@pytest.mark.slow
def test_duckdb_needs_no_option_if_nothing_is_vended(served, twin, duckdb):
    twin.native(*ONE_ROW)
    table = f"ice.main.{twin.name}"
    assert duckdb.query(f"FROM {table}").to_pylist() == [{"id": 1, "s": "a"}]
    insert = "INSERT INTO {t} VALUES (2, 'b')"
    twin.changes(insert, lambda: duckdb.query(insert.format(t=table)))
    twin.check()
    duckdb.query(f"CREATE TABLE {table}_made AS FROM {table}")
    assert twin.con.execute(f"SELECT count(*) FROM {twin.source}_made").fetchall() == [(2,)]


@pytest.mark.slow(but=["[object-lambda]"])
def test_no_table_has_a_configuration_if_credentials_are_asked_for_and_not_vended(served, twin):
    twin.native(*ONE_ROW)
    of_main = f"{served[1].catalog_uri}/v1/lake/namespaces/main/tables"
    fields = [{"id": 1, "name": "id", "type": "long", "required": False}]
    schema = {"type": "struct", "fields": fields}
    asked = {"name": f"{twin.name}_asked", "schema": schema}
    answers = [
        requests.get(f"{of_main}/{twin.name}", headers=HEADER, timeout=60),
        requests.post(of_main, json=asked, headers=HEADER, timeout=60),
    ]
    for answer in answers:
        assert answer.status_code == 200, answer.text
        assert answer.json()["config"] == {} and "storage-credentials" not in answer.json()


INLINED = ("inlined rows", "inlined rows of two versions")


@pytest.mark.slow(but=["[object-lambda-inlined rows-merge]"])
@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("start", INLINED)
def test_duckdb_changes_inlined_rows(twin, duckdb, start, operation):
    """Its delete file is beside the virtual file of the rows, whatever the delivery."""
    twin.native(DO_NOT_INLINE, *STARTS[start])
    table = f"ice.main.{twin.name}"
    for sql in OPERATIONS[operation]:
        twin.changes(sql, lambda sql=sql: duckdb.query(sql.format(t=table)))
    twin.check()
    statements = "DELETE FROM {t} WHERE id = 4", "DELETE FROM {t} WHERE id IN (5, 8)"
    twin.native(DO_NOT_INLINE, "INSERT INTO {t} (id, s, p) VALUES (4, 'x', 1), (5, 'x', 2)")
    duckdb.query("BEGIN")
    for sql in statements:
        duckdb.query(sql.format(t=table))
    twin.changes(";".join(statements), lambda: duckdb.query("COMMIT"))
    twin.check()


def keys_of(served, name: str) -> set[str]:
    """The keys of the files that clients have uploaded for a table."""
    lake, _, endpoint = served
    bucket, prefix = lake.data_path.removeprefix("s3://").split("/", 1)
    s3 = boto3.client("s3", endpoint_url=endpoint)
    found = s3.list_objects_v2(Bucket=bucket, Prefix=f"{prefix.rstrip('/')}/main/{name}/")
    return {one["Key"] for one in found.get("Contents", ())}


@pytest.mark.slow(but=["[object-lambda]"])
def test_duckdb_rolls_back(served, twin, duckdb):
    twin.native(*ONE_ROW)
    table, before = f"ice.main.{twin.name}", twin.newest()
    duckdb.query("BEGIN")
    duckdb.query(f"INSERT INTO {table} VALUES (2, 'b')")
    duckdb.query(f"DELETE FROM {table} WHERE id = 1")
    assert len(keys_of(served, twin.name)) == 1
    duckdb.query("ROLLBACK")
    assert keys_of(served, twin.name) == set() and twin.newest() == before
    insert = "INSERT INTO {t} VALUES (3, 'c')"
    twin.changes(insert, lambda: duckdb.query(insert.format(t=table)))
    twin.check()


OPTIONS = ["", ", REMOVE_FILES_ON_DELETE false"]
"""With the second one DuckDB removes nothing, as it must where it may not."""


@pytest.mark.slow(but=["[object-lambda-removes]"])
@pytest.mark.parametrize("options", OPTIONS, ids=["removes", "keeps"])
def test_duckdb_says_why_a_refusal_or_conflict_is_one(served, twin, options):
    twin.native(DO_NOT_INLINE, *ONE_ROW[1:])
    where = served[1].catalog_uri, served[1].s3_endpoint, options
    table = f"ice.main.{twin.name}"
    with closing(Process(attached, *where)) as client:
        client.query("BEGIN")
        client.query(f"DELETE FROM {table} WHERE id = 1")
        client.query(f"INSERT INTO {table} VALUES (2, 'b')")
        before = keys_of(served, twin.name)
        twin.native("INSERT INTO {t} VALUES (9, 'native')")
        native = keys_of(served, twin.name) - before
        with pytest.raises(RuntimeError, match=r"Conflict_409[^!]*Requirement failed"):
            client.query("COMMIT")
        kept = keys_of(served, twin.name)
        # The data file and the delete file of the client are gone, or both are there.
        assert native < kept and len(before - kept) == (0 if options else 2)
    twin.check()


@pytest.mark.slow
def test_duckdb_keeps_its_option_where_it_may_not_delete(lake, moto):
    """S3 on AWS: a ROLLBACK fails without the option, and loses why; with it nothing is deleted."""
    one = set_up_writes(lake.write("plain_clients_on_aws", LAKE))
    with (
        bridge(one, moto, writes=True, removes=False) as found,
        opened(one, found, moto) as twin,
    ):
        twin.native(*ONE_ROW)
        for options, is_refused in zip(OPTIONS, (True, False), strict=True):
            where = found.catalog_uri, found.s3_endpoint, options
            with closing(Process(attached, *where)) as client:
                client.query("BEGIN")
                client.query(f"INSERT INTO ice.main.{twin.name} VALUES (2, 'b')")
                if is_refused:
                    with pytest.raises(RuntimeError, match="Could not remove file"):
                        client.query("ROLLBACK")
                else:
                    client.query("ROLLBACK")


# What the catalog names is not removed


@pytest.fixture(scope="module")
def s3(served):
    """A client of the endpoint that clients of the catalog have."""
    return boto3.client("s3", endpoint_url=served[1].s3_endpoint)


@pytest.fixture
def added(served, twin) -> tuple[str, str]:
    """The bucket and the key of a file that a client has added to a table."""
    twin.native(DO_NOT_INLINE, *ONE_ROW[1:])
    twin.table().append(ROWS)
    [key] = [key for key in keys_of(served, twin.name) if "/ducklake-" not in key]
    return served[0].data_path.removeprefix("s3://").partition("/")[0], key


STATES = {
    "live": (),
    "ended": ("DELETE FROM {t}",),
    "scheduled": (
        "DELETE FROM {t}",
        "CALL ducklake_expire_snapshots('lake', older_than => now() + INTERVAL 1 DAY)",
    ),
    "dropped": ("DROP TABLE {t}",),
}


@pytest.mark.slow(but=["[object-lambda"])
@pytest.mark.parametrize("state", STATES)
def test_a_file_of_the_catalog_is_not_removed(served, twin, added, s3, state):
    bucket, key = added
    for sql in STATES[state]:
        twin.con.execute(sql.format(t=twin.source))
    [[scheduled]] = served[0].database.run(
        f"SELECT count(*) FROM ducklake_files_scheduled_for_deletion WHERE path LIKE '%{key[-40:]}'"
    )
    assert scheduled == (state == "scheduled")
    with pytest.raises(ClientError, match=r"AccessDenied.*only DuckLake removes it"):
        s3.delete_object(Bucket=bucket, Key=key)
    beside = f"{key.rpartition('/')[0]}/a & <b>.parquet"
    s3.put_object(Bucket=bucket, Key=beside, Body=b"x")
    native = f"{key.rpartition('/')[0]}/ducklake-1.parquet"
    objects = [{"Key": one} for one in (key, beside, native)]
    answer = s3.delete_objects(Bucket=bucket, Delete={"Objects": objects})
    assert [one["Key"] for one in answer["Deleted"]] == [beside]
    assert {one["Key"]: one["Code"] for one in answer["Errors"]} == dict.fromkeys(
        (key, native), "AccessDenied"
    )
    s3.head_object(Bucket=bucket, Key=key)
    with pytest.raises(ClientError, match="404"):
        s3.head_object(Bucket=bucket, Key=beside)


@pytest.mark.slow(but=["[object-lambda"])
@pytest.mark.parametrize(
    "path",
    [
        "s3://{bucket}/{key}",
        "s3a://{bucket}/{key}",
        "s3n://{bucket}/{key}",
        "s3://{bucket}/./{key}",
        "s3://{bucket}/{directory}/./{name}",
        "{own}",
        "./{own}",
    ],
)
def test_a_file_of_the_catalog_is_not_removed_however_its_path_is_spelled(
    served, twin, added, s3, path
):
    bucket, key = added
    directory, _, name = key.rpartition("/")
    own = key.partition(f"/{twin.name}/")[2]
    spelled = path.format(bucket=bucket, key=key, directory=directory, name=name, own=own)
    served[0].database.run(
        "UPDATE ducklake_data_file SET path = :path, path_is_relative = :is_relative "
        "WHERE path LIKE '%' || :name",
        path=spelled,
        is_relative="://" not in spelled,
        name=name,
    )
    rows = twin.con.execute(f"FROM {twin.source}").fetchall()
    assert len(rows) > 1  # native DuckLake reads the file by this path
    with pytest.raises(ClientError, match=r"AccessDenied.*only DuckLake removes it"):
        s3.delete_object(Bucket=bucket, Key=key)
    assert twin.con.execute(f"FROM {twin.source}").fetchall() == rows


@pytest.mark.slow(but=["[object-lambda"])
@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_a_removal_waits_for_a_commit_that_is_under_way(served, added, s3, end):
    """As if the answer of COMMIT was lost: the client tidies up, and PostgreSQL still commits."""
    bucket, key = added
    uploaded = f"{key.rpartition('/')[0]}/uploaded.parquet"
    s3.put_object(Bucket=bucket, Key=uploaded, Body=b"x")
    with closing(served[0].database.connect()) as con, ThreadPoolExecutor(1) as pool:
        con.run("BEGIN")
        con.run(
            "INSERT INTO ducklake_snapshot SELECT snapshot_id + 1, now(), schema_version, "
            "next_catalog_id, next_file_id + 1 FROM ducklake_snapshot "
            "ORDER BY snapshot_id DESC LIMIT 1"
        )
        con.run(
            "INSERT INTO ducklake_files_scheduled_for_deletion "
            f"VALUES (-1, 's3://{bucket}/{uploaded}', false, now())"
        )
        removal = pool.submit(s3.delete_object, Bucket=bucket, Key=uploaded)
        time.sleep(0.3)
        assert not removal.done()
        con.run(end)
        if end == "COMMIT":
            with pytest.raises(ClientError, match="AccessDenied"):
                removal.result()
            con.run("DELETE FROM ducklake_files_scheduled_for_deletion WHERE data_file_id = -1")
        else:
            assert removal.result()["ResponseMetadata"]["HTTPStatusCode"] == 204


@pytest.fixture
def delayed(served, twin, s3, monkeypatch):
    """Appends to a table; a function is called between the plan and the write of the commit.

    It gets the bucket and the key of the file that the commit adds.
    """
    write = WritableCatalog._write

    def append(between) -> list[dict[str, object]]:
        waiting, go_on = Event(), Event()

        def written(self, *arguments):
            waiting.set()
            assert go_on.wait(30)
            return write(self, *arguments)

        with (
            closing(RestCatalog("c", uri=served[1].catalog_uri, warehouse="lake")) as catalog,
            ThreadPoolExecutor(1) as pool,
        ):
            table = catalog.create_table(f"main.{twin.name}", ROWS.schema)
            monkeypatch.setattr(WritableCatalog, "_write", written)
            appended = pool.submit(table.append, ROWS)
            assert waiting.wait(30)
            [key] = [key for key in keys_of(served, twin.name) if "/ducklake-" not in key]
            between(served[0].data_path.removeprefix("s3://").partition("/")[0], key)
            go_on.set()
            appended.result(60)
            rows: list[dict[str, object]] = table.refresh().scan().to_arrow().to_pylist()
            return rows

    return append


@pytest.mark.slow(but=["[object-lambda"])
def test_a_file_that_is_removed_while_its_commit_is_under_way_is_not_committed(delayed, twin, s3):
    """The client has given up, and tidies up through any server, while the commit goes on."""
    with pytest.raises(BadRequestError, match="does not exist in S3"):
        delayed(lambda bucket, key: s3.delete_object(Bucket=bucket, Key=key))
    assert twin.con.execute(f"FROM lake.main.{twin.name}").fetchall() == []


@pytest.mark.slow(but=["[object-lambda"])
@pytest.mark.parametrize("more", [b"", b"more"])
def test_a_file_that_is_uploaded_again_while_its_commit_is_under_way_is_read_again(
    delayed, twin, s3, more
):
    def upload_again(bucket: str, key: str) -> None:
        body = s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        s3.put_object(Bucket=bucket, Key=key, Body=body + more)

    if more:
        with pytest.raises(BadRequestError, match="longer or shorter than the manifest says"):
            delayed(upload_again)
    else:
        assert delayed(upload_again) == ROWS.to_pylist()
    native = twin.con.execute(f"FROM lake.main.{twin.name}").fetchall()
    assert native == ([] if more else [(1, "a"), (2, None)])


# What a client need not be told


def test_what_clients_are_told_of_s3(served):
    config = requests.get(f"{served[1].catalog_uri}/v1/config", timeout=60).json()
    where = {
        "s3.endpoint": served[1].s3_endpoint,
        "s3.path-style-access": "true",
        "s3.region": "us-east-1",
        "client.region": "us-east-1",
    }
    credentials = {"s3.access-key-id": "any", "s3.secret-access-key": "any"}
    is_real = served[1].delivery == "materialize"
    assert config["defaults"] == where | ({} if is_real else credentials)
    assert config["overrides"]["s3.delete-enabled"] == "false"


@pytest.mark.slow
def test_pyiceberg_waits_for_the_first_plan_in_a_large_lake(served, monkeypatch):
    """PyArrow's own limit is three seconds; a plan of 100,000 files takes ten."""
    monkeypatch.setattr(objects, "LARGE_BYTES", 0)
    where = {"uri": served[1].catalog_uri, "warehouse": "lake"}
    expected = {"object-lambda": "60", "materialize": None}[served[1].delivery]
    assert limit_of(**where) == expected
    assert limit_of(**where, **{"s3.request-timeout": "7"}) == "7"


def test_others_are_told_no_time_limit(served):
    """Polars before 2.1 fails with it."""
    assert limit_of(uri=served[1].catalog_uri, warehouse="lake") is None


def limit_of(**properties: str) -> str | None:
    """What PyIceberg's files have, which it gives to PyArrow."""
    with closing(RestCatalog("c", **properties)) as catalog:
        name = ("main", f"limit_{uuid4().hex}")
        limit: str | None = catalog.create_table(name, ROWS.schema).io.properties.get(
            "s3.request-timeout"
        )
        catalog.drop_table(name)
        return limit


@pytest.mark.slow(but=["[object-lambda]"])
def test_pyiceberg_needs_an_address_and_a_warehouse(served, twin, monkeypatch):
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    with closing(RestCatalog("c", uri=served[1].catalog_uri, warehouse="lake")) as catalog:
        table = catalog.create_table(f"main.{twin.name}", ROWS.schema)
        table.append(ROWS)
        assert catalog.load_table(f"main.{twin.name}").scan().to_arrow().to_pylist() == (
            ROWS.to_pylist()
        )
    own = {"s3.endpoint": "http://127.0.0.1:9", "s3.region": "eu-central-1"}
    with closing(RestCatalog("c", uri=served[1].catalog_uri, warehouse="lake", **own)) as catalog:
        assert own.items() <= catalog.properties.items()


@pytest.mark.slow
@pytest.mark.spark
def test_spark_needs_an_address_and_a_warehouse_and_deletes_nothing(served, twin):
    from polynya_local.clients import spark

    # Spark keeps a catalog by its name, and each server has another port.
    session, catalog = spark.session(), f"plain_{urlsplit(served[1].catalog_uri).port}"
    settings = {"type": "rest", "uri": served[1].catalog_uri, "warehouse": "lake"}
    settings["io-impl"] = "org.apache.iceberg.aws.s3.S3FileIO"
    session.conf.set(f"spark.sql.catalog.{catalog}", "org.apache.iceberg.spark.SparkCatalog")
    for name, value in settings.items():
        session.conf.set(f"spark.sql.catalog.{catalog}.{name}", value)
    table = f"{catalog}.main.{twin.name}"
    session.sql(f"CREATE TABLE {table} AS SELECT 1 AS id")
    [[location]] = session.sql(f"SELECT file_path FROM {table}.files").collect()
    spark3 = session._jvm.org.apache.iceberg.spark.Spark3Util
    files = spark3.loadIcebergTable(session._jsparkSession, table).io()
    files.deleteFile(location)
    assert files.newInputFile(location).exists()
    assert [row.id for row in session.sql(f"FROM {table}").collect()] == [1]
