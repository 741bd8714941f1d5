"""Credentials of writers: what their session policies allow in S3, and what they get instead."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime

import boto3
import pytest
from botocore.stub import ANY, Stubber
from moto.iam.access_control import IAMPolicy, PermissionResult
from polynya.access.table_scope import OtherTables, S3Scope, upload_scopes
from polynya.access.vended_credentials import POLICY_LIMIT, CredentialVending, TableScope
from polynya.ducklake.paths import table_location
from polynya.ducklake.rows.objects import Lake, Layout, Schema, Table
from polynya.mapping.properties import staging_root
from polynya.runtime.errors import Refused
from polynya.runtime.settings import Config
from polynya.storage.aws import Clients

from tests.support.iam import allowed, arn_of, as_list

UUID = "01a1fad5-de06-72d5-96d5-394e01873100"
OTHER = "01a1fad5-de06-72d5-96d5-394e01873101"
READER = "arn:aws:iam::111122223333:role/Vended"
WRITER = "arn:aws:iam::111122223333:role/Writer"
VIRTUAL = f"s3://virtual/polynya/{UUID}"
ENVIRON = {
    "DATABASE_URL": "u",
    "VIRTUAL_BUCKET": "virtual",
    "VENDING_ROLE": READER,
    "WRITES": "yes",
    "WRITER_ROLE": WRITER,
}
DELIVERIES = ["object-lambda", "materialize"]


def vending(delivery: str = "materialize") -> CredentialVending:
    return CredentialVending(Config.from_env(ENVIRON | {"DELIVERY": delivery}))


def writes(
    table_path: str = "orders/",
    data_path: str = "s3://data/lake/",
    staging: str = "",
    tables: Iterable[str] = (),
    files: Iterable[str] = (),
) -> set[S3Scope]:
    """Where clients write a table of the schema `main`, beside these tables and files."""
    root = staging_root(staging, data_path)
    others = OtherTables(tables, [*files, root], "s3://virtual/polynya/")
    lake = Lake("1.0", data_path, False, 7, Layout())
    schema = Schema(0, "main", "main/", True)
    table = Table(1, UUID, 1, None, 0, "orders", table_path, True)
    own = table_location(lake, schema, table)
    return upload_scopes(own, UUID, root, f"s3://virtual/polynya/{UUID}", others)[0]


def policy_of(scope: TableScope) -> str:
    assert not scope.reason and len(scope.policy) <= POLICY_LIMIT
    return scope.policy


def fitted(
    reads: set[S3Scope],
    written: set[S3Scope],
    delivery: str = "materialize",
    deletes: Iterable[S3Scope] = (),
) -> TableScope:
    blank = TableScope(UUID, VIRTUAL, WRITER, "")
    around = OtherTables([], [], "s3://virtual/polynya/")
    return vending(delivery)._fitted(blank, reads, written, set(deletes), around)


# A table in a directory of its own, and one that shares its directory and has a file by its key.
READS = {
    "own": {S3Scope("s3://data/lake/main/orders/", True)},
    "shared": {S3Scope("s3://data/lake/main/orders/ducklake-1.parquet", False)},
}
DATA = f"s3://data/lake/main/orders/{UUID}"
STAGED = f"s3://data/lake/.polynya-staging/{UUID}"

# Where DuckDB puts delete files: see `upload_scopes`.
BEHIND = f"s3://data/polynya/{UUID}"
BESIDE_ROWS = {
    "object-lambda": {S3Scope(f"{BEHIND}/", True)},
    "materialize": {S3Scope(f"{VIRTUAL}/", True)},
}
OWN = {"own": READS["own"], "shared": set()}
# An object behind the access point; the role's own policy names the one.
SUPPORTING = "s3://accesspoint/polynya-data/object/polynya"
OF_DUCKDB = "f47ac10b-58cc-4372-a567-0e02b2c3d479-deletes.parquet"
VECTORS_OF_DUCKDB = OF_DUCKDB.replace(".parquet", ".puffin")

GET, PUT, ABORT = "s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"
DELETE = "s3:DeleteObject"

# (action, object, whether it is permitted: always, or only in a directory of the table's own, or
# only with a delivery)
CASES = [
    (PUT, f"{DATA}/00000-0-abc.parquet", True),
    (PUT, f"{DATA}/day=2026-01-01/00000-0-abc.parquet", True),
    (GET, f"{DATA}/00000-0-abc.parquet", True),
    (ABORT, f"{DATA}/00000-0-abc.parquet", True),
    (PUT, f"{STAGED}/snap-123-1-abc.avro", True),
    (GET, f"{STAGED}/snap-123-1-abc.avro", True),
    (ABORT, f"{STAGED}/snap-123-1-abc.avro", True),
    # The other files of the table.
    (GET, "s3://data/lake/main/orders/ducklake-1.parquet", True),
    (GET, "s3://data/lake/main/orders/ducklake-2.parquet", "own"),
    (PUT, "s3://data/lake/main/orders/ducklake-1.parquet", False),
    (ABORT, "s3://data/lake/main/orders/ducklake-1.parquet", False),
    (PUT, DATA, False),
    (PUT, f"{DATA}x/00000.parquet", False),
    # DuckDB puts a delete file beside the data file; nothing of DuckLake has such a name.
    (PUT, f"s3://data/lake/main/orders/{OF_DUCKDB}", "own"),
    (PUT, f"s3://data/lake/main/orders/day=2026-01-01/{OF_DUCKDB}", "own"),
    (ABORT, f"s3://data/lake/main/orders/{OF_DUCKDB}", "own"),
    (PUT, f"{DATA}/{OF_DUCKDB}", True),
    (PUT, f"s3://data/lake/main/orders/{VECTORS_OF_DUCKDB}", "own"),
    (PUT, f"{VIRTUAL}/g10/{VECTORS_OF_DUCKDB}", "materialize"),
    (PUT, f"s3://data/lake/main/customers/{VECTORS_OF_DUCKDB}", False),
    # Not g1: moto takes the dots of `/../` for any characters.
    (PUT, f"{VIRTUAL}/g10/{OF_DUCKDB}", "materialize"),
    (PUT, f"s3://virtual/polynya/{OTHER}/g10/{OF_DUCKDB}", False),
    (PUT, f"{BEHIND}/g10/{OF_DUCKDB}", "object-lambda"),
    (PUT, f"{BEHIND}/g10/{VECTORS_OF_DUCKDB}", "object-lambda"),
    (PUT, f"{BEHIND}/g10/rows-1-2-abc.parquet", False),
    (PUT, f"s3://data/polynya/{OTHER}/g10/{OF_DUCKDB}", False),
    (PUT, f"s3://data/polynya/{OF_DUCKDB}", False),
    (PUT, f"{SUPPORTING}/{UUID}/g10/{OF_DUCKDB}", "object-lambda"),
    (PUT, f"{SUPPORTING}/{UUID}/g10/{VECTORS_OF_DUCKDB}", "object-lambda"),
    (ABORT, f"{SUPPORTING}/{UUID}/g10/{OF_DUCKDB}", "object-lambda"),
    (PUT, f"{SUPPORTING}/{UUID}/g10/rows-1-2-abc.parquet", False),
    (PUT, f"{SUPPORTING}/{OTHER}/g10/{OF_DUCKDB}", False),
    (DELETE, f"{SUPPORTING}/{UUID}/g10/{OF_DUCKDB}", False),
    (PUT, f"s3://data/lake/main/customers/{OF_DUCKDB}", False),
    (PUT, f"s3://data/lake/main/{OF_DUCKDB}", False),
    (PUT, f"s3://data/lake/.polynya-staging/{OTHER}/{OF_DUCKDB}", False),
    (PUT, f"s3://data/lake/main/orders/../customers/{OF_DUCKDB}", False),
    (PUT, f"s3://data/lake/main/orders/ducklake-{UUID}.parquet", False),
    (PUT, f"s3://data/lake/main/orders/ducklake-{UUID}-delete.parquet", False),
    (PUT, f"s3://data/lake/main/orders/ducklake-{UUID}-delete.puffin", False),
    (PUT, f"s3://data/lake/main/orders/{OF_DUCKDB}x", False),
    (DELETE, f"s3://data/lake/main/orders/{OF_DUCKDB}", False),
    # Another table, also in the same directory.
    (GET, f"s3://data/lake/main/orders/{OTHER}/00000.parquet", "own"),
    (PUT, f"s3://data/lake/main/orders/{OTHER}/00000.parquet", False),
    (PUT, f"s3://data/lake/.polynya-staging/{OTHER}/snap-1.avro", False),
    (GET, f"s3://data/lake/.polynya-staging/{OTHER}/snap-1.avro", False),
    (PUT, "s3://data/lake/main/customers/ducklake-1.parquet", False),
    (GET, "s3://data/lake/main/customers/ducklake-1.parquet", False),
    (PUT, f"s3://data/lake/main/customers/{UUID}/00000.parquet", False),
    (PUT, f"s3://elsewhere/lake/main/orders/{UUID}/00000.parquet", False),
    # A client may take `..` for the directory above.
    (PUT, f"{DATA}/../ducklake-1.parquet", False),
    (PUT, f"{DATA}/../../customers/ducklake-1.parquet", False),
    (PUT, f"{STAGED}/../{OTHER}/snap-1.avro", False),
    (PUT, f"{DATA}/..parquet", True),
    # Virtual files.
    (PUT, f"{VIRTUAL}/g3/list-1-abc.avro", False),
    (PUT, f"s3://virtual/polynya/{OTHER}/g3/list-1-abc.avro", False),
    (GET, f"s3://virtual/polynya/{OTHER}/g3/list-1-abc.avro", False),
    # Nothing is ever deleted.
    (DELETE, f"{DATA}/00000-0-abc.parquet", False),
    (DELETE, f"{STAGED}/snap-123-1-abc.avro", False),
    (DELETE, "s3://data/lake/main/orders/ducklake-1.parquet", False),
    (DELETE, f"{VIRTUAL}/g3/list-1-abc.avro", False),
    ("s3:DeleteObjectVersion", f"{DATA}/00000-0-abc.parquet", False),
    ("s3:PutObjectAcl", f"{DATA}/00000-0-abc.parquet", False),
    ("s3:ListBucket", "s3://data", False),
]


@pytest.mark.parametrize("delivery", DELIVERIES)
@pytest.mark.parametrize("directory", READS)
@pytest.mark.parametrize(("action", "location", "permitted"), CASES)
def test_a_writer_puts_files_only_below_two_prefixes_of_its_table(
    delivery, directory, action, location, permitted
):
    deletes = OWN[directory] | BESIDE_ROWS[delivery]
    policy = policy_of(fitted(READS[directory], writes(), delivery, deletes))
    expected = permitted if isinstance(permitted, bool) else permitted in {directory, delivery}
    assert allowed(policy, location, action) is expected
    arn = arn_of(location)
    by_moto = IAMPolicy(policy).is_action_permitted(action, arn)
    assert (by_moto == PermissionResult.PERMITTED) is expected


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_writer_reads_the_virtual_files_of_its_table(delivery):
    policy = policy_of(fitted(READS["own"], writes(), delivery, BESIDE_ROWS[delivery]))
    is_real = delivery == "materialize"
    assert allowed(policy, f"{VIRTUAL}/g3/list-1-abc.avro") is is_real
    assert ("s3-object-lambda:GetObject" in policy) is not is_real
    given = {one for s in json.loads(policy)["Statement"] for one in as_list(s["Action"])}
    actions = ("GetObject", "PutObject", "AbortMultipartUpload")
    through = {"lambda:InvokeFunction", *(f"s3-object-lambda:{one}" for one in actions)}
    assert given == {GET, PUT, ABORT} | (set() if is_real else through)


NAMES = ["a*", "a?b", "${aws:username}", "$", "$*", "*", "?", "ünï ❄", 'a"b\\c', "a\nb", "${*}"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("other", ["axb", "ax", "a", "axxb", "x", "xx", "${x}", "$x", "a/b", ""])
def test_a_name_is_no_wildcard_for_a_writer(name, other):
    written = writes(f"{name}/", staging=f"s3://staged/{name}")
    policy = policy_of(fitted({S3Scope(f"s3://data/lake/main/{name}/", True)}, written))
    for location in (f"s3://data/lake/main/{name}/{UUID}/f", f"s3://staged/{name}/{UUID}/f"):
        assert allowed(policy, location, PUT)
        assert not allowed(policy, location.replace(f"/{name}/", f"/{other}/"), PUT)


# (where the table is, and what else is in the lake; whether these prefixes are its own)
PLACES = [
    ({}, True),
    ({"tables": ["s3://data/lake/main/orders/"]}, True),  # a renamed table in the same directory
    ({"tables": ["s3://data/lake/main/"]}, True),
    ({"tables": [f"s3://data/lake/main/orders/{UUID}/"]}, False),
    ({"tables": [f"s3a://DATA/lake/main/orders/{UUID}/x/"]}, False),
    ({"files": [f"s3://data/lake/main/orders/{UUID}/day=1/"]}, False),
    ({"files": ["s3://data/lake/main/orders/"]}, True),
    ({"files": [f"https://data.s3.amazonaws.com/lake/main/orders/{UUID}/"]}, False),
    ({"tables": ["s3://data/lake/main/ord"]}, False),  # its files may be called ord + ers/…
    ({"files": [f"s3://data/lake/.polynya-staging/{UUID}/"]}, False),
    ({"tables": [f"s3://data/lake/.polynya-staging/{UUID}/x/"]}, False),
    # Who may read a table may read its whole directory.
    (
        {"staging": "s3://data/lake/main/customers", "tables": ["s3://data/lake/main/customers/"]},
        False,
    ),
    ({"staging": "s3://data/lake/staged", "tables": ["s3://data/lake/"]}, False),
    ({"staging": "s3://virtual/polynya/staged"}, False),
    ({"staging": "s3://virtual/staged"}, True),
    ({"data_path": "s3://virtual/polynya/lake/"}, False),
    ({"data_path": "s3a://data/lake/"}, True),
    ({"data_path": "/tmp/lake/"}, False),
    ({"data_path": "gs://data/lake/"}, False),
]


@pytest.mark.parametrize(("place", "is_own"), PLACES)
def test_a_writer_gets_prefixes_that_are_the_tables_own(place, is_own):
    if is_own:
        assert all(UUID in scope.location for scope in writes(**place))
        return
    with pytest.raises(Refused, match="no credentials to write this table"):
        writes(**place)


@pytest.mark.parametrize("count", [1, 5, 10, 20, 40, 5000])
def test_the_policy_of_a_writer_fits_as_well(count):
    directories = {
        S3Scope(f"s3://b/added/year={n // 12}/month={n % 12}/", True) for n in range(count)
    }
    scope = fitted({*READS["own"], *directories}, writes())
    policy = policy_of(scope)
    assert all(allowed(policy, f"{one.location}f.parquet") for one in directories)
    assert {f"{DATA}/", f"{STAGED}/"} < set(scope.locations)
    for one in (*directories, *READS["own"]):
        assert not allowed(policy, f"{one.location}f.parquet", PUT)


def test_where_both_do_not_fit_a_writer_can_only_read():
    places = {S3Scope(f"s3://b-{n:02}-{'x' * 30}/added/", True) for n in range(29)}
    assert policy_of(fitted(places, set()))
    assert "no credentials for this table" in fitted(places, writes()).reason


# What STS is asked for

PROPERTIES = {"AccessKeyId": "A" * 16, "SecretAccessKey": "s", "SessionToken": "t"}
ANSWER = {"Credentials": PROPERTIES | {"Expiration": datetime(2026, 11, 22, tzinfo=UTC)}}
AS_READER = TableScope(UUID, VIRTUAL, READER, "{}", ("s3://data/r/",))

# (the scope of a writer, whether STS can pack its policy, the roles that are assumed, the prefixes)
SCOPES = [
    (TableScope(UUID, VIRTUAL, WRITER, "{}", ("s3://data/w/",)), True, [WRITER], ["s3://data/w/"]),
    (
        TableScope(UUID, VIRTUAL, WRITER, "{}", ("s3://data/w/",), otherwise=AS_READER),
        True,
        [WRITER],
        ["s3://data/w/"],
    ),
    (
        TableScope(UUID, VIRTUAL, WRITER, "{}", ("s3://data/w/",), otherwise=AS_READER),
        False,
        [WRITER, READER],
        ["s3://data/r/"],
    ),
    (
        TableScope(UUID, VIRTUAL, WRITER, "", reason="it does not fit", otherwise=AS_READER),
        True,
        [READER],
        ["s3://data/r/"],
    ),
]


@pytest.mark.parametrize(("scope", "is_packed", "roles", "prefixes"), SCOPES)
@pytest.mark.parametrize("refreshed", [False, True])
def test_a_writer_whose_policy_is_refused_gets_credentials_of_a_reader(
    monkeypatch, scope, is_packed, roles, prefixes, refreshed
):
    sts = boto3.client("sts", "eu-central-1", aws_access_key_id="x", aws_secret_access_key="x")
    monkeypatch.setattr(Clients, "__call__", lambda self, service: sts)
    asked = {"RoleSessionName": f"polynya-{UUID}", "DurationSeconds": 3600, "Policy": ANY}
    with Stubber(sts) as stub:
        for role in roles:
            expected = asked | {"RoleArn": role}
            if role == WRITER and not is_packed:
                code = "PackedPolicyTooLarge"
                stub.add_client_error("assume_role", code, expected_params=expected)
            else:
                stub.add_response("assume_role", ANSWER, expected)
        if refreshed:
            answer = vending().refresh_credentials(scope)
            assert [one["prefix"] for one in answer["storage-credentials"]] == ["s3"]
        else:
            answer = vending().table_credentials(scope, "refresh")
            found = [one["prefix"] for one in answer["storage-credentials"]]
            assert found == [f"{VIRTUAL}/", *prefixes]
        stub.assert_no_pending_responses()
