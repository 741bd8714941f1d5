"""The stores of generated files, tested with moto's DynamoDB and S3 over HTTP."""

import hashlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from types import SimpleNamespace

import boto3
import botocore.config
import botocore.exceptions
import pytest
from polynya.runtime import budget
from polynya.runtime.errors import ServiceUnavailable
from polynya.runtime.prefetch import map_in_parallel
from polynya.storage.bucket_store import BucketStore, DeliveryBucket
from polynya.storage.cache_store import ITEM_LIMIT, LEASE_SECONDS, CacheStore
from polynya.storage.file_cache import FileCache, MemoryCache

TABLE, BUCKET = "cache", "store-tests"
TTL = 1000
LARGE = bytes(range(256)) * (ITEM_LIMIT // 256 + 1)


class Clock:
    def __init__(self) -> None:
        self.now = 1_700_000_000.5

    def __call__(self) -> float:
        return self.now


@pytest.fixture(scope="module")
def aws(moto):
    """Clients, a table with the key of template.yaml, and a bucket."""
    clients = SimpleNamespace(
        dynamodb=boto3.client("dynamodb", endpoint_url=moto),
        s3=boto3.client("s3", endpoint_url=moto),
    )
    clients.s3.create_bucket(Bucket=BUCKET)
    clients.dynamodb.create_table(
        TableName=TABLE,
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "pk", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    yield clients
    clients.dynamodb.close()
    clients.s3.close()


@pytest.fixture(autouse=True)
def emptied(request):
    """The table and the bucket, empty for each test."""
    if "aws" not in request.fixturenames:
        return
    aws = request.getfixturevalue("aws")
    for item in aws.dynamodb.scan(TableName=TABLE)["Items"]:
        aws.dynamodb.delete_item(TableName=TABLE, Key={"pk": item["pk"]})
    for key in keys(aws):
        aws.s3.delete_object(Bucket=BUCKET, Key=key)


def keys(aws) -> list[str]:
    return [found["Key"] for found in aws.s3.list_objects_v2(Bucket=BUCKET).get("Contents", [])]


def item(aws, key: str) -> dict | None:
    return aws.dynamodb.get_item(TableName=TABLE, Key={"pk": {"S": key}}).get("Item")


def cache(aws, *, bucket=BUCKET, clock=None) -> CacheStore:
    return CacheStore(
        table=TABLE,
        bucket=bucket,
        ttl_seconds=TTL,
        dynamodb=lambda: aws.dynamodb,
        s3=lambda: aws.s3,
        clock=clock or Clock(),
    )


def bucket_store(aws) -> BucketStore:
    return BucketStore(BUCKET, lambda: aws.s3)


BODIES = [b"", b"x", bytes(ITEM_LIMIT), bytes(ITEM_LIMIT + 1), LARGE]


@pytest.mark.parametrize("make", [cache, bucket_store])
@pytest.mark.parametrize("body", BODIES, ids=len)
def test_get_returns_what_put_stored(make, body, aws):
    store = make(aws)
    assert store.get("k/ü.avro") is None
    assert store.put("k/ü.avro", body) == body
    assert make(aws).get("k/ü.avro") == body


@pytest.mark.parametrize("make", [cache, bucket_store])
@pytest.mark.parametrize(
    ("first", "second"), [(b"first", b"second"), (LARGE, b"small"), (b"small", LARGE)]
)
def test_the_first_copy_stays(make, first, second, aws):
    assert make(aws).put("k", first) == first
    assert make(aws).put("k", second) == first
    assert make(aws).get("k") == first


# ---------------------------------------------------------------- DynamoDB and S3


@pytest.mark.parametrize(("size", "in_s3"), [(ITEM_LIMIT, False), (ITEM_LIMIT + 1, True)])
def test_large_bodies_are_in_s3_and_the_item_points_to_them(size, in_s3, aws):
    cache(aws).put("k", bytes(size))
    digest = hashlib.sha256(bytes(size)).hexdigest()
    found = item(aws, "k")
    assert found["sha256"] == {"S": digest}
    assert keys(aws) == ([f"k/{digest}"] if in_s3 else [])
    assert found.keys() == {"pk", "sha256", "ttl", "s3" if in_s3 else "body"}


def test_large_bodies_are_not_stored_without_a_bucket(aws):
    store = cache(aws, bucket="")
    assert store.put("k", LARGE) == LARGE
    assert store.get("k") is None and item(aws, "k") is None


def test_item_expires_at_its_ttl_even_if_dynamodb_still_returns_it(aws):
    clock = Clock()
    store = cache(aws, clock=clock)
    store.put("k", b"x")
    assert item(aws, "k")["ttl"] == {"N": str(1_700_000_000 + TTL)}
    clock.now = 1_700_000_000 + TTL - 1
    assert store.get("k") == b"x"
    clock.now = 1_700_000_000 + TTL
    assert store.get("k") is None
    assert item(aws, "k") is not None


def test_expired_item_is_replaced(aws):
    clock = Clock()
    store = cache(aws, clock=clock)
    store.put("k", b"old")
    clock.now += TTL
    assert store.put("k", b"new") == b"new"
    assert store.get("k") == b"new"


@pytest.mark.parametrize("body", [b"right", LARGE], ids=len)
def test_body_that_does_not_match_its_checksum_is_dropped(body, aws):
    store = cache(aws)
    store.put("k", body)
    broken = item(aws, "k") | {"sha256": {"S": "0" * 64}}
    aws.dynamodb.put_item(TableName=TABLE, Item=broken)
    assert store.get("k") is None
    assert item(aws, "k") is None
    assert store.put("k", body) == body
    assert store.get("k") == body


def test_object_that_was_changed_in_s3_is_not_served(aws):
    store = cache(aws)
    store.put("k", LARGE)
    aws.s3.put_object(Bucket=BUCKET, Key=keys(aws)[0], Body=b"other")
    assert store.get("k") is None
    store.put("k", LARGE)
    assert store.get("k") == LARGE


def test_broken_item_that_was_replaced_meanwhile_stays(aws):
    """Between the read and the delete, another instance has stored the correct one."""
    store = cache(aws)
    store.put("k", b"right")
    right = item(aws, "k")
    broken = right | {"body": {"B": b"wrong"}, "sha256": {"S": "0" * 64}}
    aws.dynamodb.put_item(TableName=TABLE, Item=broken)

    class Replaced:
        exceptions = aws.dynamodb.exceptions

        def get_item(self, **arguments):
            answer = aws.dynamodb.get_item(**arguments)
            aws.dynamodb.put_item(TableName=TABLE, Item=right)
            return answer

        def __getattr__(self, name):
            return getattr(aws.dynamodb, name)

    assert cache(SimpleNamespace(dynamodb=Replaced(), s3=aws.s3)).get("k") is None
    assert store.get("k") == b"right"


def test_pointer_to_a_missing_object_is_a_miss_and_is_replaced(aws):
    """A lifecycle rule of the bucket may delete an object before the table's TTL."""
    store = cache(aws)
    store.put("k", LARGE)
    aws.s3.delete_object(Bucket=BUCKET, Key=keys(aws)[0])
    assert store.get("k") is None
    assert store.put("k", LARGE) == LARGE
    assert store.get("k") == LARGE


# ---------------------------------------------------------------- real objects


def test_object_in_the_bucket_has_exactly_the_given_key(aws):
    bucket_store(aws).put("polynya/t/list.avro", b"x")
    assert keys(aws) == ["polynya/t/list.avro"]


def test_missing_bucket_is_a_failure_not_a_first_copy(aws):
    store = BucketStore("no-such-bucket-here", lambda: aws.s3)
    with pytest.raises(botocore.exceptions.ClientError):
        store.put("k", b"x")


def test_ages_contains_only_existing_objects(aws):
    store = BucketStore(BUCKET, lambda: aws.s3, lambda: time.time() + 1000)
    assert store.ages([]) == {} and store.ages(["p/a", "p/b"]) == {}
    for key in ("p/a", "p/a.summary", "p/c", "q/a", "p/ü"):
        store.put(key, b"x")
    ages = store.ages(["p/c", "p/b", "p/a", "p/c", "p/ü", "p", "p/d/e"])
    assert ages.keys() == {"p/a", "p/c", "p/ü"}
    assert all(995 < age < 1100 for age in ages.values())


def test_lists_skip_keys_that_were_not_requested(aws):
    """A page of S3 has a thousand keys; in this test it has 10."""
    store = bucket_store(aws)
    names = [f"p/{number:02}" for number in range(42)]
    for name in names:
        store.put(name, b"")
    asked: list[str] = []

    def shorter(params, **_) -> None:
        asked.append(params["StartAfter"])
        params["MaxKeys"] = 10

    events = aws.s3.meta.events
    events.register("provide-client-params.s3.ListObjectsV2", shorter)
    try:
        assert store.ages(names).keys() == {*names}
        every, asked[:] = len(asked), []
        some = ["p/00", "p/00.no", "p/09", "p/30", "p/30.no", "p/39", "p/40", "p/zz"]
        assert store.ages(some).keys() == {*some} & {*names}
    finally:
        events.unregister("provide-client-params.s3.ListObjectsV2", shorter)
    assert (every, len(asked)) == (5, 3)


def test_a_renewed_object_is_young_and_has_the_same_bytes(aws):
    store = bucket_store(aws)
    store.put("k", LARGE)
    before = aws.s3.head_object(Bucket=BUCKET, Key="k")["LastModified"]
    time.sleep(1.1)  # S3's times have a resolution of a second
    assert store.renew("k")
    assert aws.s3.head_object(Bucket=BUCKET, Key="k")["LastModified"] > before
    assert store.get("k") == LARGE
    assert not store.renew("gone")


def test_an_object_is_renewed_once_in_a_listing_that_is_kept(aws):
    store = BucketStore(BUCKET, lambda: aws.s3, lambda: time.time() + 1000)
    bucket = DeliveryBucket(store)
    store.put("p/a", b"x")
    with bucket.one_listing("p/"):
        assert bucket.ages(["p/a", "p/gone"])["p/a"] > 900
        assert bucket.renew(["p/a", "p/gone"]) == ["p/gone"]
    with bucket.one_listing("p/", bucket.recent_listing("p/", 60)):
        assert bucket.ages(["p/a", "p/gone"]) == {"p/a": 0}


# ---------------------------------------------------------------- in this process


def test_recent_keeps_the_last_used_bodies_within_its_limit():
    recent = MemoryCache(limit=10)
    for key in "abc":
        recent.put(key, key.encode() * 3)
    assert recent.get("a") == b"aaa"  # used again, so `b` is now the oldest
    recent.put("d", b"dddd")
    assert [recent.get(key) for key in "abcd"] == [b"aaa", None, b"ccc", b"dddd"]


def test_recent_drops_as_many_bodies_as_necessary():
    recent = MemoryCache(limit=10)
    for key in "abcde":
        recent.put(key, b"xx")
    recent.put("large", bytes(9))
    assert [recent.get(key) for key in "abcde"] == [None] * 5
    assert recent.get("large") == bytes(9)


@pytest.mark.parametrize(("size", "kept"), [(10, True), (11, False)])
def test_recent_keeps_no_body_larger_than_its_limit(size, kept):
    recent = MemoryCache(limit=10)
    recent.put("a", b"a")
    assert recent.put("k", bytes(size)) == bytes(size)
    assert (recent.get("k") is not None) == kept
    assert (recent.get("a") is not None) != kept


def test_recent_keeps_the_first_copy():
    recent = MemoryCache(limit=10)
    assert recent.put("k", b"first") == b"first"
    assert recent.put("k", b"second") == b"first"
    assert recent.get("k") == b"first"


def test_recent_never_holds_more_than_its_limit():
    recent = MemoryCache(limit=100)
    for number in range(1000):
        recent.put(str(number % 37), bytes(number % 37))
        held = sum(len(recent.get(str(n)) or b"") for n in range(37))
        assert held <= 100


# ---------------------------------------------------------------- a store that fails


class Broken:
    """A store whose service is unavailable: every call raises."""

    def __init__(self) -> None:
        self.calls = 0

    def get(self, key: str) -> bytes | None:
        self.calls += 1
        raise OSError("away")

    def put(self, key: str, body: bytes) -> bytes:
        self.calls += 1
        raise OSError("away")

    def lease(self, key: str) -> bool:
        self.calls += 1
        raise OSError("away")

    def release(self, key: str) -> None:
        self.calls += 1
        raise OSError("away")


@pytest.fixture
def logged(monkeypatch):
    """The keys of the failures in the log."""
    keys = []
    for module in ("file_cache", "bucket_store"):
        monkeypatch.setattr(
            f"polynya.storage.{module}.logger.error", lambda text, key, **_: keys.append(key)
        )
    return keys


def test_failing_store_is_logged_and_has_no_other_effect(logged):
    kept = FileCache(Broken(), MemoryCache())
    assert kept.get("k") is None
    assert kept.put("k", b"x") == b"x"
    assert logged == ["k", "k"]
    assert kept.get("k") == b"x"  # from this process


def test_failing_store_that_clients_read_is_an_error(logged):
    kept = FileCache(Broken(), MemoryCache(), bucket=DeliveryBucket(Broken()))
    assert kept.get("k") is None
    with pytest.raises(ServiceUnavailable):
        kept.put("k", b"x")
    assert kept.get("k") is None  # and nothing is recorded as stored
    assert logged == ["k", "k", "k"]


@pytest.mark.parametrize("kind", ["cache", "bucket"])
def test_endpoint_that_does_not_answer_is_only_logged(kind, logged, aws):
    nowhere = botocore.config.Config(connect_timeout=1, retries={"total_max_attempts": 1})
    clients = SimpleNamespace(
        dynamodb=boto3.client("dynamodb", endpoint_url="http://127.0.0.1:9", config=nowhere),
        s3=boto3.client("s3", endpoint_url="http://127.0.0.1:9", config=nowhere),
    )
    kept = FileCache(cache(clients) if kind == "cache" else bucket_store(clients), MemoryCache())
    assert kept.get("k") is None
    assert kept.put("k", LARGE) == LARGE
    assert logged == ["k", "k"]


def test_missing_table_is_only_logged(logged, aws):
    kept = FileCache(replace(cache(aws), table="no-such-table"), MemoryCache())
    assert kept.get("k") is None and kept.put("k", b"x") == b"x"
    assert logged == ["k", "k"]


def test_a_stored_body_takes_precedence_over_a_new_one(aws):
    cache(aws).put("k", b"first")
    kept = FileCache(cache(aws), MemoryCache())
    assert kept.put("k", b"second") == b"first"
    assert kept.get("k") == b"first"


def test_store_is_called_once_for_a_body_that_is_read_often(logged):
    broken = Broken()
    kept = FileCache(broken, MemoryCache())
    kept.put("k", b"x")
    assert [kept.get("k") for _ in range(5)] == [b"x"] * 5
    assert broken.calls == 1


def test_without_a_store_only_this_process_caches():
    recent = MemoryCache()
    kept = FileCache(None, recent)
    assert kept.get("k") is None and kept.put("k", b"x") == b"x" and kept.get("k") == b"x"


class Slow(Broken):
    """It raises after a delay."""

    def get(self, key: str, body: bytes = b"") -> bytes | None:
        time.sleep(0.1)
        return super().get(key)

    put = lease = release = get


def test_store_that_times_out_is_not_called_for_a_while(logged, monkeypatch):
    monkeypatch.setattr("polynya.runtime.budget.SLOW_SECONDS", 0.1)
    monkeypatch.setattr("polynya.runtime.budget.OPEN_SECONDS", 0.5)
    slow = Slow()
    kept = FileCache(slow, MemoryCache(0), leases=slow)
    assert [kept.get_or_build(key, lambda: b"made") for key in "abc"] == [b"made"] * 3
    assert kept.get_many("defg") == [None] * 4
    assert slow.calls == len(logged) == 1
    time.sleep(0.5)
    assert kept.get("h") is None and slow.calls == 2


def test_store_that_fails_immediately_is_called_again(logged):
    broken = Broken()
    kept = FileCache(broken, MemoryCache(0))
    assert kept.get_many("abc") == [None] * 3 and broken.calls == 3


def test_store_that_clients_read_is_always_called(logged, monkeypatch):
    monkeypatch.setattr("polynya.runtime.budget.SLOW_SECONDS", 0.1)
    slow = Slow()
    kept = FileCache(slow, MemoryCache(), bucket=DeliveryBucket(slow))
    for key in "ab":
        with pytest.raises(ServiceUnavailable):
            kept.get_or_build(key, lambda: b"made")
    assert slow.calls == 4


def test_parallel_requests_have_the_budget_of_their_caller():
    with budget.limited(5):
        left = map_in_parallel(lambda _: budget.seconds_left(), range(20))
    assert all(0 < seconds <= 5 for seconds in left)
    assert budget.seconds_left() == float("inf")


# ---------------------------------------------------------------- which instance generates a file


def instance(aws) -> FileCache:
    """The cache of another Lambda instance."""
    store = cache(aws, clock=time.time)
    return FileCache(store, MemoryCache(), leases=store)


def not_called() -> bytes:
    raise AssertionError("the file exists, or another instance generates it")


def test_an_existing_file_is_not_generated(aws):
    cache(aws, clock=time.time).put("k", b"x")
    assert instance(aws).get_or_build("k", not_called) == b"x"
    assert item(aws, "k#lease") is None


def test_one_instance_generates_a_file_and_the_others_wait(aws):
    begun, may_end = threading.Event(), threading.Event()

    def make() -> bytes:
        begun.set()
        assert may_end.wait(10)
        return b"made"

    with ThreadPoolExecutor() as pool:
        first = pool.submit(instance(aws).get_or_build, "k", make)
        assert begun.wait(10)
        others = [pool.submit(instance(aws).get_or_build, "k", not_called) for _ in range(4)]
        time.sleep(0.5)
        assert not any(other.done() for other in others)
        may_end.set()
        assert [future.result(10) for future in (first, *others)] == [b"made"] * 5


def test_failed_writer_delays_others_for_the_rest_of_its_lease(aws, monkeypatch):
    monkeypatch.setattr("polynya.storage.cache_store.LEASE_SECONDS", 0.5)
    began = time.monotonic()
    assert cache(aws, clock=time.time).lease("k")  # it never releases the lease
    assert instance(aws).get_or_build("k", lambda: b"made") == b"made"
    assert time.monotonic() - began >= 0.5


def test_the_wait_for_a_lease_is_limited(aws, monkeypatch):
    monkeypatch.setattr("polynya.storage.file_cache.PATIENCE_SECONDS", 0.5)
    assert cache(aws, clock=time.time).lease("k")
    assert instance(aws).get_or_build("k", lambda: b"made") == b"made"


def test_lease_is_released_if_the_file_cannot_be_generated(aws):
    def fails() -> bytes:
        raise ServiceUnavailable("away")

    with pytest.raises(ServiceUnavailable):
        instance(aws).get_or_build("k", fails)
    assert item(aws, "k#lease") is None
    assert cache(aws).get("k") is None


def test_lease_and_its_item_expire(aws):
    clock = Clock()
    store = cache(aws, clock=clock)
    assert store.lease("k")
    assert not store.lease("k")
    assert store.lease("other")
    assert int(item(aws, "k#lease")["ttl"]["N"]) >= clock.now + LEASE_SECONDS
    clock.now += LEASE_SECONDS
    assert store.lease("k")


@pytest.mark.parametrize("store", [None, Broken()], ids=["none", "broken"])
def test_without_leases_every_instance_generates_the_file(store, logged):
    assert (
        FileCache(store, MemoryCache(), leases=store).get_or_build("k", lambda: b"made") == b"made"
    )
