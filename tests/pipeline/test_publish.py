"""Published files equal those of the functions, and no file is built twice or incomplete."""

import itertools
import json
import os
import signal
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from functools import cache
from io import BytesIO

import boto3
import fastavro
import pytest
from polynya.catalog.lakes import open_database
from polynya.catalog.reader import Catalog
from polynya.runtime.errors import Refused
from polynya.runtime.prefetch import AT_A_TIME
from polynya.runtime.settings import Config
from polynya.storage import file_cache
from polynya.storage.bucket_store import BucketStore
from polynya.storage.direct_s3 import DirectS3
from polynya.storage.file_cache import FileCache
from polynya.storage.objects import object_reader
from polynya.virtual_files.virtual_files import VirtualFiles
from polynya_local.cli import app
from polynya_local.clients import pyiceberg
from polynya_local.processes.serving import environment
from polynya_pipeline.common.errors import BadInput, JobError, Unavailable
from polynya_pipeline.common.storage import clients
from polynya_pipeline.publish import destinations, published_files, report, tasks
from polynya_pipeline.publish import table as shared_snapshot
from polynya_pipeline.publish.job import publish
from polynya_pipeline.publish.steps import build_in_executor
from typer.testing import CliRunner

from tests.support import rest
from tests.support.servers.in_process import ALIAS, cache_settings, standing_in

NUMBERS = itertools.count(1)

# Lakes with inlined rows, deletes and a flush; partitions; evolution; partial files.
LAKES = ["17"]
LAKES += [pytest.param(number, marks=pytest.mark.slow) for number in ("14", "22", "36")]


@pytest.fixture(autouse=True)
def aws(moto, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto)
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", moto)
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "true")
    clients.cache_clear()
    yield
    clients.cache_clear()


@pytest.fixture
def bucket():
    """Settings of the delivery `materialize`, with small chunks."""
    name = f"published-{next(NUMBERS)}"
    s3().create_bucket(Bucket=name)
    return {
        "DELIVERY": "materialize",
        "VIRTUAL_BUCKET": name,
        "CHUNK_FILES": "3",
        "SNAPSHOT_LIMIT": "100",
        "BUILD_SECONDS": "600",  # for the functions, on a busy machine
    }


@cache
def s3_at(endpoint: str):
    """The test's own client, not one that a test may have changed."""
    return boto3.client("s3", endpoint_url=endpoint)


def s3():
    return s3_at(os.environ["AWS_ENDPOINT_URL_S3"])


def objects(environ: dict[str, str]) -> dict[str, bytes]:
    bucket = environ["VIRTUAL_BUCKET"]
    listing = s3().get_paginator("list_objects_v2").paginate(Bucket=bucket)
    keys = [item["Key"] for page in listing for item in page.get("Contents", ())]
    return {key: s3().get_object(Bucket=bucket, Key=key)["Body"].read() for key in keys}


def removed_objects(environ: dict[str, str]) -> dict[str, bytes]:
    found = objects(environ)
    assert 0 < len(found) <= 1000  # as many as one request can delete
    keys = {"Objects": [{"Key": key} for key in found]}
    answer = s3().delete_objects(Bucket=environ["VIRTUAL_BUCKET"], Delete=keys)
    assert len(answer["Deleted"]) == len(found)
    return found


def functions(lake, environ: dict[str, str], **options: bool) -> dict[str, bytes]:
    """The files that the functions put into the bucket when they load every table; removes them.

    `options` are those of the catalog.
    """
    at = {"DATABASE_URL": lake.database.url, "METADATA_SCHEMA": lake.metadata_schema}
    config = Config.from_env(environ | at)
    with closing(open_database(config, clients())) as database:
        cache = file_cache.file_cache(config.storage, clients())
        files = VirtualFiles(config, database, cache, object_reader())
        catalog = Catalog(config, database, files, **options)
        for namespace in map(tuple, catalog.list_namespaces(None, None, None)["namespaces"]):
            for table in catalog.list_tables(namespace, None, None)["identifiers"]:
                try:
                    catalog.load_table(namespace, table["name"])
                except Refused:
                    continue
    return removed_objects(environ)


