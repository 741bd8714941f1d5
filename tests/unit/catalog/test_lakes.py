"""The document of the lakes: what each entry means, and what is refused."""

import json

import pytest
from polynya.access.caller import ANYBODY
from polynya.access.vended_credentials import session_name, table_of_session
from polynya.catalog.lakes import Lakes
from polynya.catalog.lakes_document import lakes_of
from polynya.runtime import budget
from polynya.runtime.budget import CircuitBreaker
from polynya.runtime.errors import BadRequest, Misconfigured, NoSuchKey, NoSuchWarehouse
from polynya.runtime.settings import Config
from polynya.storage.operator_documents import OperatorDocument
from polynya.storage.s3_locations import is_below

ENVIRON = {
    "DATABASE_URL": "postgresql://reader@h/d",
    "DATABASE_CREDENTIALS": "secret:reader",
    "VIRTUAL_BUCKET": "alias--ol-s3",
    "STAGING_LOCATION": "s3://staging/commits",
    "WRITES": "yes",
    "HIDDEN_TYPES": "time",
}
UUID = "01a1fad5-de06-72d5-96d5-394e01873100"


def parsed(environ=ENVIRON, *, commits: bool = False, **lakes):
    return lakes_of(json.dumps(lakes), environ, commits=commits)


def test_an_entry_has_the_settings_of_the_deployment_but_its_own():
    config = parsed(sales={"metadata_schema": "s", "data_path": "s3://b/sales"})["sales"]
    assert (config.lake, config.warehouse, config.metadata_schema) == ("sales", "sales", "s")
    assert config.data_path == "s3://b/sales/"
    assert config.files.virtual_prefix == "polynya/sales"
    assert config.staging_location == "s3://staging/commits/sales"
    assert config.files.hidden_types == {"time"} and config.writes
    assert (config.database_url, config.database_credentials) == (
        ENVIRON["DATABASE_URL"],
        "secret:reader",
    )


def test_the_credentials_of_the_deployment_are_for_its_own_database():
    entry = {"database_url": "postgresql://other@h/e", "data_path": "s3://b/x/"}
    writer = {"commits": {"database_credentials": "secret:writer"}}
    assert parsed(x=entry)["x"].database_credentials == ""
    reads, writes = (parsed(x=entry | writer, commits=commits)["x"] for commits in (False, True))
    assert (reads.database_credentials, writes.database_credentials) == ("", "secret:writer")


def test_a_lake_may_have_the_other_delivery():
    entry = {"delivery": "materialize", "data_path": "s3://b/x/"}
    storage = parsed(x=entry)["x"].storage
    assert (storage.is_materialized, storage.virtual_bucket) == (True, "b")


def test_the_lake_of_the_settings_may_say_where_its_data_is():
    config = parsed(lake={"data_path": "s3://b/own/"})["lake"]
    assert (config.lake, config.data_path) == ("", "s3://b/own/")
    assert config.files.virtual_prefix == "polynya"


GOOD = {"data_path": "s3://b/good/"}
WRONG = [
    ("a.b", GOOD),
    ("a--at-1", GOOD),
    ("a/b", GOOD),
    ("", GOOD),
    (UUID, GOOD),
    ("x", {}),
    ("x", []),
    ("x", {"data_path": "/folder"}),
    ("x", {"data_path": "s3://"}),
    ("x", {"data_path": "s3://b/x/../beside"}),
    ("x", {"data_path": "s3://b/./x/"}),
    ("x", {"data_path": "s3://b/x\n"}),
    ("x", GOOD | {"snapshot_limit": "9" * 5000}),
    ("x\n", GOOD),
    ("\ud800", GOOD),
    ("x", GOOD | {"warehouse": "y"}),
    ("x", GOOD | {"virtual_prefix": "y"}),
    ("x", GOOD | {"authorization": "{}"}),
    ("x", GOOD | {"writes": True}),
    ("x", GOOD | {"writes": "perhaps"}),
    ("x", GOOD | {"commits": {"writes": "yes"}}),
    ("lake", GOOD | {"metadata_schema": "other"}),
]


@pytest.mark.parametrize(("name", "entry"), WRONG)
def test_a_wrong_entry_breaks_its_lake_alone(name, entry):
    configs = parsed(**{name: entry, "beside": {"data_path": "s3://b/beside/"}})
    assert isinstance(configs[name], Misconfigured)
    assert isinstance(configs["beside"], Config)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"a": {}, "a": {}}', '{"a": {"x": 1, "x": 2}}'])
def test_a_wrong_document_is_refused_as_a_whole(text):
    with pytest.raises(Misconfigured):
        lakes_of(text, ENVIRON)


@pytest.mark.parametrize(
    ("one", "other", "is_shared"),
    [
        ("s3://b/a/", "s3://b/a/", True),
        ("s3://b/a/", "s3://b/a/b/", True),
        ("s3://b/", "s3://b/a/b/", True),
        ("s3://b/a", "s3://b/ab", False),
        ("s3://b/", "s3://c/", False),
    ],
)
def test_no_data_path_is_within_another(one, other, is_shared):
    for own in ("x", "lake"):
        configs = parsed(**{own: {"data_path": one}, "y": {"data_path": other}})
        assert [isinstance(configs[name], Misconfigured) for name in (own, "y")] == [is_shared] * 2


def test_each_data_path_within_another_is_wrong():
    paths = {"inmost": "a/b/c/", "outer": "a/", "inner": "a/b/", "like_it": "a-b/", "beside": "ab/"}
    configs = parsed(**{name: {"data_path": f"s3://b/{path}"} for name, path in paths.items()})
    wrong = {name for name, config in configs.items() if isinstance(config, Misconfigured)}
    assert wrong == {"inmost", "outer", "inner"}


