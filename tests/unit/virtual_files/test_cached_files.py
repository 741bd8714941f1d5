"""Files and their summaries in a bucket that is listed, and in one that is read: moto's S3."""

import boto3
import pytest
from polynya.iceberg.avro.manifests import manifest_bytes
from polynya.iceberg.manifest import (
    UNPARTITIONED,
    DataFile,
    FileContent,
    ManifestContent,
    ManifestEntry,
    Status,
)
from polynya.iceberg.types import Field, Primitive, TableSchema
from polynya.runtime.settings import FileSettings
from polynya.storage.bucket_store import BucketStore, DeliveryBucket
from polynya.storage.file_cache import FileCache, MemoryCache
from polynya.storage.objects import object_reader
from polynya.virtual_files.cached_files import CachedFiles
from polynya.virtual_files.contexts import BuildContext, table_context
from polynya.virtual_files.manifests import DataManifests
from polynya.virtual_files.names import Name

from tests.unit.mapping.test_tables import HISTORY

BUCKET = "summarized-files"
UUID = "01a206cc-e1b0-715d-85f8-5496b75ca1a7"
EMPTY, FULL = (Name(UUID, "data", (spec, 0, 9, 1), "0" * 20) for spec in (0, 1))
SCHEMA = TableSchema(0, (Field(1, "k", Primitive("long")),))


def manifest(*paths: str) -> bytes:
    files = [DataFile(FileContent.DATA, path, 1, 100) for path in paths]
    entries = [ManifestEntry(Status.ADDED, 1, 1, 1, file) for file in files]
    return manifest_bytes(entries, ManifestContent.DATA, SCHEMA, UNPARTITIONED, 1)


BODIES = {EMPTY: manifest(), FULL: manifest("s3://bucket/file.parquet")}


class Prepared(DataManifests):
    """Manifests that need no rows of a catalog."""

    def build(self, name: Name) -> bytes:
        return BODIES[name]


@pytest.fixture
def s3(moto):
    client = boto3.client("s3", endpoint_url=moto)
    client.create_bucket(Bucket=BUCKET)
    yield client
    for key in keys(client):
        client.delete_object(Bucket=BUCKET, Key=key)
    client.close()


def keys(s3) -> list[str]:
    return [one["Key"] for one in s3.list_objects_v2(Bucket=BUCKET).get("Contents", ())]


@pytest.fixture(params=["listed", "read"])
def files(s3, request):
    """Gives the files as a new process finds them."""

    def new() -> CachedFiles:
        store = BucketStore(BUCKET, lambda: s3)
        bucket = DeliveryBucket(store) if request.param == "listed" else None
        cache = FileCache(store, MemoryCache(), bucket=bucket)
        context = BuildContext(FileSettings.from_env({}), str, cache, object_reader())
        return CachedFiles(table_context(None, HISTORY, context), [Prepared])

    return new


def test_a_manifest_without_entries_has_a_summary_only(files, s3):
    assert files().put_many(BODIES.items()) == [*BODIES.values()]
    full, empty = FULL.key("polynya"), EMPTY.key("polynya")
    assert keys(s3) == sorted([full, f"{full}.summary", f"{empty}.summary"])


def test_it_need_not_be_built_again(files):
    files().put_many(BODIES.items())
    assert files().missing(BODIES) == []
    assert [s["added_files_count"] for s in files().summaries(BODIES)] == [0, 1]
    assert files().body(EMPTY) == BODIES[EMPTY]


@pytest.mark.parametrize("name", BODIES)
def test_without_its_summary_it_is_built_again(name, files, s3):
    files().put_many(BODIES.items())
    for key in (name.key("polynya"), f"{name.key('polynya')}.summary"):
        s3.delete_object(Bucket=BUCKET, Key=key)
    assert files().missing(BODIES) == [name]
    assert [s["added_files_count"] for s in files().summaries(BODIES)] == [0, 1]
    assert files().missing(BODIES) == []


def test_a_manifest_that_is_gone_is_missing_in_a_bucket_that_is_listed(files, s3, request):
    files().put_many(BODIES.items())
    s3.delete_object(Bucket=BUCKET, Key=FULL.key("polynya"))
    is_listed = "listed" in request.node.name.rpartition("[")[2]
    assert files().missing(BODIES) == ([FULL] if is_listed else [])
