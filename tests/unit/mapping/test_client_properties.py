"""Which properties keep their names: none that a client would take for its own configuration."""

import json
import re

import pytest
from polynya.commits.request.tags import tags, values
from polynya.ducklake.rows.objects import ClientSnapshot, Tag, ViewText
from polynya.iceberg.types import Field, Primitive
from polynya.mapping.partitions import client_specs, tagged_sort_fields
from polynya.mapping.properties import (
    DEFAULTS_OF_WRITERS,
    OF_COLUMNS,
    PARTITION_SPECS,
    REQUIRED_COLUMNS,
    SORT_ORDER,
    STATISTICS,
    TABLE_PROPERTIES,
    VIEW_PROPERTIES,
    is_configuration,
    is_label,
    is_of_a_client,
    is_table_property,
    required_columns,
    table_properties,
)
from polynya.mapping.snapshots import _merged
from polynya.mapping.tables import client_properties, properties, stored_files
from polynya.mapping.views import _client_version
from polynya.runtime.errors import BadRequest, Misconfigured
from polynya_local.reports.changes import client_of

from tests.unit.mapping.property_names import (
    CONFIGURATION,
    GO_TABLES,
    JARS,
    JAVA_CONFIGURATION,
    JAVA_TABLES,
    RUST_TABLES,
    listed,
    of_java,
    of_pyiceberg,
)

SHAPE = re.compile(r"[a-z][a-z0-9]*([.-][a-z0-9]+)+\.?")
"""Names of properties, among constants such as `gzip`."""

# Names that clients read from tables, and why no table has them under their own name.
WITHHELD = {
    **dict.fromkeys(
        ("write.location-provider.impl", "write.py-location-provider.impl"), "loads code"
    ),
    **dict.fromkeys(
        (
            *("write.data.path", "write.metadata.path", "write.metadata.location"),
            *("write.object-storage.path", "write.folder-storage.path"),
        ),
        "says where files are",
    ),
    **dict.fromkeys(("encryption.key-id", "encryption.data-key-length"), "how to read them"),
    **dict.fromkeys(
        (
            *("format-version", "snapshot-count", "current-snapshot-summary", "current-schema"),
            *("current-snapshot-id", "current-snapshot-timestamp", "default-partition-spec"),
            *("current-snapshot-timestamp-ms", "default-sort-order"),
        ),
        "reserved: Java shows facts of the metadata under these names",
    ),
    **dict.fromkeys(("engine.hive.enabled", "engine.hive.lock-enabled"), "for catalogs in Hive"),
    "identifier-fields.rely": "Spark would take fields for unique, and rows would be wrong",
    "write.manifest-lists.enabled": "of format version 1",
    "write.metadata.delete-after-commit.enabled": "PyIceberg would delete documents of the log",
    "parquet.enable.dictionary": "a name of Hadoop's configuration",
}


@pytest.fixture(scope="module")
def table_names() -> set[str]:
    java = set().union(*of_java(JAVA_TABLES).values()) if has_jars() else set()
    names = java | of_pyiceberg()[0] | listed(GO_TABLES) | listed(RUST_TABLES)
    # PyIceberg and Go write the beginnings of names of columns without the dot.
    whole = {f"{name}." if f"{name}." in OF_COLUMNS else name for name in names}
    return {name for name in whole if SHAPE.fullmatch(name)} - {"copy-on-write", "merge-on-read"}


def has_jars() -> bool:
    return any(JARS.glob("iceberg-spark-runtime-*.jar"))


def test_each_name_that_a_client_reads_from_a_table_is_judged(table_names):
    judged = TABLE_PROPERTIES | set(OF_COLUMNS) | VIEW_PROPERTIES | set(WITHHELD)
    assert table_names - judged == set()
    assert not [name for name in WITHHELD if is_table_property(name)]


@pytest.mark.skipif(not has_jars(), reason="make setup downloads them")
def test_each_listed_name_is_one_that_a_client_reads(table_names):
    not_in_libraries = {"owner", "olake_2pc", "flow_checkpoints_v1"}
    assert (TABLE_PROPERTIES | set(OF_COLUMNS) | VIEW_PROPERTIES) - table_names == not_in_libraries


def test_no_name_of_pyicebergs_configuration_is_served():
    _, names = of_pyiceberg()
    assert {"py-io-impl", "s3.endpoint", "buffer-size", "uri", "DEFAULT_SCHEME"} <= names
    # Hive's catalog has an owner, too.
    assert [name for name in names if is_table_property(name)] == ["owner"]


