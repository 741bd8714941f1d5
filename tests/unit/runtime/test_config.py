"""Settings: each has a valid value, a default, or an error that names it."""

import pytest
from polynya.runtime.errors import Misconfigured
from polynya.runtime.settings import (
    CLIENTS,
    DELIVERIES,
    SETTINGS,
    Config,
    FileSettings,
    StorageSettings,
)

REQUIRED = {"DATABASE_URL": "postgresql://u:secret@h/d", "VIRTUAL_BUCKET": "b"}


def config(**settings: str) -> Config:
    return Config.from_env(REQUIRED | settings)


def value(config: Config, name: str) -> object:
    """The value of a setting, in any group."""
    groups = (config, config.files, config.storage)
    [found] = [getattr(group, name) for group in groups if name in group.__slots__]
    return found


def test_unset_settings_have_their_defaults():
    assert config() == Config(
        files=FileSettings(
            virtual_prefix="polynya",
            snapshot_limit=1000,
            client_snapshot_limit=1000,
            build_seconds=45,
            chunk_files=2048,
            hidden_types=frozenset(),
            format_version_3="when-needed",
            inexact_columns="hide",
            column_defaults="serve",
            clients=frozenset(),
            custom_properties=frozenset(),
        ),
        storage=StorageSettings(
            delivery="object-lambda",
            virtual_bucket="b",
            cache_table="",
            cache_bucket="",
            cache_ttl_days=7,
            copy_data_files=False,
        ),
        database_url="postgresql://u:secret@h/d",
        database_credentials="",
        metadata_schema="public",
        warehouse="lake",
        lakes="",
        authorization="",
        scan_planning="client",
        vending_role="",
        vending_seconds=3600,
        writes=False,
        view_dialects=frozenset(),
        staging_location="",
        equality_delete_keys=2_000_000,
        equality_delete_files=20_000,
        equality_delete_gb=8,
        writer_role="",
        log_values=False,
        event_bus="",
        events_table="",
        request_mb=64,
        object_lambda_endpoint="",
    )


# (setting, text, its value)
VALUES = [
    ("DATABASE_CREDENTIALS", "iam", "iam"),
    ("DATABASE_CREDENTIALS", "secret:lake/reader", "secret:lake/reader"),
    ("METADATA_SCHEMA", "my lake", "my lake"),
    ("WAREHOUSE", "Lake_1-x", "Lake_1-x"),
    ("LAKES", "ssm:/lakes", "ssm:/lakes"),
    ("LAKES", "{}", "{}"),
    ("DELIVERY", "materialize", "materialize"),
    ("VIRTUAL_BUCKET", "alias--ol-s3", "alias--ol-s3"),
    ("VIRTUAL_PREFIX", "/a/b/", "a/b"),
    ("CACHE_TABLE", "t", "t"),
    ("CACHE_BUCKET", "c", "c"),
    ("CACHE_TTL_DAYS", "30", 30),
    ("SNAPSHOT_LIMIT", "5", 5),
    ("BUILD_SECONDS", "7", 7),
    ("CHUNK_FILES", "3", 3),
    ("CHUNK_FILES", "0", 1),
    ("HIDDEN_TYPES", "time", frozenset({"time"})),
    ("HIDDEN_TYPES", " time , timetz,, uuid ", frozenset({"time", "timetz", "uuid"})),
    ("CLIENTS", "none", frozenset()),
    ("CLIENTS", " Spark, trino ", frozenset({"spark", "trino"})),
    ("CLIENTS", "all", CLIENTS),
    ("COPY_DATA_FILES", "yes", True),
    ("COPY_DATA_FILES", "no", False),
    ("CUSTOM_PROPERTIES", "team, pii.*", frozenset({"team", "pii.*"})),
    ("FORMAT_VERSION_3", "always-shown", "always-shown"),
    ("VIEW_DIALECTS", "Spark, trino", frozenset({"spark", "trino"})),
    ("FORMAT_VERSION_3", "never", "never"),
    ("INEXACT_COLUMNS", "refuse", "refuse"),
    ("COLUMN_DEFAULTS", "refuse", "refuse"),
    ("SCAN_PLANNING", "server", "server"),
    ("AUTHORIZATION", "ssm:/lake/policy", "ssm:/lake/policy"),
    ("AUTHORIZATION", "s3://b/policy.json", "s3://b/policy.json"),
    ("AUTHORIZATION", ' {"rules": []}', ' {"rules": []}'),
    ("VENDING_ROLE", "arn:aws:iam::1:role/r", "arn:aws:iam::1:role/r"),
    ("VENDING_SECONDS", "900", 900),
    ("WRITES", "yes", True),
    ("WRITES", "no", False),
    ("STAGING_LOCATION", "s3://data/lake/staging", "s3://data/lake/staging"),
    ("STAGING_LOCATION", "s3://other/staging/", "s3://other/staging"),
    ("EQUALITY_DELETE_KEYS", "1", 1),
    ("EQUALITY_DELETE_FILES", "2", 2),
    ("EQUALITY_DELETE_GB", "3", 3),
    ("REQUEST_MB", "4", 4),
    ("WRITER_ROLE", "arn:aws:iam::1:role/writer", "arn:aws:iam::1:role/writer"),
    ("LOG_VALUES", "yes", True),
    ("LOG_VALUES", "no", False),
    ("EVENT_BUS", "lakes", "lakes"),
    ("EVENTS_TABLE", "published", "published"),
    ("OBJECT_LAMBDA_ENDPOINT", "http://127.0.0.1:1", "http://127.0.0.1:1"),
    ("WAREHOUSE", "", "lake"),  # a parameter of the template that was left empty
    ("CACHE_TTL_DAYS", "", 7),
]


