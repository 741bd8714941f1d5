"""Both functions in this process, and the lists and manifests that they give."""

import io

import fastavro
from polynya.catalog.reader import Catalog
from polynya.ducklake.connection.database import Database
from polynya.runtime.settings import Config
from polynya.storage.file_cache import FileCache, MemoryCache
from polynya.storage.objects import object_reader
from polynya.virtual_files.virtual_files import VirtualFiles


def empty_cache() -> FileCache:
    return FileCache(None, MemoryCache())


class AvroServer:
    """Serves the tables in the schema `main` of one lake."""

    def __init__(self, lake, database: Database, cache: FileCache, **environ: str) -> None:
        """`environ` has further settings."""
        settings = {"DATABASE_URL": lake.database.url, "VIRTUAL_BUCKET": "virtual"}
        config = Config.from_env(settings | environ)
        self.files = VirtualFiles(config, database, cache, object_reader())
        self._catalog = Catalog(config, database, self.files)

    def lists(self, table: str) -> list[str]:
        """The keys of the manifest lists of all snapshots, in order."""
        document = self._catalog.load_table(("main",), table).body["metadata"]
        return [key_of(snapshot["manifest-list"]) for snapshot in document["snapshots"]]

    def avro_files(self, table: str, snapshots: int = 1) -> dict[str, bytes]:
        """The lists and manifests of the newest snapshots, by key."""
        found = {key: self.read(key) for key in self.lists(table)[-snapshots:]}
        for body in list(found.values()):
            for entry in fastavro.reader(io.BytesIO(body)):
                manifest = key_of(entry["manifest_path"])
                if manifest not in found:
                    found[manifest] = self.read(manifest)
                    assert len(found[manifest]) == entry["manifest_length"]
        return found

    def read(self, key: str) -> bytes:
        """The bytes of a virtual file."""
        return self.files.read(key)


def key_of(location: str) -> str:
    return location.removeprefix("s3://virtual/")