@pytest.mark.skipif(not has_jars(), reason="make setup downloads them")
@pytest.mark.parametrize("name", sorted(JAVA_CONFIGURATION))
def test_no_name_of_javas_configuration_is_served(name):
    names = of_java((name,))[name]
    assert len(names) > 2
    assert [one for one in names if is_table_property(one)] == []


@pytest.mark.parametrize("source", CONFIGURATION)
def test_no_name_of_another_clients_configuration_is_served(source):
    names = CONFIGURATION[source].split()
    assert [one for one in names if is_table_property(one)] == []


# What has the form of a setting's name among the constants of Java and PyIceberg, and is none.
_NO_SETTINGS = """
added-data-files added-delete-files added-equality-delete-files added-equality-deletes
added-files-size added-position-delete-files added-position-deletes added-records
changed-partition-count deleted-data-files deleted-records partition-summaries-included
removed-delete-files removed-equality-delete-files removed-equality-deletes removed-files-size
removed-position-delete-files removed-position-deletes total-data-files total-delete-files
total-equality-deletes total-files-size total-position-deletes total-records referenced-data-file
field-id iceberg-field-name nulls-first nulls-last EXTERNAL_TABLE DO_NOT_UPDATE_STATS
client_credentials grant_type full_control invalid_client invalid_grant invalid_request
invalid_scope unauthorized_client unsupported_grant_type RSA-OAEP-256 dsse-kms execute-api
in-memory utf-8 PAY_PER_REQUEST PYICEBERG_HOME created_at updated_at
"""
NO_SETTINGS = set(_NO_SETTINGS.split())
"""They are in the summaries of snapshots, values of settings, columns of catalogs."""

CLASS_NAME = re.compile(r"org\.apache\.iceberg\..*\.[A-Z]\w+")

IS_SERVED_TO_ALL = table_properties(frozenset({"*"}))
"""What the widest setting of an operator serves."""


def settings_of_clients() -> set[str]:
    """All names that look like one of a client's setting."""
    java = set().union(*of_java((*JAVA_TABLES, *JAVA_CONFIGURATION)).values()) if has_jars() else ()
    shape = re.compile(r"[A-Za-z]\w*([._-][A-Za-z0-9]+)+\.?")
    found = {name for name in {*java, *set().union(*of_pyiceberg())} if shape.fullmatch(name)}
    found = {name for name in found if not CLASS_NAME.fullmatch(name)} - NO_SETTINGS
    return found | listed(GO_TABLES) | listed(RUST_TABLES) | listed(CONFIGURATION)


def test_an_operator_can_serve_no_name_of_a_client():
    names = settings_of_clients()
    assert {"snapshot-id", "tag", "limit", "DEFAULT_SCHEME", "s3.endpoint", "location"} <= names
    unlisted = {name for name in names if not is_table_property(name)} - VIEW_PROPERTIES
    assert len(unlisted) > 250
    for name in unlisted | {name.upper() for name in unlisted} | set(REFUSED):
        assert is_of_a_client(name), name
        assert not IS_SERVED_TO_ALL(name), name
        beginning = re.match(r"[A-Za-z0-9]*", name)[0]
        assert not table_properties(frozenset({f"{beginning}*"}))(name), name
        with pytest.raises(Misconfigured, match="is none of a client's own settings"):
            table_properties(frozenset({"team", name}))


HOSTILE = [
    " id > pwned; cat >/dev/null",
    "a b",
    "a\nb",
    "a\0",
    "ü",
    "",
    "write.x",
    "spark.new",
    "x*",
]


@pytest.mark.parametrize("name", HOSTILE)
def test_an_asterisk_serves_neither_odd_names_nor_those_that_clients_may_have_tomorrow(name):
    assert not IS_SERVED_TO_ALL(name)


@pytest.mark.parametrize("name", [*HOSTILE[:5], "a*b", "**", "polynya.x", "my.Factory"])
def test_an_entry_that_cannot_be_served_is_an_error(name):
    with pytest.raises(Misconfigured, match="CUSTOM_PROPERTIES may not have"):
        table_properties(frozenset({name}))


CUSTOM = table_properties(frozenset({"team", "cost-center", "pii.*", "write.delete.mode"}))

WITH_CUSTOM = {
    **dict.fromkeys(("team", "cost-center", "pii.", "pii.a.b", "write.delete.mode"), ""),
    **dict.fromkeys(("teams", "Team", "cost", "pii", "pii.my-impl", "snapshot-id"), "polynya.tag."),
}


