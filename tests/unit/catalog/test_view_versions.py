"""Which version of a view a commit makes current, and what is refused."""

import json

import pytest
from polynya.catalog.views import current_version, query, tagged_version, view_commit
from polynya.rest.requests import CommitViewRequest, ViewVersion
from polynya.rest.schemas import parse
from polynya.runtime.errors import BadRequest

EMPTY = {"type": "struct", "fields": []}
OTHER = {
    "type": "struct",
    "fields": [{"id": 1, "name": "a", "required": False, "type": "int"}],
}


def version(version_id: int, sql: str, schema_id: int = 0, **changed):
    return {
        "version-id": version_id,
        "timestamp-ms": version_id * 1000,
        "schema-id": schema_id,
        "summary": {},
        "representations": [{"type": "sql", "sql": sql, "dialect": "duckdb"}],
        "default-namespace": ["main"],
        **changed,
    }


DOCUMENT = {
    "versions": [version(1, "SELECT 1"), version(4, "SELECT 4")],
    "schemas": [{**EMPTY, "schema-id": 0}],
}


def commit(*updates):
    body = json.dumps({"updates": updates}).encode()
    return view_commit(parse(CommitViewRequest, body).updates)


def adding(new, schema=None):
    schemas = [{"action": "add-schema", "schema": {**schema, "schema-id": 9}}] if schema else []
    return [*schemas, {"action": "add-view-version", "view-version": new}]


CURRENT = {"action": "set-current-view-version", "view-version-id": -1}

# Updates, the id and the SQL of the version that is current then.
CASES = {
    "properties only": ([{"action": "set-properties", "updates": {"a": "b"}}], None),
    "a new version": ([*adding(version(5, "SELECT 5")), CURRENT], (5, "SELECT 5")),
    "an id that another client has taken": (
        [*adding(version(2, "SELECT 5")), CURRENT],
        (5, "SELECT 5"),
    ),
    "an equal version": ([*adding(version(5, "SELECT 1")), CURRENT], (1, "SELECT 1")),
    "the same SQL with another schema": (
        [*adding(version(5, "SELECT 1", -1), OTHER), CURRENT],
        (5, "SELECT 1"),
    ),
    "the same SQL with an equal schema": (
        [*adding(version(5, "SELECT 1", -1), EMPTY), CURRENT],
        (1, "SELECT 1"),
    ),
    "the same SQL with another default catalog": (
        [*adding(version(5, "SELECT 1", **{"default-catalog": "c"})), CURRENT],
        (5, "SELECT 1"),
    ),
    "an earlier version": ([{**CURRENT, "view-version-id": 1}], (1, "SELECT 1")),
    "the last of two": (
        [*adding(version(5, "SELECT 5")), *adding(version(6, "SELECT 6")), CURRENT],
        (6, "SELECT 6"),
    ),
}


@pytest.mark.parametrize(("updates", "expected"), CASES.values(), ids=CASES)
def test_the_current_version(updates, expected):
    found = current_version(commit(*updates), DOCUMENT)
    assert (found and (found[1]["version-id"], found[0])) == expected


REFUSED = {
    "no such version": ([{**CURRENT, "view-version-id": 3}], "no version 3"),
    "no such schema": ([*adding(version(5, "SELECT 5", 7)), CURRENT], "schema 7"),
    "format version 2": ([{"action": "upgrade-format-version", "format-version": 2}], "version 1"),
}


@pytest.mark.parametrize(("updates", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals(updates, message):
    with pytest.raises(BadRequest, match=message):
        current_version(commit(*updates), DOCUMENT)


# The dialects of a version, and the refusal.
DIALECTS = [
    (["duckdb"], None),
    (["DuckDB"], None),
    ([], "no dialect"),
    (["spark"], "send SQL for `duckdb` too"),
    (["duckdb", "spark"], "SQL for spark, which the setting VIEW_DIALECTS does not name"),
    (["duckdb", "Trino"], None),
    (["trino", "duckdb", "presto"], None),
    (["trino"], "the view has SQL for trino: .* send SQL for `duckdb` too"),
    (["trino", "Trino"], "multiple queries for dialect trino"),
    (["duckdb", "trino", "Trino"], "multiple queries for dialect trino"),
]


@pytest.mark.parametrize(("dialects", "message"), DIALECTS)
def test_dialects(dialects, message):
    [made] = commit(*adding(version(5, "", representations=texts_for(dialects)))).versions
    if message is None:
        assert query(made, {"trino", "presto"}) in {"SELECT 'duckdb'", "SELECT 'DuckDB'"}
    else:
        with pytest.raises(BadRequest, match=message):
            query(made, {"trino", "presto"})


def texts_for(dialects):
    return [{"type": "sql", "sql": f"SELECT '{one}'", "dialect": one} for one in dialects]


@pytest.mark.parametrize("sql", ["SELECT '\0'", "x" * 100_001])
def test_texts_of_other_dialects_are_as_short_as_duckdbs(sql):
    texts = [*texts_for(["duckdb"]), {"type": "sql", "sql": sql, "dialect": "trino"}]
    made = ViewVersion.model_validate(version(5, "", representations=texts))
    with pytest.raises(BadRequest, match="has a NUL, or more than 100000 characters"):
        query(made, {"trino"})


TRINO_FIRST = texts_for(["trino", "duckdb", "presto"])
WITH_TRINO = {
    **DOCUMENT,
    "versions": [version(1, "SELECT 1"), version(4, "", representations=TRINO_FIRST)],
}


def test_the_tag_has_the_other_texts_in_their_order():
    [made] = commit(*adding(version(5, "", representations=TRINO_FIRST))).versions
    schema = commit(*adding(version(5, "x"), EMPTY)).schemas[0]
    assert tagged_version(made, schema)["representations"] == [
        TRINO_FIRST[0],
        None,
        TRINO_FIRST[2],
    ]
    [alone] = commit(*adding(version(5, "SELECT 5"))).versions
    assert "representations" not in tagged_version(alone, schema)


# The texts of a new version, and the id of the equal one.
EQUAL = {
    "the same texts": (TRINO_FIRST, 4),
    "another order": (TRINO_FIRST[::-1], 5),
    "another text for Trino": ([{**TRINO_FIRST[0], "sql": "x"}, *TRINO_FIRST[1:]], 5),
    "one text": (texts_for(["duckdb"]), 5),
}


@pytest.mark.parametrize(("texts", "expected"), EQUAL.values(), ids=EQUAL)
def test_versions_with_other_texts_are_others(texts, expected):
    made = commit(*adding(version(5, "", representations=texts)), CURRENT)
    sql, record = current_version(made, WITH_TRINO, {"trino", "presto"})
    assert (sql, record["version-id"]) == ("SELECT 'duckdb'", expected)
    _, earlier = current_version(commit({**CURRENT, "view-version-id": 4}), WITH_TRINO)
    assert [text and text["dialect"] for text in earlier["representations"]] == [
        "trino",
        None,
        "presto",
    ]
