"""What a commit asks the bucket of `materialize`, and what it finds out that way."""

from contextlib import closing
from copy import deepcopy

import boto3
import pyarrow as pa
import pytest
from polynya.storage.bucket_store import BucketStore, DeliveryBucket
from polynya.virtual_files import bucket_files

from tests.support.servers.in_process import bridge
from tests.support.writes.writable import EMPTY, client_of, judging, set_up_writes

DATA = pa.table({"id": pa.array(range(10), pa.int64())})


@pytest.fixture(scope="module")
def served(lake, moto):
    made = set_up_writes(lake.write("commits_in_the_bucket", EMPTY))
    with bridge(made, moto, writes=True) as bridged:
        yield made, bridged


@pytest.fixture
def table(served, request):
    """A table with three commits of a client, which holds it as the last one has left it."""
    _, bridged = served
    with closing(client_of(bridged)) as catalog:
        name = f"main.{request.node.originalname}"
        if catalog.table_exists(name):
            catalog.drop_table(name)
        created = catalog.create_table(name, DATA.schema)
        for _ in range(3):
            created.append(DATA)
        yield created


@pytest.fixture
def asked(monkeypatch):
    """The methods of the bucket that were called, in order."""
    names = []
    for name in ("get", "put", "_page"):
        method = getattr(BucketStore, name)

        def recorded(self, *arguments, name=name, method=method):
            names.append(name)
            return method(self, *arguments)

        monkeypatch.setattr(BucketStore, name, recorded)
    return names


def objects(bridged, table) -> dict[str, str]:
    """The keys of the virtual files of a table, with the ETags of their bytes."""
    bucket, _, prefix = (
        table.metadata_location.removeprefix("s3://").rpartition("/")[0].partition("/")
    )
    s3 = boto3.client("s3", endpoint_url=bridged.s3_endpoint)
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
    return {item["Key"]: item["ETag"] for page in pages for item in page.get("Contents", ())}


def remove(moto, table, keys) -> None:
    s3 = boto3.client("s3", endpoint_url=moto)
    bucket = table.metadata_location.removeprefix("s3://").partition("/")[0]
    for key in keys:
        s3.delete_object(Bucket=bucket, Key=key)


def test_the_next_commit_puts_its_files_and_asks_nothing(table, asked):
    table.append(DATA)
    # A manifest, its summary, the list and the document.
    assert asked == ["put"] * 4
    assert table.scan().to_arrow().num_rows == 4 * len(DATA)


def test_a_commit_that_is_late_finds_where_it_began(served, table):
    """PyIceberg and Java look for the snapshot at which a commit began, before they try again."""
    _, bridged = served
    with closing(client_of(bridged)) as other:
        late = other.load_table(table.name()).transaction()
        late.append(DATA)
        for _ in range(25):
            table.append(DATA)
        late.commit_transaction()
    assert table.refresh().scan().to_arrow().num_rows == 29 * len(DATA)
    assert len(table.metadata.snapshots) == 29


def test_a_commit_after_a_minute_lists_the_bucket(table, asked, monkeypatch):
    monkeypatch.setattr(bucket_files, "COMMITTED_SECONDS", 0)
    table.append(DATA)
    assert "_page" in asked


def test_an_instance_that_has_not_seen_the_newest_files_lists_the_bucket(
    served, table, asked, moto, monkeypatch
):
    lake, _ = served
    listings = []
    recent = DeliveryBucket.recent_listing
    with monkeypatch.context() as patch:
        patch.setattr(
            DeliveryBucket,
            "recent_listing",
            lambda *arguments: listings.append(deepcopy(recent(*arguments))) or listings[-1],
        )
        table.append(DATA)
    with judging(lake, moto) as judge:
        judge.query(f"INSERT INTO lake.{'.'.join(table.name())} VALUES (77)")
    table.refresh()
    # As if another instance had answered since.
    monkeypatch.setattr(DeliveryBucket, "recent_listing", lambda *arguments: listings[0])
    asked.clear()
    table.append(DATA)
    assert asked.count("_page") == 1
    assert asked.count("put") == 4
    assert table.scan().to_arrow().num_rows == 5 * len(DATA) + 1


def test_what_a_commit_did_not_look_for_is_back_after_the_next_load(served, table, asked, moto):
    _, bridged = served
    # The client itself reads the newest list.
    newest = table.current_snapshot().manifest_list
    gone = {k: etag for k, etag in objects(bridged, table).items() if not newest.endswith(k)}
    remove(moto, table, gone)
    table.append(DATA)
    assert "_page" not in asked
    remaining = objects(bridged, table)
    assert not remaining.keys() & gone.keys()
    table.refresh()
    lists_and_manifests = {key: etag for key, etag in gone.items() if "metadata.json" not in key}
    assert lists_and_manifests.items() <= objects(bridged, table).items()
    assert table.scan().to_arrow().num_rows == 4 * len(DATA)