@pytest.mark.parametrize("name", WITH_CUSTOM)
def test_an_operators_names_are_set_served_and_removed(name):
    if is_configuration(name):
        with pytest.raises(BadRequest, match="would configure the clients of other users"):
            tags({name: "x"}, is_served=CUSTOM)
    key, shown = f"polynya.property.{name}", WITH_CUSTOM[name] + name
    assert properties([Tag(1, key, "x")], CUSTOM) == {shown: "x"}
    assert client_properties([Tag(1, key, "x")], CUSTOM) == {shown}
    for one in (name, f"polynya.tag.{name}"):
        assert tags({}, [one], is_served=CUSTOM) == {key: None}
        assert is_configuration(name) or tags({one: "y"}, is_served=CUSTOM) == {key: "y"}
    # A tag that DuckLake's users made has the prefix, and may be there beside it.
    native = Tag(1, name, "native")
    assert properties([native], CUSTOM) == {f"polynya.tag.{name}": "native"}
    own = properties([native], CUSTOM)
    with pytest.raises(BadRequest, match="given by this catalog"):
        tags({f"polynya.tag.{name}": "x"}, (), own, CUSTOM)


def test_without_the_setting_nothing_else_is_served():
    names = [*WITH_CUSTOM, *SERVED, *settings_of_clients()]
    no_setting = table_properties(frozenset())
    assert [no_setting(name) for name in names] == [is_table_property(name) for name in names]


# Names that nobody may set: with them a client would load code, or look elsewhere for files.
REFUSED = (
    *WITHHELD.keys() - {"format-version"},
    *("py-io-impl", "io-impl", "IO-Impl", "catalog-impl", "s3.endpoint", "S3.Endpoint", "uri"),
    *("write.py-location-provider.x", "client.factory", "parquet.crypto.factory.class", "x\nimpl"),
    *("my.Factory", "middle-class", "write.metadata.metrics.column.impl", "polynya.sort-order"),
    *("polynya.property.a", "polynya.tag.py-io-impl", "polynya.tag.polynya.tag.a"),
)
KEPT_AS_TAGS = tuple(name for name, reason in WITHHELD.items() if not is_configuration(name))


@pytest.mark.parametrize("is_served", [is_table_property, is_label])
@pytest.mark.parametrize("name", sorted(set(REFUSED).difference(KEPT_AS_TAGS)))
def test_refused(name, is_served):
    with pytest.raises(BadRequest, match="would configure the clients of other users"):
        tags({name: "x"}, is_served=is_served)
    # Whatever somebody has written into the catalog before, or beside it.
    written = [Tag(1, f"polynya.property.{name}", "x"), Tag(1, f"x.{name}", "x")]
    assert all(one.startswith("polynya.tag.") for one in properties(written, is_served))


# What clients set, and what they get back; None: the same.
SERVED = {
    "write.delete.mode": None,
    "write.metadata.metrics.column.a.b": None,
    "read.split.target-size": None,
    "commit.retry.num-retries": None,
    "owner": None,
    "comment": None,
    "team": "polynya.tag.team",
    "a.b": "polynya.tag.a.b",
    "polynya.tag.a.b": "polynya.tag.a.b",
    "polynya.tag.comment": "polynya.tag.comment",
    "polynya.tag.write.delete.mode": "write.delete.mode",
    "snapshot-id": "polynya.tag.snapshot-id",
    "DEFAULT_SCHEME": "polynya.tag.DEFAULT_SCHEME",
    " id > pwned; cat >/dev/null": "polynya.tag. id > pwned; cat >/dev/null",
    **{name: f"polynya.tag.{name}" for name in KEPT_AS_TAGS if name != "format-version"},
}


@pytest.mark.parametrize("name", SERVED)
def test_what_clients_set_they_get_back_and_can_remove(name):
    expected = SERVED[name] or name
    kept = [Tag(1, key, value) for key, value in values(tags({name: "x"})).items()]
    assert properties(kept) == {expected: "x"}
    assert client_properties(kept) == {expected}
    for removed in (name, expected):
        assert tags({}, [removed]) == {kept[0].key: None}
    # A client that creates a table from the answer to a staged creation sends it back.
    assert tags({expected: "x"}) == tags({name: "x"})


LABELS = ["prop", "created-at", "last_modified", "owner", "comment", "User1"]


@pytest.mark.parametrize("name", LABELS)
def test_words_of_the_users_stay_on_views_and_namespaces(name):
    kept = [Tag(1, key, "x") for key in values(tags({name: "x"}, is_served=is_label))]
    assert properties(kept, is_label) == {name: "x"}


