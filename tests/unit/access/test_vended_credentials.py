"""Session policies: what they allow, what they do not allow, and that they fit AWS's limits."""

import json
from collections.abc import Iterable

import boto3
import pytest
from botocore.stub import Stubber
from polynya.access.table_scope import OtherTables, S3Scope
from polynya.access.vended_credentials import (
    POLICY_LIMIT,
    CredentialVending,
    TableScope,
    table_of_session,
)
from polynya.runtime.errors import Refused
from polynya.runtime.settings import Config
from polynya.storage.aws import Clients

from tests.support.iam import allowed, resources

UUID = "01a1fad5-de06-72d5-96d5-394e01873100"
ROLE = "arn:aws-cn:iam::111122223333:role/Vended"
VIRTUAL = f"s3://v/polynya/{UUID}"
OWN = "s3://data/lake/main/t/"


def place(location: str) -> S3Scope:
    return S3Scope(location, location.endswith("/"))


def neighbours(tables: Iterable[str] = (), files: Iterable[str] = ()) -> OtherTables:
    return OtherTables(tables, files, "s3://v/polynya/")


def policy_of(
    locations: Iterable[str],
    around: OtherTables | None = None,
    delivery: str = "materialize",
) -> tuple[str, list[str]]:
    """The policy, and the locations that it names, for these tables and files or a few more."""
    environ = {
        "DATABASE_URL": "u",
        "VIRTUAL_BUCKET": "v",
        "VENDING_ROLE": ROLE,
        "DELIVERY": delivery,
    }
    vending = CredentialVending(Config.from_env(environ))
    blank = TableScope(UUID, VIRTUAL, ROLE, "")
    scope = vending._fitted(blank, set(map(place, locations)), set(), set(), around or neighbours())
    if scope.reason:
        raise Refused(scope.reason)
    return scope.policy, list(scope.locations)


def test_a_policy_covers_a_table_in_one_directory():
    text, places = policy_of({OWN})
    assert places == [OWN]
    assert allowed(text, f"{OWN}x=1/f.parquet")
    assert allowed(text, f"{VIRTUAL}/g3/list-1-ab.avro")
    assert not allowed(text, "s3://data/lake/main/t2/f.parquet")
    assert not allowed(text, f"s3://v/polynya/{UUID.replace('0', '1')}/g3/list-1-ab.avro")


def test_with_object_lambda_the_role_limits_the_access_point():
    text, _ = policy_of({OWN}, delivery="object-lambda")
    assert resources(text) == ["arn:aws-cn:s3:::data/lake/main/t/*"]
    assert json.loads(text)["Statement"][1:] == [
        {
            "Effect": "Allow",
            "Action": ["s3-object-lambda:GetObject", "lambda:InvokeFunction"],
            "Resource": "*",
        }
    ]


NAMES = ["a*", "a?b", "${aws:username}", "$", "$*", "*", "?", "ünï ❄", 'a"b\\c', "a\nb", "${*}"]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("others", ["axb", "ax", "a", "axxb", "x", "xx", "${x}", "$x", "a/b", ""])
def test_a_name_is_not_a_wildcard(name, others):
    """Neither as a directory nor as a file; a file is no prefix of another file's name."""
    for location, within in ((f"s3://data/{name}/", "f"), (f"s3://data/d/{name}", "")):
        text, _ = policy_of({location})
        assert allowed(text, location + within)
        other = location.replace(f"/{name}", f"/{others}")
        assert not allowed(text, other + within)
        if not within:
            assert not allowed(text, f"{location}2") and not allowed(text, f"{location}/x")


def test_a_file_with_the_name_of_a_directory_is_a_file():
    vending = CredentialVending(Config.from_env({"DATABASE_URL": "u", "VIRTUAL_BUCKET": "v"}))
    text = vending._policy([S3Scope("s3://data/lake/", False)], [], [], VIRTUAL)
    assert "data/lake/*" not in text and '"arn:aws:s3:::data/lake/"' in text


