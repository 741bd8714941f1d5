"""Polynya in this process, composed as in the Lambda functions, with empty caches."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from polynya.catalog.reader import Catalog
from polynya.ducklake.connection.database import Database
from polynya.runtime.settings import Config
from polynya.storage.file_cache import FileCache, MemoryCache
from polynya.storage.objects import object_reader
from polynya.virtual_files.virtual_files import VirtualFiles
from polynya_local.clients.native import Lake

from .lakes import NAMESPACE, TABLE

VIRTUAL_BUCKET = "virtual"
RECENT_BYTES = 1_000_000_000


class Counting(FileCache):
    """Keeps files in the process, and counts what is put into it."""

    bytes_made = 0

    def put(self, key: str, body: bytes) -> bytes:
        self.bytes_made += len(body)
        return super().put(key, body)


@dataclass(frozen=True, slots=True)
class Bridge:
    catalog: Catalog
    virtual_files: VirtualFiles
    kept: Counting

    def document(self) -> dict[str, Any]:
        """The table metadata document."""
        document: dict[str, Any] = self.catalog.load_table((NAMESPACE,), TABLE).body["metadata"]
        return document

    def newest_list(self) -> str:
        """The location of the newest snapshot's manifest list, as a reader finds it."""
        document = self.catalog.load_table((NAMESPACE,), TABLE, "refs").body["metadata"]
        return str(document["snapshots"][-1]["manifest-list"])

    def read(self, location: str) -> bytes:
        return self.virtual_files.read(location.removeprefix(f"s3://{VIRTUAL_BUCKET}/"))


def settings(lake: Lake) -> dict[str, str]:
    """The environment of both Lambda functions, with no time limit for a first build."""
    return {
        "DATABASE_URL": lake.database.url,
        "VIRTUAL_BUCKET": VIRTUAL_BUCKET,
        "BUILD_SECONDS": "900",
    }


@contextmanager
def opened(lake: Lake) -> Iterator[Bridge]:
    config = Config.from_env(settings(lake))
    database = Database(config.database_url, config.metadata_schema)
    kept = Counting(None, MemoryCache(RECENT_BYTES))
    virtual_files = VirtualFiles(config, database, kept, object_reader())
    try:
        yield Bridge(Catalog(config, database, virtual_files), virtual_files, kept)
    finally:
        database.close()
