"""Clients upload below the paths of writers only, and change nothing else."""

from contextlib import contextmanager
from dataclasses import replace

import pytest
import urllib3
from botocore.exceptions import ClientError
from polynya.runtime.errors import ServiceUnavailable

from tests.support.writes.uploads import (
    BUCKET,
    OF_TABLE,
    PATHS,
    SMALL,
    STAGING,
    UUID,
    client,
    stand_in,
)

PERMITTED = [
    f"lake/main/orders/{UUID}/a.parquet",
    f"lake/main/orders/{UUID}/d=1/e=2/a.parquet",
    f"lake/{UUID}/{UUID}/a.parquet",
    f"lake/main/orders/{UUID}/",
    f"{STAGING}/{UUID}/m0.avro",
    f"{STAGING}/snap.avro",
]
OF_CLICKHOUSE = f"lake/polynya/{UUID}/metadata/snap-1-2.avro"
"""Permitted where the virtual files are in the bucket."""
REFUSED = [
    "lake/main/orders/a.parquet",
    f"lake/main/orders/{UUID}",
    f"lake/main/orders/{UUID.upper()}/a.parquet",
    f"lake/main/orders/x{UUID}/a.parquet",
    f"other/main/orders/{UUID}/a.parquet",
    f"lakes/main/orders/{UUID}/a.parquet",
    f"{UUID}/a.parquet",
    f"lake/polynya/{UUID}/list.avro",
    f"lake/polynya/{UUID}/g3/list-2-0123456789abcdef0123.avro",
    f"lake/polynya/{UUID}/metadata/list.metadata.json",
    f"lake/polynya/{UUID}/metadata/x/list.avro",
    f"lake/main/orders/{UUID}/../customers/a.parquet",
    f"lake/main/orders/{UUID}/./a.parquet",
    f"{STAGING}/../main/orders/a.parquet",
    f"{STAGING}/",
    STAGING,
]


@pytest.mark.parametrize("key", [*PERMITTED, OF_CLICKHOUSE])
def test_a_key_below_the_paths_of_writers_is_written(uploads, key):
    client(uploads.uri).put_object(Bucket=BUCKET, Key=key, Body=SMALL)
    assert uploads.content(key) == SMALL


@pytest.mark.parametrize("key", REFUSED)
def test_no_other_key_is_written(uploads, key):
    proxied = client(uploads.uri)
    for operation in (proxied.put_object, proxied.create_multipart_upload):
        with pytest.raises(ClientError, match="AccessDenied"):
            operation(Bucket=BUCKET, Key=key)
    with pytest.raises(ClientError, match="NoSuchKey"):
        uploads.content(key)


def test_no_other_bucket_is_written(uploads):
    uploads.real.create_bucket(Bucket="other-uploads")
    with pytest.raises(ClientError, match="AccessDenied"):
        client(uploads.uri).put_object(Bucket="other-uploads", Key=f"{OF_TABLE}/a", Body=SMALL)


# Operations

KEY = f"{OF_TABLE}/there"
OPERATIONS = [
    ("delete_object", {"Key": KEY}),
    ("delete_objects", {"Delete": {"Objects": [{"Key": KEY}]}}),
    ("copy_object", {"Key": KEY, "CopySource": f"{BUCKET}/{KEY}"}),
    ("put_object_acl", {"Key": KEY, "ACL": "public-read"}),
    ("put_object_tagging", {"Key": KEY, "Tagging": {"TagSet": []}}),
    ("restore_object", {"Key": KEY}),
    ("delete_object_tagging", {"Key": KEY}),
    ("delete_bucket", {}),
    ("put_bucket_versioning", {"VersioningConfiguration": {"Status": "Enabled"}}),
]


@pytest.mark.parametrize(("operation", "arguments"), OPERATIONS)
def test_an_operation_that_is_no_upload_is_refused(uploads, operation, arguments):
    uploads.real.put_object(Bucket=BUCKET, Key=KEY, Body=SMALL)
    with pytest.raises(ClientError, match="AccessDenied") as refused:
        getattr(client(uploads.uri), operation)(Bucket=BUCKET, **arguments)
    assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 403
    assert uploads.content(KEY) == SMALL


# Through an access point