@pytest.mark.parametrize(("name", "text", "expected"), VALUES)
def test_setting_has_the_value_of_its_text(name, text, expected):
    needed = {"VENDING_ROLE": "arn:aws:iam::1:role/r"}  # WRITER_ROLE requires it
    assert value(config(**needed | {name: text}), name.lower()) == expected


def test_with_materialize_files_stay_as_they_are():
    assert config(CLIENTS="all", DELIVERY="materialize").files.clients == frozenset()
    with pytest.raises(Misconfigured, match="object-lambda"):
        config(CLIENTS="spark", DELIVERY="materialize")


def test_with_materialize_files_are_changed_if_they_are_copied():
    copied = {"DELIVERY": "materialize", "COPY_DATA_FILES": "yes"}
    assert config(**copied).files.clients == frozenset()
    assert config(CLIENTS="all", **copied).files.clients == CLIENTS
    assert config(CLIENTS="spark", **copied).files.clients == {"spark"}


NO_SETTINGS = {
    *("files", "storage", "lake", "data_path", "client_snapshot_limit"),
    "names_key",  # a secret of the host, which no user gives
}


def test_every_setting_is_a_field_and_has_a_case_above():
    groups = [*Config.__slots__, *FileSettings.__slots__, *StorageSettings.__slots__]
    assert sorted(s.name.lower() for s in SETTINGS) == sorted({*groups} - NO_SETTINGS)
    assert len(groups) == len({*groups})
    assert {name for name, *_ in VALUES} == {setting.name for setting in SETTINGS} - {
        "DATABASE_URL"
    }


@pytest.mark.parametrize(
    ("delivery", "name", "number"),
    [
        ("object-lambda", "SNAPSHOT_LIMIT", 1000),
        ("materialize", "SNAPSHOT_LIMIT", 20),
        ("object-lambda", "BUILD_SECONDS", 45),
        ("materialize", "BUILD_SECONDS", 20),
    ],
)
def test_0_is_the_default_of_the_delivery(delivery, name, number):
    assert value(config(DELIVERY=delivery), name.lower()) == number
    assert value(config(DELIVERY=delivery, **{name: "0"}), name.lower()) == number
    assert value(config(DELIVERY=delivery, **{name: "3"}), name.lower()) == 3


@pytest.mark.parametrize(
    ("delivery", "text", "number"),
    [("object-lambda", "0", 1000), ("materialize", "0", 200), ("materialize", "3", 3)],
)
def test_more_snapshots_of_clients_are_listed_only_without_a_limit(delivery, text, number):
    found = config(DELIVERY=delivery, SNAPSHOT_LIMIT=text)
    assert found.files.client_snapshot_limit == number


