"""No text of a request has a NUL: where DuckLake has no text, JSON in a tag could keep it.

DuckDB 1.5.5 aborts its process when the metadata of a table has one.
"""

import json

import pytest
import requests
from polynya.rest.schemas import parse

from tests.support.writes.twins import catalog_rows

SCRIPT = "CREATE TABLE t(id BIGINT)"
NUL = "a\0b"
FIELDS = [{"id": 1, "name": "id", "type": "long", "required": False}]
SCHEMA = {"type": "struct", "schema-id": 0, "fields": FIELDS}
SPEC = {"fields": [{"source-id": 1, "field-id": 1000, "name": NUL, "transform": "bucket[2]"}]}
VIEW = {
    "name": "v",
    "schema": {**SCHEMA, "fields": [{**FIELDS[0], "doc": NUL}]},
    "view-version": {
        "version-id": 1,
        "timestamp-ms": 1,
        "schema-id": 0,
        "summary": {},
        "representations": [{"type": "sql", "sql": "SELECT 1::BIGINT AS id", "dialect": "duckdb"}],
        "default-namespace": ["main"],
    },
    "properties": {},
}
SUMMARY = {**VIEW, "schema": SCHEMA, "view-version": {**VIEW["view-version"], "summary": {NUL: ""}}}
BODIES = {
    "the name of a partition field": (
        "/namespaces/main/tables",
        {"name": "p", "schema": SCHEMA, "partition-spec": SPEC},
    ),
    "the comment of a column of a view": ("/namespaces/main/views", VIEW),
    "the summary of a version of a view": ("/namespaces/main/views", SUMMARY),
}


@pytest.mark.parametrize(("path", "body"), BODIES.values(), ids=BODIES)
def test_a_text_with_a_nul_is_refused(path, body, pair, served):
    before = catalog_rows(pair.lake)
    answer = requests.post(f"{served.catalog_uri}/v1/lake{path}", json=body, timeout=60)
    error = answer.json()["error"]
    assert error["code"] == answer.status_code == 400, answer.text
    assert error["type"] == "BadRequestException" and "NUL" in error["message"]
    assert catalog_rows(pair.lake) == before


def test_a_backslash_before_u0000_is_a_text():
    texts = {r"\u0000": r"\\u0000", "\\\\": r"\\\\"}
    assert parse(dict, json.dumps(texts).encode()) == texts