@pytest.mark.parametrize("count", [1, 2, 10, 20, 40, 100, 5000])
def test_many_partitions_fit_and_nothing_is_lost(count):
    directories = {f"s3://b/added/year={n // 12}/month={n % 12}/" for n in range(count)}
    text, places = policy_of({OWN, *directories})
    assert len(text) <= POLICY_LIMIT
    for directory in directories:
        assert allowed(text, f"{directory}f.parquet")
        assert any(directory.startswith(place) for place in places)
    assert not allowed(text, "s3://b/other/f") and not allowed(text, "s3://data/lake/main/u/f")
    if count <= 20:  # as long as they fit, exactly these are named
        assert set(places) == {OWN, *directories}


def test_files_are_named_individually_as_long_as_they_fit():
    files = {f"s3://b/landing/{n:02}.parquet" for n in range(12)}
    text, places = policy_of({OWN, *files})
    assert set(places) == {OWN, *files} and not allowed(text, "s3://b/landing/12.parquet")
    many = {f"s3://b/landing/{n:02}.parquet" for n in range(60)}
    assert policy_of({OWN, *many})[1] == ["s3://b/landing/", OWN]


TOO_MANY = [f"s3://b/added/d{n:02}-{'x' * 30}/" for n in range(60)]
PARTITIONS = [f"s3://b/added/day={n:02}-{'x' * 30}/" for n in range(60)]
KEYS = [f"s3://b/landing/{n:02}-{'x' * 30}.parquet" for n in range(60)]
SIBLING = "s3://b/added/other/"


@pytest.mark.parametrize(
    ("locations", "around"),
    [
        (TOO_MANY, neighbours()),  # their parent may hold anything
        (TOO_MANY, neighbours(files=[SIBLING])),
        (PARTITIONS, neighbours(files=[SIBLING])),
        (PARTITIONS, neighbours(tables=[SIBLING])),
        (PARTITIONS, neighbours(tables=["s3://b/added/"])),
        (PARTITIONS, neighbours(tables=["s3://b/"])),
        (PARTITIONS, neighbours(files=["s3a://B/added/day=00/"])),
        (PARTITIONS, neighbours(files=["https://b.s3.amazonaws.com/added/x/"])),
        (PARTITIONS, neighbours(files=["https://s3.amazonaws.com/b/%61dded/x/"])),
        (KEYS, neighbours(files=["s3://b/landing/"])),
        (KEYS, neighbours(tables=["s3://b/landing/new/"])),
        (KEYS, neighbours(tables=["s3://b/land"])),  # its files may be called land + ing/…
        ([f"s3://bucket-{n}/day=1/" for n in range(200)], neighbours()),
        ([f"s3://b/day={n}/" for n in range(200)], neighbours()),  # above them is the bucket
        ([f"s3://v/polynya/day={n}/" for n in range(200)], neighbours()),
    ],
)
def test_a_policy_that_does_not_fit_is_refused(locations, around):
    with pytest.raises(Refused, match="no credentials for this table"):
        policy_of(locations, around)