def test_a_tag_of_ducklake_is_not_a_clients():
    native, set_by_client = Tag(1, "a.b", "native"), Tag(1, "polynya.property.a.b", "client's")
    own = properties([native])
    assert own == {"polynya.tag.a.b": "native"}
    assert client_properties([native]) == set()
    assert tags({"polynya.tag.a.b": "native"}, (), own) == {}
    for name in ("a.b", "polynya.tag.a.b"):
        with pytest.raises(BadRequest, match="given by this catalog"):
            tags({name: "x"}, (), own)
        with pytest.raises(BadRequest, match="cannot be removed"):
            tags({}, [name], own)
    for both in ([native, set_by_client], [set_by_client, native]):
        assert properties(both) == {"polynya.tag.a.b": "client's"}


# Values that no file of a DuckLake can have.
VALUES = [
    ("write.format.default", "orc", "must be parquet"),
    ("write.delete.format.default", "avro", "must be parquet"),
    ("write.parquet.compression-codec", "lz4", "must be one of uncompressed, snappy, gzip"),
    ("write.parquet.compression-codec", "LZO", "must be one of"),
    ("write.delete.parquet.compression-codec", "lz4", "must be one of"),
    ("polynya.tag.write.parquet.compression-codec", "lz4", "must be one of"),
]


@pytest.mark.parametrize(("name", "value", "message"), VALUES)
def test_values_that_are_refused(name, value, message):
    with pytest.raises(BadRequest, match=message):
        tags({name: value})


@pytest.mark.parametrize("value", ["zstd", "ZSTD", "lz4_raw", "brotli", "uncompressed"])
def test_codecs(value):
    key = "polynya.property.write.parquet.compression-codec"
    assert tags({"write.parquet.compression-codec": value}) == {key: value}


NUL = "a\0b"
FIELD = {"source-id": 1, "field-id": 1000, "transform": "identity"}
FILE = {"snapshot-id": 1, "statistics-path": "s3://b/s"}


@pytest.mark.parametrize("name", [NUL, "a\\u0000b", "plain"])
def test_a_stored_text_with_a_nul_is_as_if_it_was_not_there(name):
    """Requests may have none now; DuckDB's process aborts at one in the metadata of a table."""
    is_shown = name != NUL
    specs = Tag(
        1, PARTITION_SPECS, json.dumps([{"partition-id": 1, "fields": [FIELD | {"name": name}]}])
    )
    assert bool(client_specs([specs])) is is_shown
    files = [{"at": 1, "file": FILE | {"blob-metadata": [name]}}]
    stored = stored_files("statistics", [Tag(1, STATISTICS, json.dumps(files))])
    assert bool(stored) is is_shown
    order = Tag(1, SORT_ORDER, json.dumps([[1, "asc", "nulls-first", name]]))
    fields = (Field(1, "i", Primitive("int")),)
    assert bool(tagged_sort_fields([order], fields)) is is_shown
    text = ViewText(1, None, "SELECT 1", json.dumps({"summary": {"k": name}}))
    assert bool(_client_version(text)) is is_shown
    commit = ClientSnapshot(1, 0, 5, "append", json.dumps({"k": name}))
    assert _merged({"n": "1"}, [commit], 1).get("k") == (name if is_shown else None)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "[1]", "5", '"k"', "null", "{", '{"k": "\\u0000"}']
)
def test_a_summary_that_somebody_has_changed_says_nothing(text):
    own = _merged({"n": "1"}, [], 1)
    assert _merged({"n": "1"}, [ClientSnapshot(1, 0, 5, "append", text)], 1) == own
    assert client_of(text) == client_of("")


def test_what_is_no_text_in_a_summary_is_left_out():
    text = json.dumps({"k": {"l": 1}, "engine-name": "spark", "engine-version": 4})
    merged = _merged({}, [ClientSnapshot(1, 0, 5, "append", text)], 1)
    assert "k" not in merged and merged["engine-name"] == client_of(text) == "spark"


def test_a_commit_that_can_never_succeed_fails_within_half_a_minute():
    """Java and PyIceberg wait 100 ms (commit.retry.min-wait-ms), and twice as long each time."""
    retries = int(DEFAULTS_OF_WRITERS["commit.retry.num-retries"])
    longest = int(DEFAULTS_OF_WRITERS["commit.retry.max-wait-ms"])
    assert sum(min(100 * 2**number, longest) for number in range(retries)) < 30_000


def test_tags_that_python_refuses_to_read_are_none():
    deep = "[" * 100_000
    assert not client_specs([Tag(1, PARTITION_SPECS, deep)])
    assert not stored_files("statistics", [Tag(1, STATISTICS, deep)])
    ids = Tag(1, REQUIRED_COLUMNS, f"1,{'9' * 5000},x,2")
    assert required_columns([ids]) == {1, 2}
