"""Schemas with which a few bytes would become gigabytes of memory are refused before decoding."""

import json

import pytest
from polynya.iceberg.avro.malformed import Malformed
from polynya.iceberg.avro.untrusted_schema import check_schema


def record(name: str, *types) -> dict:
    return {"type": "record", "name": name, "fields": [{"name": "f", "type": t} for t in types]}


def array(items) -> dict:
    return {"type": "array", "items": items}


FIXED = {"type": "fixed", "name": "x", "size": 16}

ACCEPTED = [
    "long",
    record("a", "null"),
    record("a", array("int")),
    record("a", array(["null", "int"])),
    record("a", array(record("b", "null", "string"))),
    record("a", record("b", "int"), array("b")),
    record("a", {"type": "map", "values": "null"}),
    record("a", FIXED, array("x")),
    record("a", {"type": "string", "logicalType": "uuid"}),
    record("a", {"type": "array", "items": record("kv", "int", "long"), "logicalType": "map"}),
]
REFUSED = [
    array("null"),
    record("a", array("null")),
    record("a", ["null", array("null")]),
    record("a", array(record("b", "null"))),
    record("a", record("b", "null"), array("b")),
    record("a", array({**FIXED, "size": 0})),
    record("a", {"type": "map", "values": array("null")}),
    record("a", ["null", "a"]),
    record("a", array("a")),
    record("a", "unknown"),
    {"type": "record"},
    7,
    None,
]


@pytest.mark.parametrize("schema", ACCEPTED, ids=json.dumps)
def test_a_schema_whose_values_need_bytes_is_accepted(schema):
    check_schema(json.dumps(schema).encode())


@pytest.mark.parametrize("schema", REFUSED, ids=json.dumps)
def test_a_schema_whose_values_may_need_none_or_nest_without_end_is_refused(schema):
    with pytest.raises(Malformed):
        check_schema(json.dumps(schema).encode())


@pytest.mark.parametrize("text", [b"", b"{", b"[" * 100_000, b'"' + b"x" * 2**21 + b'"'])
def test_a_text_that_is_no_schema_is_refused(text):
    with pytest.raises(Malformed):
        check_schema(text)
