"""After an upgrade with another compressor, old names give their old bytes or none."""

import io
import zlib
from contextlib import closing

import fastavro
import pytest
from polynya.catalog import Catalog
from polynya.config import Config
from polynya.ducklake.connection.database import Database
from polynya.errors import NoSuchKey
from polynya.files import table_names
from polynya.files.virtual_files import VirtualFiles
from polynya.iceberg.avro import compression
from polynya.storage import aws
from polynya.storage.file_cache import FileCache
from polynya.storage.memory_cache import MemoryCache
from polynya.storage.objects.reader import object_reader

TABLES = {"09": "d", "14": "fl", "62": "pe", "82": "by_day"}
"""By the lake: tables with stored deletes, flushed rows, partitions, and inlined rows."""

BUCKET = "s3://virtual/"


class Server:
    """Both functions in this process."""

    def __init__(self, lake, database: Database, cache: FileCache) -> None:
        config = Config.from_env({"DATABASE_URL": lake.database.url, "VIRTUAL_BUCKET": "virtual"})
        self._files = VirtualFiles(config, database, cache, object_reader())
        self._catalog = Catalog(config, database, self._files)

    def avro_files(self, table: str) -> dict[str, bytes]:
        """The lists and manifests of all snapshots, by key."""
        document = self._catalog.load_table("main", table).body["metadata"]
        lists = [snapshot["manifest-list"] for snapshot in document["snapshots"]]
        found = {key: self.read(key) for key in map(key_of, lists)}
        for body in list(found.values()):
            for entry in fastavro.reader(io.BytesIO(body)):
                manifest = key_of(entry["manifest_path"])
                found[manifest] = self.read(manifest)
                assert len(found[manifest]) == entry["manifest_length"]
        return found

    def read(self, key: str) -> bytes:
        return self._files.read(key)


def key_of(location: str) -> str:
    return location.removeprefix(BUCKET)


def empty() -> FileCache:
    return FileCache(None, MemoryCache())


@pytest.fixture(autouse=True)
def s3(moto, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto)
    aws.client.cache_clear()
    yield
    aws.client.cache_clear()


@pytest.fixture
def upgrade(monkeypatch):
    """Replaces the compressor by zlib."""

    def replace() -> None:
        codecs = {"deflate": lambda block: zlib.compress(block, 9, wbits=-15)}
        monkeypatch.setattr(compression, "CODECS", codecs)
        monkeypatch.setattr("polynya.iceberg.avro.container.CODECS", codecs)
        monkeypatch.setattr(table_names, "COMPRESSOR", "zlib")

    return replace


@pytest.mark.parametrize("number", TABLES)
def test_old_names_give_old_bytes_or_none(number, lake, upgrade):
    one, table, cache = lake(number), TABLES[number], empty()
    with closing(Database(one.database.url, one.metadata_schema)) as database:
        before = Server(one, database, cache).avro_files(table)
        assert before
        upgrade()
        after = Server(one, database, empty()).avro_files(table)
        assert not before.keys() & after.keys()
        assert set(after.values()) - set(before.values())
        assert {key: Server(one, database, cache).read(key) for key in before} == before
        for key in before:
            with pytest.raises(NoSuchKey):
                Server(one, database, empty()).read(key)