def published(lake, environ: dict[str, str], **options):
    schema = getattr(lake, "metadata_schema", "public")
    return publish(database=lake.database.url, metadata_schema=schema, environ=environ, **options)


@pytest.mark.slow
def test_data_files_that_are_changed_for_clients_are_copied_too(lake, bucket):
    one, copies = lake("22"), bucket | {"CLIENTS": "all", "COPY_DATA_FILES": "yes"}
    expected = functions(one, copies)
    of_data = {key for key in expected if "/data-file-" in key}
    published(one, copies)
    found = objects(copies)
    assert of_data and {key: found[key] for key in expected} == expected
    for key in of_data:
        s3().delete_object(Bucket=bucket["VIRTUAL_BUCKET"], Key=key)
    published(one, copies)
    assert objects(copies) == found


@pytest.mark.slow
def test_an_exported_table_names_the_lake_s_own_data_files(lake, bucket, tmp_path):
    settings = bucket | {"CLIENTS": "all", "COPY_DATA_FILES": "yes"}
    published(lake("22"), settings, export=str(tmp_path))
    manifests = [BytesIO(path.read_bytes()) for path in tmp_path.rglob("data-*.avro")]
    files = [entry["data_file"]["file_path"] for one in manifests for entry in fastavro.reader(one)]
    assert files and not any("/data-file-" in file for file in files)


@pytest.mark.parametrize("number", LAKES)
def test_every_key_has_the_same_bytes_as_from_the_functions(number, lake, bucket, monkeypatch):
    monkeypatch.setattr(report, "PAGE", 2)  # otherwise there are too few files for a page
    monkeypatch.setattr(published_files, "MANY", 1)
    lake = lake(number)
    expected = functions(lake, bucket)
    done = published(lake, bucket)
    found = objects(bucket)
    of_publish = {key for key in found if key.endswith(".page")}
    assert of_publish and len(expected) > 5 and found.keys() - of_publish == expected.keys()
    assert [key for key in expected if found[key] != expected[key]] == []
    assert sum(table.files for table in done.tables) == len(found)
    assert sum(table.bytes for table in done.tables) == sum(map(len, found.values()))
    again = published(lake, bucket)
    for table in again.tables:
        assert (table.files, table.manifests_built, table.lists_built) == (0, 0, 0)
        assert table.lists_existing == table.snapshots and table.metadata_location


@pytest.mark.slow
@pytest.mark.spark
def test_executors_make_the_same_files(lake, bucket, spark, monkeypatch):
    # Otherwise there are too few manifests for two tasks.
    monkeypatch.setattr(tasks, "MANIFESTS", 1)
    lake = lake("17")
    expected = functions(lake, bucket)
    assert published(lake, bucket, spark=spark).is_snapshot_shared
    assert objects(bucket) == expected


@pytest.fixture
def growing(open_lake):
    """Thirty files in ten snapshots."""
    lake = open_lake(DATA_INLINING_ROW_LIMIT=0)
    lake.sql("CREATE TABLE t(i INTEGER)")
    for number in range(10):
        lake.sql("BEGIN")
        for _ in range(3):
            lake.sql(f"INSERT INTO t VALUES ({number})")
        lake.sql("COMMIT")
    return lake


def test_after_a_commit_only_its_chunk_and_its_list_are_built(growing, bucket):
    [first] = published(growing, bucket).tables
    assert first.manifests_built > 5 and first.lists_built == 11
    before = objects(bucket)
    growing.sql("INSERT INTO t VALUES (11)")
    [second] = published(growing, bucket).tables
    # Each new file ends a chunk here, so at most the last two manifests are new; and the manifests
    # that the commit before changed are new without the changes.
    assert second.manifests_built <= 4 and (second.lists_built, second.lists_existing) == (1, 11)
    after = objects(bucket)
    assert {key: after[key] for key in before} == before
    # Each manifest with a summary, the list, and the document.
    assert second.files == len(after) - len(before) == 2 * second.manifests_built + 2


@pytest.mark.slow
def test_lost_files_are_built_again(growing, bucket):
    published(growing, bucket)
    before = objects(bucket)
    lost = next(key for key in before if "/data-" in key and key.endswith(".avro"))
    for key in (lost, f"{lost}.summary"):
        s3().delete_object(Bucket=bucket["VIRTUAL_BUCKET"], Key=key)
    [table] = published(growing, bucket).tables
    assert table.manifests_built == 1 and objects(bucket) == before


