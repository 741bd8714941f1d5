"""Session policies: what they hold, and that they fit."""

import json
import re

import pytest
from polynya.config import Config
from polynya.errors import Refused
from polynya.vending import POLICY_LIMIT, Grant, Vending, table_of_session, wider

UUID = "01a1fad5-de06-72d5-96d5-394e01873100"
ROLE = "arn:aws-cn:iam::111122223333:role/Vended"


def policy_of(directories: set[str], delivery: str = "materialize") -> tuple[str, list[str]]:
    environ = {
        "DATABASE_URL": "u",
        "VIRTUAL_BUCKET": "v",
        "VENDING_ROLE": ROLE,
        "DELIVERY": delivery,
    }
    own, *added = sorted(directories, key=lambda directory: "added" in directory)
    grant = Grant(UUID, f"s3://v/polynya/{UUID}", own, frozenset(added))
    return Vending(Config.from_env(environ))._policy(grant)


def resources(text: str) -> list[str]:
    statements = json.loads(text)["Statement"]
    return [one for s in statements if s["Action"] == "s3:GetObject" for one in s["Resource"]]


def allowed(text: str, location: str) -> bool:
    """Whether IAM lets a session read it: `*` and `?` are wildcards, `${*}` is a star."""
    arn = "arn:aws-cn:s3:::" + location.partition("://")[2]
    for resource in resources(text):
        parts = re.split(r"(\$\{[*?$]\}|\*|\?)", resource)
        wild = {"*": ".*", "?": "."}
        pattern = "".join(
            wild.get(p) or re.escape(p[2] if re.fullmatch(r"\$\{.\}", p) else p) for p in parts
        )
        if re.fullmatch(pattern, arn, re.DOTALL):
            return True
    return False


def test_a_table_in_one_place():
    text, prefixes = policy_of({"s3://data/lake/main/t/"})
    assert prefixes == ["s3://data/lake/main/t/"]
    assert allowed(text, "s3://data/lake/main/t/x=1/f.parquet")
    assert allowed(text, f"s3://v/polynya/{UUID}/g1/list-1-ab.avro")
    assert not allowed(text, "s3://data/lake/main/t2/f.parquet")
    assert not allowed(text, f"s3://v/polynya/{UUID.replace('0', '1')}/g1/list-1-ab.avro")


def test_behind_object_lambda_the_role_says_which_access_point():
    text, _ = policy_of({"s3://data/lake/main/t/"}, "object-lambda")
    assert resources(text) == ["arn:aws-cn:s3:::data/lake/main/t/*"]
    assert json.loads(text)["Statement"][1:] == [
        {
            "Effect": "Allow",
            "Action": ["s3-object-lambda:GetObject", "lambda:InvokeFunction"],
            "Resource": "*",
        }
    ]


@pytest.mark.parametrize("name", ["a*", "a?b", "${aws:username}", "$", "*", "ünï ❄", 'a"b\\c'])
def test_a_name_is_no_wildcard(name):
    text, _ = policy_of({f"s3://data/{name}/"})
    assert allowed(text, f"s3://data/{name}/f")
    assert not allowed(text, "s3://data/axb/f") and not allowed(text, "s3://data/ax/f")


def test_what_lies_within_another_is_not_said_twice():
    text, prefixes = policy_of({"s3://b/t/", "s3://b/t/x=1/", "s3://b/t2/"})
    assert prefixes == ["s3://b/t/", "s3://b/t2/"]
    assert len(resources(text)) == 3


@pytest.mark.parametrize("count", [1, 2, 10, 20, 40, 100, 5000])
def test_many_directories_fit_and_nothing_is_lost(count):
    directories = {f"s3://b/added/year={n // 12}/month={n % 12}/" for n in range(count)}
    text, prefixes = policy_of({"s3://data/lake/main/t/", *directories})
    assert len(text) <= POLICY_LIMIT
    for directory in directories:
        assert allowed(text, f"{directory}f.parquet")
        assert any(directory.startswith(prefix) for prefix in prefixes)
    assert not allowed(text, "s3://b/other/f") and not allowed(text, "s3://data/lake/main/u/f")
    if count <= 20:  # as long as they fit, exactly these
        assert set(prefixes) == {"s3://data/lake/main/t/", *directories}


@pytest.mark.parametrize(
    "directories",
    [
        {f"s3://b/d{n}/" for n in range(200)},  # above them is the bucket
        {f"s3://bucket-{n}/d/" for n in range(200)},
        {"s3://b/"},
        {"s3://b//"},
        {"s3://b/t"},
        {"/tmp/lake/main/t/"},
        {"gs://b/t/"},
        {"s3://b/t/", "s3://c/"},
    ],
)
def test_a_whole_bucket_is_never_given(directories):
    with pytest.raises(Refused, match="no credentials for this table"):
        policy_of(directories)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("a/b/c/ a/b/d/ a/e/ x/y/", "a/b/ a/e/ x/y/"),  # the deepest that hold two
        ("a/b/ a/e/ x/y/", "a/ x/y/"),  # what is alone stays as it is
        ("h/y=1/m=1/ h/y=2/m=1/ x/y/", "h/ x/y/"),
        ("a/b/c/ a/b/d/ e/f/g/ e/f/h/", "a/b/ e/f/"),
    ],
)
def test_directories_are_widened_only_to_merge_them(before, after):
    before, after = ({f"s3://bucket/{name}" for name in text.split()} for text in (before, after))
    assert wider(before) == after


def test_the_table_of_a_session():
    assert table_of_session(f"polynya-{UUID}") == UUID
    for other in (UUID, f"polynya-{UUID}x", f"x-polynya-{UUID}", "polynya-", "me"):
        assert table_of_session(other) is None
    assert len(f"polynya-{UUID}") <= 64  # AssumeRole, "RoleSessionName"
