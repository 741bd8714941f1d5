"""A first build that exceeds the time limit of one request is completed by several requests."""

from contextlib import closing
from dataclasses import replace
from itertools import count

import pytest
from polynya.catalog.reader import Catalog
from polynya.ducklake.connection.database import Database
from polynya.runtime.errors import ServiceUnavailable
from polynya.runtime.prefetch import AT_A_TIME
from polynya.runtime.settings import Config
from polynya.storage import file_cache
from polynya.storage.aws import Clients
from polynya.storage.bucket_store import DeliveryBucket
from polynya.storage.file_cache import FileCache, MemoryCache
from polynya.storage.objects import object_reader
from polynya.virtual_files.virtual_files import VirtualFiles

TABLE = (("main",), "pe")
LAKE = "62"
NUMBERS = count()


class Server:
    """Both functions in this process, with small manifests."""

    def __init__(
        self,
        lake,
        database: Database,
        delivery: str = "object-lambda",
        environ: dict[str, str] | None = None,
        **file_settings,
    ) -> None:
        environ = (environ or {}) | {
            "DATABASE_URL": lake.database.url,
            "VIRTUAL_BUCKET": "virtual",
            "DELIVERY": delivery,
            "CHUNK_FILES": "1",
        }
        config = Config.from_env(environ)
        config = replace(config, files=replace(config.files, **file_settings))
        is_put = config.storage.is_materialized
        self.kept = empty_bucket() if is_put else FileCache(None, MemoryCache())
        self.files = VirtualFiles(config, database, self.kept, object_reader())
        self.catalog = Catalog(config, database, self.files)

    def list_key(self) -> str:
        document = self.catalog.load_table(*TABLE).body["metadata"]
        return document["snapshots"][-1]["manifest-list"].removeprefix("s3://virtual/")


def empty_bucket() -> FileCache:
    name = f"first-build-{next(NUMBERS)}"
    clients = Clients()
    clients("s3").create_bucket(Bucket=name)
    bucket = file_cache.bucket_store(name, clients)
    return FileCache(bucket, MemoryCache(), bucket=DeliveryBucket(bucket))


@pytest.fixture
def servers(lake, moto, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto)
    monkeypatch.setenv("POWERTOOLS_METRICS_DISABLED", "true")
    one = lake(LAKE)
    with closing(Database(one.database.url, one.metadata_schema)) as database:
        yield lambda **changes: Server(one, database, **changes)


def test_each_request_continues_the_build_until_the_list_is_complete(servers):
    whole = servers()
    key = whole.list_key()
    hurried = servers(build_seconds=0)
    said = []
    while True:
        try:
            assert hurried.files.read(key) == whole.files.read(key)
            break
        except ServiceUnavailable as error:
            said.append(str(error))
            assert len(said) < 200
    assert len(said) > 2
    # Each request put as many manifests as are put side by side.
    left = [int(text.partition(" of ")[2].partition(" of ")[2].split()[0]) for text in said]
    assert left == list(range(left[0], 0, -AT_A_TIME))[: len(left)]
    assert "polynya publish" in said[0]


def test_materialize_continues_the_build_with_each_loadtable(servers):
    whole, hurried = (
        servers(delivery="materialize", snapshot_limit=2, build_seconds=seconds)
        for seconds in (1000, 0)
    )
    refused = 0
    while True:
        try:
            found = hurried.catalog.load_table(*TABLE)
            break
        except ServiceUnavailable:
            refused += 1
            assert refused < 200
    assert refused > 2
    assert found == whole.catalog.load_table(*TABLE)


FILES = 2 * AT_A_TIME + 3
SCRIPT = "\n".join(
    (
        "ATTACH 'ducklake:{{CATALOG}}' AS lake",
        "  (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);",
        "USE lake;",
        "CREATE TABLE pe(i INTEGER);",
        *(f"INSERT INTO pe VALUES ({number});" for number in range(FILES)),
        "ALTER TABLE pe ADD COLUMN country VARCHAR DEFAULT 'DE';",
    )
)
COPIES = {"CLIENTS": "spark", "COPY_DATA_FILES": "yes", "SNAPSHOT_LIMIT": "1"}


@pytest.mark.slow
def test_copies_of_data_files_continue_with_each_loadtable(lake, moto, s3):
    one = lake.write("first_copies", SCRIPT)
    said = []
    with closing(Database(one.database.url, one.metadata_schema)) as database:
        hurried = Server(one, database, "materialize", COPIES, build_seconds=0)
        while True:
            try:
                hurried.catalog.load_table(*TABLE)
                break
            except ServiceUnavailable as error:
                said.append(str(error))
                assert len(said) < 100
    of_copies = [text for text in said if "copies of data files" in text]
    left = [int(text.partition(" of ")[2].partition(" of ")[2].split()[0]) for text in of_copies]
    assert left == [FILES, FILES - AT_A_TIME]
    assert "polynya publish" in of_copies[0]