# The job in its own process, which kills itself after it has put a number of objects.
KILLED = """
import os, signal, sys
from polynya.storage.bucket_store import BucketStore
from polynya_pipeline.publish.job import publish

put, database, left = BucketStore.put, sys.argv[1], int(sys.argv[2])

def counted(store, key, body):
    global left
    if not left:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1
    return put(store, key, body)

BucketStore.put = counted
publish(database=database)
"""


SHARES = [pytest.param(share, marks=[pytest.mark.slow] * (share != 0.5)) for share in (0, 0.5, 1)]


@pytest.mark.parametrize("share", SHARES)
def test_a_killed_job_leaves_only_complete_files_and_can_be_continued(growing, bucket, share):
    expected = functions(growing.as_lake, bucket)
    puts = round(share * (len(expected) - 1))  # the last is the document
    words = [sys.executable, "-c", KILLED, growing.database.url, str(puts)]
    done = subprocess.run(words, env=environment(bucket), capture_output=True, text=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    stored = objects(bucket)
    # Some puts were under way at the same time.
    assert puts - AT_A_TIME < len(stored) <= puts and stored.items() < expected.items()
    assert [key for key in stored if "-table-" in key] == []
    [table] = published(growing, bucket).tables
    assert objects(bucket) == expected
    # A manifest is built again if its summary is missing.
    missing = len(expected) - len(stored)
    assert missing <= table.files <= missing + AT_A_TIME


@pytest.mark.slow
@pytest.mark.parametrize("may_list", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_existing_files_are_found_with_a_listing(growing, bucket, may_list, monkeypatch, tmp_path):
    """A request lists a thousand files; without the right to list, files are read one by one."""
    monkeypatch.setattr(published_files, "MANY", 1)
    expected = functions(growing.as_lake, bucket)
    listed, requested = [], []
    list_files, get = destinations.storage.list_files, BucketStore.get

    def listing(directory: str):
        listed.append(directory)
        if not may_list:
            raise Unavailable("AccessDenied")
        return list_files(directory)

    monkeypatch.setattr(destinations.storage, "list_files", listing)
    published(growing, bucket)
    assert objects(bucket) == expected and listed
    monkeypatch.setattr(
        BucketStore, "get", lambda store, key: requested.append(key) or get(store, key)
    )
    [again] = published(growing, bucket).tables
    assert (again.manifests_built, again.lists_built, again.files) == (0, 0, 0)
    assert [key for key in requested if key.endswith(".summary")] == [] or not may_list
    for _ in range(2):
        [table] = published(growing, bucket, export=str(tmp_path)).tables
    assert table.manifests_built == 0 and table.lists_existing == 11


@pytest.mark.slow
def test_with_only_the_newest_snapshots_no_document_is_published(growing, bucket):
    [table] = published(growing, bucket, snapshots=1).tables
    assert (table.snapshots, table.lists_built, table.metadata_location) == (1, 1, None)
    assert [key for key in objects(bucket) if "-table-" in key] == []
    expected = functions(growing.as_lake, bucket)
    published(growing, bucket, snapshots=1)
    assert objects(bucket).items() < expected.items()


def test_a_dry_run_writes_nothing(growing, bucket):
    [table] = published(growing, bucket, dry_run=True).tables
    assert table.manifests_built > 5 and table.lists_built == 11 and table.bytes == 0
    assert objects(bucket) == {}


def test_bytes_do_not_change_when_a_late_column_becomes_a_partition(open_lake, bucket):
    """The first hundred columns have metrics, and so have partition columns."""
    lake = open_lake(DATA_INLINING_ROW_LIMIT=0)
    lake.sql(f"CREATE TABLE t({', '.join(f'c{n} INTEGER' for n in range(120))})")
    lake.sql(f"INSERT INTO t SELECT {', '.join('i' for _ in range(120))} FROM range(5) r(i)")
    before = functions(lake.as_lake, bucket)
    lake.sql("ALTER TABLE t SET PARTITIONED BY (c110)")
    lake.sql(f"INSERT INTO t VALUES ({', '.join('7' for _ in range(120))})")
    after = functions(lake.as_lake, bucket)
    assert [key for key in before.keys() & after.keys() if before[key] != after[key]] == []


REWRITTEN = {
    "merge": "CALL ducklake_merge_adjacent_files('lake', 't')",
    "delete": "DELETE FROM t WHERE i = 3",
    "append": "INSERT INTO t VALUES (100)",
}


@pytest.mark.slow("[merge-True]")
@pytest.mark.parametrize(
    ("change", "is_exported"),
    [
        ("merge", True),
        pytest.param("merge", False, marks=pytest.mark.slow),
        pytest.param("delete", False, marks=pytest.mark.slow),
        pytest.param("append", False, marks=pytest.mark.slow),
    ],
)
def test_all_files_belong_to_one_snapshot_despite_commits(
    growing, bucket, change, is_exported, monkeypatch
):
    expected = functions(growing.as_lake, bucket)
    before = tasks.map_in_spark

    def map_in_spark(spark, work, parts):
        if work is build_in_executor:
            growing.sql(REWRITTEN[change])
        yield from before(spark, work, parts)

    monkeypatch.setattr(tasks, "map_in_spark", map_in_spark)
    if not is_exported:
        # As behind a host name of several servers: this server does not have the snapshot.
        joined = shared_snapshot.literal
        monkeypatch.setattr(shared_snapshot, "literal", lambda name: joined("00000003-0000001B-1"))
    [table] = published(growing, bucket).tables
    assert objects(bucket) == expected
    assert table.snapshots == 11


@pytest.mark.slow
def test_a_role_without_the_right_to_export_a_snapshot_can_publish(growing, bucket):
    expected = functions(growing.as_lake, bucket)
    role = "publisher without export"
    growing.catalog(f'CREATE ROLE "{role}" LOGIN')
    try:
        growing.catalog(f'GRANT SELECT ON ALL TABLES IN SCHEMA public TO "{role}"')
        growing.catalog("REVOKE EXECUTE ON FUNCTION pg_export_snapshot() FROM PUBLIC")
        url = replace(growing.database, user=role).url
        done = publish(database=url, environ=bucket)
        assert not done.is_snapshot_shared and objects(bucket) == expected
    finally:
        growing.catalog(f'DROP OWNED BY "{role}"')
        growing.catalog(f'DROP ROLE "{role}"')


@pytest.mark.slow
def test_readers_of_a_warm_store_build_no_files(growing, moto, monkeypatch):
    cache = cache_settings(moto)
    made = []
    put = FileCache.put
    monkeypatch.setattr(FileCache, "put", lambda *args: made.append(args[1]) or put(*args))

    def read(lake) -> int:
        with standing_in(lake, moto, **cache) as stand_in:
            for snapshot in rest.Rest(stand_in.api_uri, "lake").load_table("main", "t")[
                "snapshots"
            ]:
                client = pyiceberg.open(stand_in.api_uri, "lake", stand_in.s3_uri)
                with closing(client):
                    client.rows("main", "t", snapshot["snapshot-id"])
            with closing(pyiceberg.open(stand_in.api_uri, "lake", stand_in.s3_uri)) as client:
                return client.rows("main", "t").num_rows

    done = published(growing, {"VIRTUAL_BUCKET": ALIAS, **cache})
    assert done.tables[0].metadata_location.startswith(f"s3://{ALIAS}/polynya/")
    assert read(growing.as_lake) == 30 and made == []
    growing.sql("INSERT INTO t VALUES (100)")
    assert read(growing.as_lake) == 31 and made != []


def test_an_impossible_run_is_refused_with_a_reason(open_lake, growing, bucket, postgres_server):
    for options, words in (
        ({"tables": ["main.nothing"]}, "no table main.nothing"),
        ({"tables": ["a."]}, "is not a table name"),
        ({"tables": ["a.b.c"]}, "no table a.b.c"),
        ({"namespaces": ["nowhere"]}, "no namespace nowhere"),
        ({"environ": {}}, "VIRTUAL_BUCKET is missing"),
        ({"environ": {"VIRTUAL_BUCKET": "x"}}, "set CACHE_TABLE and CACHE_BUCKET"),
        ({"environ": bucket | {"CHUNK_FILES": "x"}}, "CHUNK_FILES must be a whole number"),
    ):
        with pytest.raises(BadInput, match=words):
            publish(database=growing.database.url, **{"environ": bucket, **options})
    for environ, words in (
        (bucket | {"VIRTUAL_BUCKET": "no-such-bucket-of-ours"}, "cannot be written: NoSuchBucket"),
        ({"VIRTUAL_BUCKET": "x", "CACHE_TABLE": "none", "CACHE_BUCKET": "none"}, "cannot be read"),
    ):
        with pytest.raises(Unavailable, match=words):
            published(growing, environ)
    nobody = replace(growing.database, user="nobody we know", password="secret word")
    with pytest.raises(Unavailable, match="refuses this role") as raised:
        publish(database=nobody.url, environ=bucket)
    assert "secret" not in str(raised.value)
    growing.catalog("ALTER TABLE ducklake_delete_file RENAME TO kept")
    with pytest.raises(JobError, match="lacks the table ducklake_delete_file"):
        published(growing, bucket)
    growing.catalog("ALTER TABLE kept RENAME TO ducklake_delete_file")
    growing.catalog("UPDATE ducklake_metadata SET value = '2.7' WHERE key = 'version'")
    with pytest.raises(BadInput, match=r"version '2\.7' is not served"):
        published(growing, bucket)
    encrypted = open_lake(ENCRYPTED=1)
    encrypted.sql("CREATE TABLE t AS SELECT 1 AS i")
    with pytest.raises(BadInput, match="encrypted"):
        published(encrypted, bucket)
    empty = postgres_server.create_database("nothing to publish")
    with pytest.raises(BadInput, match="no DuckLake catalog"):
        publish(database=empty.url, environ=bucket)
    assert objects(bucket) == {}


def test_a_read_only_bucket_is_reported(growing, bucket, monkeypatch):
    from botocore.exceptions import ClientError

    s3 = clients()("s3")

    def put_object(**_):
        status = {"HTTPStatusCode": 403}
        raise ClientError(
            {"Error": {"Code": "AccessDenied"}, "ResponseMetadata": status}, "PutObject"
        )

    monkeypatch.setattr(s3, "put_object", put_object)
    monkeypatch.setattr(DirectS3, "put_new", lambda *_: False)  # what boto3 is asked after it
    with pytest.raises(Unavailable, match="cannot be written: AccessDenied at PutObject"):
        published(growing, bucket)
    assert objects(bucket) == {}


def test_tables_that_cannot_be_served_are_left_out_and_named(growing, bucket):
    growing.sql("CREATE SCHEMA s")
    growing.sql("CREATE TABLE s.bad(i INTERVAL)")
    growing.sql("CREATE TABLE s.good(i INTEGER)")
    done = published(growing, bucket, namespaces=["s"])
    assert {table.name: bool(table.refused) for table in done.tables} == {
        "s.bad": True,
        "s.good": False,
    }
    with pytest.raises(BadInput, match=r"s\.bad is not served"):
        published(growing, bucket, tables=["s.bad"])


def test_the_command_publishes_and_exports(growing, bucket, moto, tmp_path, monkeypatch):
    for name, value in bucket.items():
        monkeypatch.setenv(name, value)

    def run(*words: str):
        at = ["--database", growing.database.url, "--s3-endpoint", moto]
        return CliRunner().invoke(app, ["publish", *at, *words])

    done = run("--dry-run")
    assert done.exit_code == 0 and "to generate" in done.stdout
    done = run("--json")
    document = json.loads(done.stdout)
    assert done.exit_code == 0 and document["tables"][0]["manifests_built"] > 5
    done = run("--table", "main.t")
    assert done.exit_code == 0 and "0 manifests and 0 lists generated" in done.stdout
    done = run("--export", str(tmp_path / "out"), "--namespace", "main")
    assert done.exit_code == 0 and "v1.metadata.json" in "".join(done.stdout.split())
    done = run("--table", "nothing", "--json")
    assert done.exit_code == 2 and json.loads(done.stdout)["message"] == "no table main.nothing"