class Opened:
    """What is opened for a lake: its settings."""

    def __init__(self, config, lakes):
        self.config, self.database = config, lakes.database(config)


def registry(environ=ENVIRON, **lakes) -> Lakes:
    environ = environ | {"LAKES": json.dumps(lakes)}
    return Lakes(Config.from_env(environ), Opened, environ=environ)


def test_lakes_are_found_by_name_and_by_key():
    lakes = registry(sales={"data_path": "s3://b/sales/"})
    assert lakes.names() == ["lake", "sales"]
    assert [lakes.named(name).config.lake for name in (None, "lake", "sales")] == ["", "", "sales"]
    assert lakes.lake_of_key(f"polynya/{UUID}/g3/list-1-x.avro", ANYBODY).config.lake == ""
    assert (
        lakes.lake_of_key(f"polynya/sales/{UUID}/g3/list-1-x.avro", ANYBODY).config.lake == "sales"
    )
    for key in (f"polynya/other/{UUID}/x", "polynya/lake/x", f"polynya//{UUID}/x", "polynya/"):
        with pytest.raises(NoSuchKey):
            lakes.lake_of_key(key, ANYBODY)
    with pytest.raises(NoSuchWarehouse, match=r"^Warehouse does not exist: none$"):
        lakes.named("none")


def test_without_a_lake_of_its_own_a_deployment_asks_for_a_name():
    environ = {name: text for name, text in ENVIRON.items() if "DATABASE" not in name}
    lakes = registry(environ, x={"database_url": "postgresql://h/d", "data_path": "s3://b/x/"})
    assert lakes.names() == ["x"]
    with pytest.raises(BadRequest):
        lakes.named(None)
    with pytest.raises(NoSuchKey):
        lakes.lake_of_key(f"polynya/{UUID}/g3/list-1-x.avro", ANYBODY)


def test_a_lake_is_opened_again_only_if_its_settings_change(monkeypatch):
    documents = [
        {"a": {"data_path": "s3://b/a/"}, "c": {"data_path": "s3://b/c/"}},
        {"a": {"data_path": "s3://b/other/"}, "c": {"data_path": "s3://b/c/"}},
        {"c": {"data_path": "s3://b/c/"}},
    ]
    times = [0.0]
    environ = ENVIRON | {"LAKES": "ssm:/lakes"}
    monkeypatch.setattr(
        "polynya.storage.operator_documents.ssm_parameter", lambda *_: json.dumps(documents[0])
    )
    lakes = Lakes(Config.from_env(environ), Opened, environ=environ)
    lakes._document._clock = lambda: times[0]
    a, c = lakes.named("a"), lakes.named("c")
    documents.pop(0)
    assert lakes.named("a") is a
    times[0] += 61
    assert lakes.named("a") is not a and lakes.named("c") is c
    documents.pop(0)
    times[0] += 61
    with pytest.raises(NoSuchWarehouse):
        lakes.named("a")
    assert lakes.named("c") is c


def test_a_session_is_for_a_table_of_one_lake():
    for own in ("", "sales"):
        session = session_name(UUID, own)
        assert len(session) <= 64
        found = [table_of_session(session, lake) for lake in ("", "sales", "other")]
        assert found == [UUID if lake == own else None for lake in ("", "sales", "other")]


@pytest.mark.parametrize(
    ("location", "expected"),
    [
        ("s3://b/sales/x", True),
        ("s3a://b/sales/x", True),
        ("s3://b/sales", False),
        ("s3://b/sales2/x", False),
        ("s3://b/sales/../x", False),
        ("s3://c/sales/x", False),
        ("/b/sales/x", False),
    ],
)
def test_what_is_below_a_data_path(location, expected):
    assert is_below(location, "s3://b/sales/") is expected


def test_a_document_in_ssm_may_be_the_location_of_one_in_s3(monkeypatch):
    texts = {"/a": "s3://bucket/lakes.json"}
    monkeypatch.setattr(
        "polynya.storage.operator_documents.ssm_parameter", lambda _, name, clients: texts[name]
    )
    monkeypatch.setattr(
        "polynya.storage.operator_documents.call", lambda what, request: f"the {what} in S3"
    )
    assert OperatorDocument("text", "ssm:/a", str).current() == "the text in S3"


def test_a_breaker_opens_after_slow_failures_in_a_row(monkeypatch):
    now = [0.0]
    monkeypatch.setattr(budget.time, "monotonic", lambda: now[0])
    breaker = CircuitBreaker(2)
    breaker.record_failure(5)
    breaker.record_failure(0.1)  # a quick one does not count
    assert not breaker.is_open
    breaker.record_success()
    breaker.record_failure(5)
    assert not breaker.is_open
    breaker.record_failure(5)
    assert breaker.is_open
    now[0] += budget.OPEN_SECONDS + 1
    assert not breaker.is_open
    breaker.record_failure(5)
    assert breaker.is_open


def test_a_document_may_be_in_a_file(tmp_path):
    file = tmp_path / "document"
    file.write_text("a text: ä", "utf-8")
    assert OperatorDocument("text", f"file:{file}", str).current() == "a text: ä"
    for wrong in (b"\xff", None):
        file.unlink() if wrong is None else file.write_bytes(wrong)
        with pytest.raises(Misconfigured, match=f"text cannot be read from {file}"):
            OperatorDocument("text", f"file:{file}", str).current()
