"""Any object or item may vanish at any time. After the next loadTable, a second later, every file
of the table can be read, and no name ever gives other bytes.

The model has all users of a store: a writer, instances of the functions with different clocks, and
a deleter.
"""

import itertools
import time
from collections.abc import Callable
from io import BytesIO
from random import Random
from threading import Event
from types import SimpleNamespace
from typing import ClassVar

import boto3
import fastavro
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test
from polynya.catalog.reader import Catalog
from polynya.ducklake.connection.database import Database
from polynya.runtime.errors import Misconfigured, NoSuchKey
from polynya.runtime.settings import SECONDS_PER_DAY, Config
from polynya.storage.bucket_store import BucketStore, DeliveryBucket
from polynya.storage.cache_store import CacheStore
from polynya.storage.copies import SMALLEST_PART
from polynya.storage.file_cache import FileCache, MemoryCache
from polynya.storage.objects import object_reader
from polynya.virtual_files.names import DATA_FILE, KINDS, parse
from polynya.virtual_files.virtual_files import VirtualFiles
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import attach

from tests.aws.dynamodb import TABLE as CACHE_TABLE
from tests.support.servers.in_process import cache_settings

BUCKET, CACHE_BUCKET = "vanishing", "lakes"
DAYS = 7
SKEWS = [0, -3600, 3600, -3 * DAYS * SECONDS_PER_DAY, 3 * DAYS * SECONDS_PER_DAY]
"""Offsets of an instance's clock in seconds. For the last two all stored files are new, or old."""
INSTANCES = 3
NUMBERS = itertools.count()
CHANCES = st.integers(0, 2**32 - 1).map(Random)
"""One draw for each rule. The keys differ between runs, because a table's UUID is random, and
Hypothesis needs the same number of draws each time."""
SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 10);
USE lake;
"""
CHANGES = [
    "INSERT INTO {t}(i, s) VALUES (3000, 'small')",
    "INSERT INTO {t}(i, s) SELECT i, 'many' FROM range(40) AS r(i)",
    "DELETE FROM {t} WHERE i % 5 = 0",
    "DELETE FROM {t} WHERE i = 3000",
    "UPDATE {t} SET s = 'changed' WHERE i = 7",
    "ALTER TABLE {t} ADD COLUMN c{n} INTEGER",
    "CALL ducklake_flush_inlined_data('lake', table_name => '{t}')",
    "CALL ducklake_merge_adjacent_files('lake', '{t}')",
]


@pytest.fixture(scope="module")
def backend(lake, moto):
    """A lake, its writer, and the clients of the store that instances share."""
    watched = lake.write("vanishing", SCRIPT)
    s3 = boto3.client("s3", endpoint_url=moto)
    s3.create_bucket(Bucket=BUCKET)
    cache_settings(moto)
    with pytest.MonkeyPatch.context() as patch, connect(LAKE, moto) as con:
        patch.setenv("AWS_ENDPOINT_URL_S3", moto)
        patch.setenv("AWS_ENDPOINT_URL_DYNAMODB", moto)
        patch.setenv("POWERTOOLS_METRICS_DISABLED", "true")
        # The clock of an instance may be days ahead: no instance waits for the end of its lease.
        patch.setattr("polynya.storage.file_cache.PATIENCE_SECONDS", 0)
        # As if a second passed before each loadTable.
        patch.setattr("polynya.virtual_files.bucket_files.LOADED_SECONDS", 0)
        attach(con, watched, read_only=False)
        con.execute("USE lake")
        dynamodb = boto3.client("dynamodb", endpoint_url=moto)
        yield SimpleNamespace(lake=watched, con=con, s3=s3, dynamodb=dynamodb)


class Instance:
    """A process of a function, with its cache in memory."""

    def __init__(self, backend, delivery: str, skew: float, **values: str) -> None:
        self.config = Config.from_env(
            {
                "DATABASE_URL": backend.lake.database.url,
                "VIRTUAL_BUCKET": BUCKET,
                "DELIVERY": delivery,
                "CACHE_TTL_DAYS": str(DAYS),
                "CHUNK_FILES": "2",
                **values,
            }
        )
        self.database = Database(self.config.database_url, "public")
        cache = KEPT[delivery](backend, lambda: time.time() + skew)
        self.files = VirtualFiles(self.config, self.database, cache, object_reader())
        self.catalog = Catalog(self.config, self.database, self.files)


def _bucket(backend, clock: Callable[[], float]) -> FileCache:
    store = BucketStore(BUCKET, lambda: backend.s3, clock)
    return FileCache(store, MemoryCache(), bucket=DeliveryBucket(store))


def _cache(backend, clock: Callable[[], float]) -> FileCache:
    store = CacheStore(
        table=CACHE_TABLE,
        bucket=CACHE_BUCKET,
        ttl_seconds=DAYS * SECONDS_PER_DAY,
        dynamodb=lambda: backend.dynamodb,
        s3=lambda: backend.s3,
        clock=clock,
    )
    return FileCache(store, MemoryCache(), leases=store)


KEPT = {"materialize": _bucket, "object-lambda": _cache}


class Shared(RuleBasedStateMachine):
    """The rules of both deliveries."""

    delivery: str
    values: ClassVar[dict[str, str]] = {}
    """Settings."""
    backend: SimpleNamespace

    @initialize()
    def begin(self) -> None:
        self.table = f"t{next(NUMBERS)}"
        self.instances = [Instance(self.backend, self.delivery, 0, **self.values)]
        self.seen: dict[str, bytes] = {}
        self.backend.con.execute(f"CREATE TABLE {self.table}(i INTEGER, s VARCHAR)")
        for number in range(3):
            self.change(CHANGES[number])

    def teardown(self) -> None:
        for instance in getattr(self, "instances", ()):
            instance.database.close()

    @rule(sql=st.sampled_from(CHANGES))
    def change(self, sql: str) -> None:
        self.backend.con.execute(sql.format(t=self.table, n=next(NUMBERS)))

    @rule(skew=st.sampled_from(SKEWS))
    def start(self, skew: float) -> None:
        if len(self.instances) < INSTANCES:
            self.instances.append(Instance(self.backend, self.delivery, skew, **self.values))

    @rule(chance=CHANCES)
    def stop(self, chance: Random) -> None:
        if len(self.instances) > 1:
            self.instances.remove(gone := self._any(chance))
            gone.database.close()

    @rule(chance=CHANCES, share=st.sampled_from([0.1, 0.5, 1.0]))
    def vanish(self, chance: Random, share: float) -> None:
        self._remove_some(chance, share)

    def _remove_some(self, chance: Random, share: float) -> None:
        self.remove([key for key in sorted(self.stored()) if chance.random() < share])

    @rule(chance=CHANCES)
    def load(self, chance: Random) -> None:
        """A client loads the table and reads every file, from the top down."""
        body = self._any(chance).catalog.load_table(("main",), self.table).body
        table = body["metadata"]
        own = f"{table['location']}/"
        self.read(body["metadata-location"], chance)
        for snapshot in table["snapshots"]:
            listed = self.read(snapshot["manifest-list"], chance)
            for manifest in fastavro.reader(BytesIO(listed)):
                entries = self.read(manifest["manifest_path"], chance)
                assert len(entries) == manifest["manifest_length"]
                for entry in fastavro.reader(BytesIO(entries)):
                    file = entry["data_file"]
                    if file["file_path"].startswith(own):
                        size = len(self.read(file["file_path"], chance))
                        assert size == file["file_size_in_bytes"]

    @rule(chance=CHANCES)
    def read_again(self, chance: Random) -> None:
        """The names that clients know give the same bytes as before, or nothing."""
        for key in chance.sample(sorted(self.seen), min(9, len(self.seen))):
            assert self.bytes_of(key, chance) in (None, self.seen[key])

    def read(self, location: str, chance: Random) -> bytes:
        key = location.removeprefix(f"s3://{BUCKET}/")
        body = self.bytes_of(key, chance)
        assert body is not None, key
        assert self.seen.setdefault(key, body) == body, key
        return body

    def _any(self, chance: Random) -> Instance:
        return chance.choice(self.instances)

    # Differences of the deliveries

    def stored(self) -> list[str]:
        """The keys of this table in the store."""
        raise NotImplementedError

    def remove(self, keys: list[str]) -> None:
        raise NotImplementedError

    def bytes_of(self, key: str, chance: Random) -> bytes | None:
        """The bytes that a client gets."""
        raise NotImplementedError


class Materialized(Shared):
    delivery = "materialize"

    def stored(self) -> list[str]:
        pages = self.backend.s3.get_paginator("list_objects_v2").paginate(Bucket=BUCKET)
        return [found["Key"] for page in pages for found in page.get("Contents", ())]

    def remove(self, keys: list[str]) -> None:
        for key in keys:
            self.backend.s3.delete_object(Bucket=BUCKET, Key=key)

    def bytes_of(self, key: str, chance: Random) -> bytes | None:
        try:
            return self.backend.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        except self.backend.s3.exceptions.NoSuchKey:
            return None


COPIES = {"CLIENTS": "all", "COPY_DATA_FILES": "yes"}


class Copied(Materialized):
    """Files that lack a column, which Daft misreads, are copied."""

    values = COPIES


class Cached(Shared):
    delivery = "object-lambda"

    def stored(self) -> list[str]:
        pages = self.backend.dynamodb.get_paginator("scan").paginate(TableName=CACHE_TABLE)
        items = [item["pk"]["S"] for page in pages for item in page["Items"]]
        return [key for key in items if not key.endswith("#lease")]

    def remove(self, keys: list[str]) -> None:
        """Removes items earlier than their expiry; a slow clock tests items that expire late."""
        for key in keys:
            self.backend.dynamodb.delete_item(TableName=CACHE_TABLE, Key={"pk": {"S": key}})

    def bytes_of(self, key: str, chance: Random) -> bytes | None:
        if chance.random() < 0.03:  # also between a list and its manifests
            self._remove_some(chance, 0.5)
        try:
            return self._any(chance).files.read(key)
        except NoSuchKey:
            return None


@pytest.mark.parametrize("examples", [3, pytest.param(8, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "model", [Materialized, Cached, pytest.param(Copied, marks=pytest.mark.slow)]
)
def test_files_of_a_loaded_table_can_be_read_after_any_loss(model, examples, backend):
    model.backend = backend
    run_state_machine_as_test(
        model,
        settings=settings(
            max_examples=examples,
            stateful_step_count=12,
            deadline=None,
            derandomize=True,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


# Single objects


@pytest.fixture
def table(backend):
    """A table with manifests and virtual files of every kind."""
    name = f"t{next(NUMBERS)}"
    backend.con.execute(f"CREATE TABLE {name}(i INTEGER, s VARCHAR)")
    for number in (1, 2, 0):
        backend.con.execute(CHANGES[number].format(t=name))
    return name


def objects(backend, table_uuid: str) -> dict[str, float]:
    """The time of the last write of each object of a table, by its key."""
    prefix = f"polynya/{table_uuid}/"
    listed = backend.s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", ())
    return {one["Key"]: one["LastModified"].timestamp() for one in listed}


@pytest.fixture
def instance(backend):
    opened = []

    def open_one(skew: float = 0, **values: str) -> Instance:
        opened.append(Instance(backend, "materialize", skew, **values))
        return opened[-1]

    yield open_one
    for one in opened:
        one.database.close()


@pytest.mark.parametrize(
    ("is_cold", "version", "kind_of_other_version"), [(False, 2, "vector"), (True, 3, "deletes")]
)
def test_each_vanished_object_is_back_after_the_next_load(
    is_cold, version, kind_of_other_version, backend, table, instance
):
    warm = instance()
    if version == 3:
        backend.con.execute(f"ALTER TABLE {table} ADD COLUMN later INTEGER DEFAULT 42")
    metadata = warm.catalog.load_table(("main",), table).body["metadata"]
    assert metadata["format-version"] == version
    uuid = metadata["table-uuid"]
    stored_keys = [key for key in objects(backend, uuid) if not key.endswith(".summary")]
    # Padded files are those of plans with the other delivery.
    kinds = {kind for kind in KINDS if not kind.startswith("padded-")} - {kind_of_other_version}
    # Nor the documents of the metadata log, which no load reads, nor data files, nor the lists of
    # what sinks have committed: none has committed here.
    kinds -= {"earlier", "expired-list", DATA_FILE}
    assert {parse(key, "polynya").kind for key in stored_keys} == kinds
    for key in stored_keys:
        body = backend.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        for gone in (key, f"{key}.summary"):
            backend.s3.delete_object(Bucket=BUCKET, Key=gone)
        (instance() if is_cold else warm).catalog.load_table(("main",), table)
        assert backend.s3.get_object(Bucket=BUCKET, Key=key)["Body"].read() == body, key


def test_old_objects_are_renewed_before_a_lifecycle_rule_expires_them(backend, table, instance):
    uuid = instance().catalog.load_table(("main",), table).body["metadata"]["table-uuid"]
    before = objects(backend, uuid)
    time.sleep(1.1)  # S3 has timestamps in seconds
    instance((DAYS - 1) * SECONDS_PER_DAY).catalog.load_table(("main",), table)
    assert objects(backend, uuid) == before
    instance((DAYS + 1) * SECONDS_PER_DAY).catalog.load_table(("main",), table)
    after = objects(backend, uuid)
    assert after.keys() == before.keys()
    unchanged = {key for key in before if after[key] == before[key]}
    # Clients do not read summaries.
    assert unchanged == {key for key in before if key.endswith(".summary")}


@pytest.mark.slow
@pytest.mark.parametrize("smallest", [1, SMALLEST_PART], ids=["large", "small"])
def test_copies_of_data_files_are_renewed_too(backend, instance, monkeypatch, smallest):
    """Also those that the newest snapshot does not have."""
    monkeypatch.setattr("polynya.virtual_files.adapted_data_files.SMALLEST_PART", smallest)
    table = f"t{next(NUMBERS)}"
    backend.con.execute(f"CREATE TABLE {table}(i INTEGER, s VARCHAR)")
    backend.con.execute(CHANGES[1].format(t=table))
    backend.con.execute(f"ALTER TABLE {table} ADD COLUMN later INTEGER DEFAULT 42")
    first = instance(**COPIES).catalog.load_table(("main",), table).body["metadata"]
    uuid = first["table-uuid"]
    before = {key: at for key, at in objects(backend, uuid).items() if "/data-file-" in key}
    etags = {key: backend.s3.head_object(Bucket=BUCKET, Key=key)["ETag"] for key in before}
    time.sleep(1.1)  # S3 has timestamps in seconds
    instance((DAYS - 1) * SECONDS_PER_DAY, **COPIES).catalog.load_table(("main",), table)
    assert before and before.items() <= objects(backend, uuid).items()
    backend.con.execute(f"DELETE FROM {table}")
    instance((DAYS + 1) * SECONDS_PER_DAY, **COPIES).catalog.load_table(("main",), table)
    after = objects(backend, uuid)
    assert all(after[key] > before[key] for key in before)
    assert etags == {k: backend.s3.head_object(Bucket=BUCKET, Key=k)["ETag"] for k in before}
    # Nobody renews what no listed snapshot has.
    only_newest = {**COPIES, "SNAPSHOT_LIMIT": "1"}
    time.sleep(1.1)
    instance((DAYS + 1) * SECONDS_PER_DAY, **only_newest).catalog.load_table(("main",), table)
    assert all(objects(backend, uuid)[key] == after[key] for key in before)


def test_a_load_without_losses_sends_one_list_request(backend, table, instance):
    one = instance()
    snapshots = one.catalog.load_table(("main",), table).body["metadata"]["snapshots"]
    requests: list[str] = []
    events = backend.s3.meta.events
    events.register("before-call", record := lambda model, **_: requests.append(model.name))
    try:
        one.catalog.load_table(("main",), table)
        warm, requests[:] = requests[:], []
        instance().catalog.load_table(("main",), table)
    finally:
        events.unregister("before-call", record)
    assert warm == ["ListObjectsV2"]
    # Lists, and manifests of rows and of deletes, one of them as its own snapshot lists it and as
    # later ones do; those of data refer to no virtual file.
    leading = len(snapshots) + 3
    assert sorted(requests) == ["GetObject"] * leading + ["ListObjectsV2"]


def test_a_table_that_is_loaded_again_at_once_is_not_listed_again(
    backend, table, instance, monkeypatch
):
    one = instance()
    one.catalog.load_table(("main",), table)
    one.catalog.load_table(("main",), table)
    pages: list[str] = []
    page = BucketStore._page
    monkeypatch.setattr(
        BucketStore, "_page", lambda self, *keys: pages.append(keys) or page(self, *keys)
    )
    with monkeypatch.context() as patch:
        patch.setattr("polynya.virtual_files.bucket_files.LOADED_SECONDS", 60)
        for _ in range(3):
            one.catalog.load_table(("main",), table)
    assert len(pages) == 0
    one.catalog.load_table(("main",), table)
    assert len(pages) == 1


def test_the_list_that_another_instance_has_put_is_read_meanwhile(
    backend, table, instance, monkeypatch
):
    instance().catalog.load_table(("main",), table)
    get, page, is_read = BucketStore.get, BucketStore._page, Event()

    def read(self, key):
        is_read.set()
        return get(self, key)

    def listed(self, folder, first):
        assert is_read.wait(30)
        return page(self, folder, first)

    monkeypatch.setattr(BucketStore, "get", read)
    monkeypatch.setattr(BucketStore, "_page", listed)
    instance().catalog.load_table(("main",), table)


def test_a_missing_right_to_list_the_bucket_is_named(backend, table, instance):
    one = instance()

    def refuse(response_dict, **_) -> None:
        response_dict["status_code"] = 403

    events = backend.s3.meta.events
    events.register("before-parse.s3.ListObjectsV2", refuse)
    try:
        with pytest.raises(Misconfigured, match="s3:ListBucket"):
            one.catalog.load_table(("main",), table)
    finally:
        events.unregister("before-parse.s3.ListObjectsV2", refuse)