UNUSABLE = [
    ("VENDING_SECONDS", "899"),
    ("VENDING_SECONDS", "3601"),
    ("REQUEST_MB", "0"),
    ("AUTHORIZATION", "/lake/policy"),
    ("AUTHORIZATION", "s3://b"),
    ("AUTHORIZATION", "[]"),
    ("DATABASE_CREDENTIALS", "IAM"),
    ("DATABASE_CREDENTIALS", "secret:"),
    ("DATABASE_CREDENTIALS", "lake/reader"),
    ("WAREHOUSE", "a/b"),
    ("WAREHOUSE", "a b"),
    ("WAREHOUSE", "lake@3"),
    ("WAREHOUSE", "lake\n"),
    ("DELIVERY", "Materialize"),
    ("DELIVERY", "plan"),
    ("CACHE_TTL_DAYS", "-1"),
    ("CACHE_TTL_DAYS", "1.5"),
    ("CACHE_TTL_DAYS", "a week"),
    ("INEXACT_COLUMNS", "show"),
    ("COLUMN_DEFAULTS", "null"),
    ("CLIENTS", "spark,presto"),
    ("COPY_DATA_FILES", "true"),
    ("CLIENTS", "all,spark"),
    ("SCAN_PLANNING", "both"),
    ("WRITES", "Yes"),
    ("WRITES", "true"),
    ("STAGING_LOCATION", "s3://bucket"),
    ("STAGING_LOCATION", "s3://bucket/"),
    ("STAGING_LOCATION", "s3://bucket//staging"),
    ("STAGING_LOCATION", "file:///staging"),
    ("STAGING_LOCATION", "bucket/staging"),
    ("WRITER_ROLE", "writer"),
    ("WRITER_ROLE", "arn:aws:iam::1:user/writer"),
    ("SNAPSHOT_LIMIT", "-1"),
    ("SNAPSHOT_LIMIT", "²"),
    ("BUILD_SECONDS", "1.5"),
]


def test_credentials_are_vended_to_writers_only_if_they_are_to_readers():
    with pytest.raises(Misconfigured, match="WRITER_ROLE requires VENDING_ROLE"):
        config(WRITER_ROLE="arn:aws:iam::1:role/w")


@pytest.mark.parametrize(("name", "text"), UNUSABLE)
def test_invalid_value_is_an_error_that_names_the_setting(name, text):
    with pytest.raises(Misconfigured, match=name):
        config(**{name: text})


# (delivery, staging location): VIRTUAL_BUCKET is `b`, VIRTUAL_PREFIX is `polynya`
AMONG_VIRTUAL_FILES = [
    ("materialize", "s3://b/polynya"),
    ("materialize", "s3://b/polynya/staging"),
    ("object-lambda", "s3://b/staging"),
]


@pytest.mark.parametrize(("delivery", "location"), AMONG_VIRTUAL_FILES)
def test_clients_cannot_write_among_virtual_files(delivery, location):
    with pytest.raises(Misconfigured, match="STAGING_LOCATION"):
        config(DELIVERY=delivery, STAGING_LOCATION=location)
    with pytest.raises(Misconfigured, match="STAGING_LOCATION"):
        config(DELIVERY=delivery, STAGING_LOCATION="s3://b/a", VIRTUAL_PREFIX="a/b")
    other = config(DELIVERY="materialize", STAGING_LOCATION="s3://b/polynya2")
    assert other.staging_location == "s3://b/polynya2"


@pytest.mark.parametrize("name", sorted(REQUIRED))
@pytest.mark.parametrize("environ", [{}, {"DATABASE_URL": "", "VIRTUAL_BUCKET": ""}])
def test_missing_required_setting_is_an_error_that_names_it(name, environ):
    others = {key: value for key, value in REQUIRED.items() if key != name}
    with pytest.raises(Misconfigured, match=f"{name} is missing") as raised:
        Config.from_env(environ | others)
    assert "secret" not in str(raised.value)


def test_required_settings_are_those_without_a_default():
    assert {setting.name for setting in SETTINGS if setting.default is None} == REQUIRED.keys()
    assert all(setting.help for setting in SETTINGS)


def test_each_delivery_is_a_valid_value():
    assert {
        config(DELIVERY=delivery).storage.delivery for delivery in DELIVERIES
    } == DELIVERIES.keys()


def test_a_group_is_read_without_the_settings_of_other_groups():
    environ = {"WAREHOUSE": "a/b", "VIRTUAL_BUCKET": "b", "DELIVERY": "materialize"}
    assert FileSettings.from_env(environ).snapshot_limit == 20
    assert StorageSettings.from_env(environ).location("k") == "s3://b/k"
    with pytest.raises(Misconfigured, match="VIRTUAL_BUCKET is missing"):
        StorageSettings.from_env({})
    with pytest.raises(Misconfigured, match="CHUNK_FILES"):
        FileSettings.from_env({"CHUNK_FILES": "many"})