ALIAS = "lake--ol-s3"
BESIDE = f"lake/polynya/{UUID}/g1"
THROUGH = replace(PATHS, virtual=f"s3://{ALIAS}/lake/polynya/")
PASSED_ON = [f"{BESIDE}/{UUID}-deletes.parquet", f"{BESIDE}/{UUID}-deletes.puffin"]
NOT_PASSED_ON = [
    KEY,
    f"{BESIDE}/rows-1-2-abc.parquet",
    f"{BESIDE}/deletes-1-2-abc.parquet",
    f"{BESIDE}/x-deletes.parquet",
    f"{BESIDE}/{UUID}-delete.parquet",
    f"{BESIDE}/{UUID}-deletes.parquet.avro",
    f"{BESIDE}/../g1/{UUID}-deletes.parquet",
    f"{BESIDE}/x/{UUID}-deletes.parquet",
    f"lake/polynya/{UUID}/{UUID}-deletes.parquet",
    f"lake/polynya/other/g1/{UUID}-deletes.parquet",
    f"lake/polynyas/{UUID}/g1/{UUID}-deletes.parquet",
    f"lake/main/orders/{UUID}-deletes.parquet",
    f"{STAGING}/{UUID}/m0.avro",
]


@pytest.fixture(scope="module")
def through(moto):
    with stand_in(moto, THROUGH, alias=ALIAS) as made:
        yield client(made.s3_uri)


@pytest.mark.parametrize("key", PASSED_ON)
def test_an_access_point_passes_delete_files_of_duckdb_on(uploads, through, key):
    through.put_object(Bucket=ALIAS, Key=key, Body=SMALL)
    assert uploads.content(key) == SMALL
    place = {"Bucket": ALIAS, "Key": key}
    upload = place | {"UploadId": through.create_multipart_upload(**place)["UploadId"]}
    part = through.upload_part(**upload, PartNumber=1, Body=SMALL * 2)
    parts = [{"PartNumber": 1, "ETag": part["ETag"]}]
    through.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
    assert uploads.content(key) == SMALL * 2


@pytest.mark.parametrize("key", NOT_PASSED_ON)
def test_an_access_point_passes_no_other_key_on(uploads, through, key):
    for operation in (through.put_object, through.create_multipart_upload):
        with pytest.raises(ClientError, match="AccessDenied"):
            operation(Bucket=ALIAS, Key=key)


@pytest.mark.parametrize("paths", [None, PATHS], ids=["writes off", "writes elsewhere"])
def test_nothing_else_is_put_through_an_access_point(moto, paths):
    with stand_in(moto, paths, alias=ALIAS) as made:
        for key in (KEY, *PASSED_ON):
            with pytest.raises(ClientError, match="AccessDenied"):
                client(made.s3_uri).put_object(Bucket=ALIAS, Key=key, Body=SMALL)


# Removals

COMMITTED = f"{OF_TABLE}/committed.parquet"
REMOVED = [
    *((BUCKET, key) for key in PERMITTED),
    (BUCKET, f"{OF_TABLE}/a b&c+d'e\"ü.parquet"),
    *((ALIAS, key) for key in PASSED_ON),
]
NOT_REMOVED = [
    # Behind an access point there are no virtual files.
    *((BUCKET, key) for key in REFUSED if key[-1] != "/" and key != STAGING and "list" not in key),
    *((ALIAS, key) for key in NOT_PASSED_ON),
    (BUCKET, COMMITTED),
    (BUCKET, f"{OF_TABLE}/ducklake-1.parquet"),
    (BUCKET, f"{OF_TABLE}/polynya-a.parquet"),
]


@contextmanager
def uncommitted(locations):
    """All but COMMITTED; tests/e2e/writes/test_plain_clients.py has a catalog."""
    assert all(location.startswith(f"s3://{BUCKET}/") for location in locations)
    yield {*locations} - {f"s3://{BUCKET}/{COMMITTED}"}


@pytest.fixture(scope="module")
def removing(moto):
    with stand_in(moto, THROUGH, ALIAS, uncommitted) as made:
        yield client(made.s3_uri)


@pytest.mark.parametrize(("bucket", "key"), REMOVED)
def test_an_upload_that_is_not_committed_is_removed(uploads, removing, bucket, key):
    for remove in (
        lambda: removing.delete_object(Bucket=bucket, Key=key),
        lambda: removing.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key}]}),
    ):
        uploads.real.put_object(Bucket=BUCKET, Key=key, Body=SMALL)
        remove()
        with pytest.raises(ClientError, match="NoSuchKey"):
            uploads.content(key)
        remove()  # what is gone already is no error


def test_a_key_that_postgresql_cannot_be_asked_about_is_refused(removing):
    for operation in (removing.put_object, removing.delete_object):
        with pytest.raises(ClientError, match="AccessDenied"):
            operation(Bucket=BUCKET, Key=f"lake/main/orders/{UUID}/a.parquet\0")