@pytest.mark.parametrize(
    ("directory", "tables", "files", "absent"),
    [
        ("s3://b/a/b/", [], [], True),
        ("s3://b/a/b/", ["s3://b/a/b2/", "s3://b/a/c/"], ["s3://b/a/b2/"], True),
        ("s3://b/a/b/", ["s3://b/a/b/"], [], False),
        ("s3://b/a/b/", ["s3://b/a/b/c/"], [], False),
        ("s3://b/a/b/", ["s3://b/a/"], [], False),
        ("s3://b/a/b/", ["s3://b/"], [], False),
        ("s3://b/a/b/", [], ["s3://b/a/b/"], False),
        ("s3://b/a/b/", [], ["s3://b/a/b/c/d/"], False),
        ("s3://b/a/b/", [], ["s3://b/a/", "s3://b/"], True),  # files beside it
        ("s3://b/a/b/", ["s3a://b/a/b/"], [], False),
        ("s3a://b/a/b/", ["s3n://B/a/b/"], [], False),
        ("s3://b/a/b/", ["S3://b/a/b/"], [], False),
        ("s3://b/a/b/", ["s3://b//a/b/", "s3://c/a/b/"], [], True),  # other keys
        # They are other keys too, but not for the policies of SeaweedFS.
        ("s3://b/a/b/", ["s3://b/A/b/"], [], False),
        ("s3://b/a/B/", [], ["s3://b/a/b/c/"], False),
        ("s3://b/ä/b/", ["s3://b/a\u0308/b/"], [], True),  # different bytes
        ("s3://b/a/b/", ["s3://b/a/b"], [], False),
        ("s3://v/polynya/x/", [], [], False),
        ("s3://v/", [], [], False),
        ("s3://b/", [], [], False),
        ("s3://b//", [], [], False),
        ("s3://b/t", [], [], False),
        ("/tmp/lake/main/t/", [], [], False),
        ("gs://b/t/", [], [], False),
    ],
)
def test_a_directory_is_allowed_if_no_other_table_is_in_it(directory, tables, files, absent):
    assert neighbours(tables, files).absent_from(directory) is absent


def test_a_policy_that_sts_cannot_pack_is_refused(monkeypatch):
    """AWS also limits the packed form, and does not document the packing."""
    sts = boto3.client("sts", "eu-central-1", aws_access_key_id="x", aws_secret_access_key="x")
    monkeypatch.setattr(Clients, "__call__", lambda self, service: sts)
    environ = {"DATABASE_URL": "u", "VIRTUAL_BUCKET": "v", "VENDING_ROLE": ROLE}
    vending, given = (
        CredentialVending(Config.from_env(environ)),
        TableScope(UUID, VIRTUAL, ROLE, "{}", (OWN,)),
    )
    with Stubber(sts) as stub:
        for _ in range(2):
            stub.add_client_error("assume_role", "PackedPolicyTooLarge", http_status_code=400)
        assert vending.table_credentials(given, "refresh") == {}
        with pytest.raises(Refused, match="no credentials for this table"):
            vending.refresh_credentials(given)


def test_the_table_of_a_session_is_read_from_its_name():
    assert table_of_session(f"polynya-{UUID}") == UUID
    for other in (UUID, f"polynya-{UUID}x", f"x-polynya-{UUID}", "polynya-", "me"):
        assert table_of_session(other) is None
    assert len(f"polynya-{UUID}") <= 64  # AssumeRole, "RoleSessionName"


@pytest.mark.parametrize(
    ("location", "tables", "is_held"),
    [
        ("s3://b/t/1.parquet", ["s3://b/t/"], True),
        ("s3a://B/t/p=1/1.parquet", ["s3://b/t/"], True),
        ("s3://b/t2/1.parquet", ["s3://b/t/"], False),
        ("s3://b/T/1.parquet", ["s3://b/t/"], True),
        ("s3://b/1.parquet", ["s3://b/t/"], False),
        ("s3://c/t/1.parquet", ["s3://b/t/"], False),
        ("s3://b/t2/1.parquet", ["s3://b/t"], True),  # DuckLake writes to s3://b/t1.parquet
        ("s3://b/t/1.parquet", ["https://b.s3.amazonaws.com/t/"], True),
        ("s3://b/a%20b/1.parquet", ["https://s3.amazonaws.com/b/a%2520b/"], True),
        ("s3://b/u/1.parquet", ["https://b.s3.amazonaws.com/t/"], False),
        ("s3://v/polynya/x/1.parquet", [], True),
        ("s3://v/other/1.parquet", [], False),
    ],
)
def test_a_file_is_held_if_it_is_in_the_directory_of_another_table(location, tables, is_held):
    """Files of other tables beside it do not matter: two tables get files from one place."""
    assert neighbours(tables, ["s3://b/t2/", "s3://b/u/"]).hold(location) is is_held