@pytest.mark.parametrize(("bucket", "key"), NOT_REMOVED)
def test_nothing_else_is_removed(uploads, removing, bucket, key):
    uploads.real.put_object(Bucket=BUCKET, Key=key, Body=SMALL)
    with pytest.raises(ClientError, match="AccessDenied"):
        removing.delete_object(Bucket=bucket, Key=key)
    answer = removing.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key}]})
    assert [(one["Key"], one["Code"]) for one in answer["Errors"]] == [(key, "AccessDenied")]
    assert uploads.content(key) == SMALL


OBJECT = f"<Object><Key>{KEY}</Key></Object>"
BODIES = [
    "",
    "<Delete>",
    "<Delete/>",
    f"<Delete>{OBJECT * 1001}</Delete>",
    "<Delete><Object/></Delete>",
    f"<Delete><Object><Key>{KEY}</Key><VersionId>1</VersionId></Object></Delete>",
    f'<!DOCTYPE Delete [<!ENTITY k "{KEY}">]><Delete><Object><Key>&k;</Key></Object></Delete>',
    f"<Delete>{' ' * 2 * 1024 * 1024}{OBJECT}</Delete>",
]


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_a_list_of_removals_that_s3_does_not_take_removes_nothing(uploads, removing, body):
    uploads.real.put_object(Bucket=BUCKET, Key=KEY, Body=SMALL)
    url = f"{removing.meta.endpoint_url}/{BUCKET}?delete"
    answer = urllib3.request("POST", url, body=body.encode(), retries=False)
    assert (answer.status, b"MalformedXML" in answer.data) == (400, True)
    assert uploads.content(KEY) == SMALL


def test_no_version_is_removed(uploads, removing):
    uploads.real.put_object(Bucket=BUCKET, Key=KEY, Body=SMALL)
    with pytest.raises(ClientError, match="AccessDenied"):
        removing.delete_object(Bucket=BUCKET, Key=KEY, VersionId="1")
    assert uploads.content(KEY) == SMALL


def test_without_the_catalog_nothing_is_removed(uploads, moto):
    @contextmanager
    def away(locations):
        raise ServiceUnavailable("the catalog database does not answer; try again")
        yield

    uploads.real.put_object(Bucket=BUCKET, Key=KEY, Body=SMALL)
    with stand_in(moto, PATHS, None, away) as made, pytest.raises(ClientError, match="SlowDown"):
        client(made.s3_uri).delete_object(Bucket=BUCKET, Key=KEY)
    assert uploads.content(KEY) == SMALL


# What an upload replaces


@pytest.mark.parametrize(("bucket", "key"), REMOVED)
def test_an_upload_replaces_what_is_not_committed(uploads, removing, bucket, key):
    """A client repeats an upload whose answer was lost."""
    for body in (SMALL, SMALL * 2):
        removing.put_object(Bucket=bucket, Key=key, Body=body)
        assert uploads.content(key) == body


def test_an_upload_replaces_nothing_that_is_committed(uploads, removing):
    uploads.real.put_object(Bucket=BUCKET, Key=COMMITTED, Body=SMALL)
    place = {"Bucket": BUCKET, "Key": COMMITTED}
    with pytest.raises(ClientError, match=r"AccessDenied.*no client may replace it"):
        removing.put_object(**place, Body=SMALL * 2)
    upload = place | {"UploadId": removing.create_multipart_upload(**place)["UploadId"]}
    part = removing.upload_part(**upload, PartNumber=1, Body=SMALL * 2)
    parts = [{"PartNumber": 1, "ETag": part["ETag"]}]
    with pytest.raises(ClientError, match=r"AccessDenied.*no client may replace it"):
        removing.complete_multipart_upload(**upload, MultipartUpload={"Parts": parts})
    assert uploads.content(COMMITTED) == SMALL


def test_without_the_catalog_nothing_is_replaced(uploads, moto):
    @contextmanager
    def away(locations):
        raise ServiceUnavailable("the catalog database does not answer; try again")
        yield

    uploads.real.put_object(Bucket=BUCKET, Key=KEY, Body=SMALL)
    with stand_in(moto, PATHS, None, away) as made:
        through = client(made.s3_uri)
        with pytest.raises(ClientError, match="SlowDown"):
            through.put_object(Bucket=BUCKET, Key=KEY, Body=SMALL * 2)
        through.put_object(Bucket=BUCKET, Key=f"{KEY}-new", Body=SMALL)  # replaces nothing
    assert uploads.content(KEY) == SMALL
