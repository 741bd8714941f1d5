"""Schemas of manifests: those that clients write are read, what leads a decoder astray is not."""

import io
import json

import fastavro
import pytest
from polynya.iceberg.avro.untrusted_schema import Malformed, ReadAs, record_reader

from tests.support.writes.hostile_avro import array, long, record

FIXED = {"type": "fixed", "name": "x", "size": 16}
DECIMAL = {**FIXED, "logicalType": "decimal", "precision": 9, "scale": 2, "name": "decimal_9_2"}
UUID = {**FIXED, "logicalType": "uuid", "name": "uuid_fixed"}
PAIR = record("k121_v122", "int", "long")


def entry(*types: object) -> dict:
    return record("r102", *types)


ACCEPTED = [
    entry("null", "int"),
    entry(array("int")),
    entry(array(["null", "int"])),
    entry(array(record("b", "null", "string"))),
    entry({"type": "string", "logicalType": "uuid"}),
    # Java names a fixed type that it has written before; PyIceberg writes it again.
    entry(["null", DECIMAL], ["null", "decimal_9_2"]),
    entry(["null", DECIMAL], ["null", DECIMAL]),
    entry(["null", UUID], ["null", "uuid_fixed"]),
    # iceberg-rust has the fixed type within the decimal.
    entry({"type": FIXED, "logicalType": "decimal", "precision": 9, "scale": 2}),
    # DuckDB
    entry({"type": "long"}, ["null", {"type": "bytes"}]),
    entry(
        {"type": "int", "logicalType": "date"}, [{"type": "long", "adjust-to-utc": True}, "null"]
    ),
    entry(["null", {**array(PAIR), "logicalType": "map"}], ["null", array(PAIR)]),
    entry("boolean", "float", "double", "bytes", "string"),
]
REFUSED = [
    "long",
    array("null"),
    entry(),
    entry("null"),
    entry(array("null")),
    entry(["null", array("null")]),
    entry(array(record("b", "null"))),
    entry(record("b", "null"), array("b")),
    entry(array({**FIXED, "size": 0})),
    entry({**FIXED, "size": -1}),
    entry(FIXED, {**FIXED, "size": 8}),
    entry({**FIXED, "name": "a.x"}),
    entry({**FIXED, "aliases": ["y"]}, "y"),
    entry({**FIXED, "namespace": "a"}),
    {**entry("int"), "namespace": "a"},
    entry({"type": "map", "values": "int"}),
    entry({"type": "enum", "name": "e", "symbols": ["a"]}),
    entry(["null", "r102"]),
    entry("r102"),
    entry(array("r102")),
    entry("unknown"),
    entry(["int", "string"]),
    entry(["null", "int", "string"]),
    entry(["null", "null"]),
    entry([]),
    {"type": "record", "name": "a", "fields": [{"name": "f", "type": "int", "aliases": ["g"]}]},
    {"type": "record", "name": "a", "fields": [{"name": "f", "type": "int"}] * 2},
    {"type": "record"},
    7,
    None,
]


@pytest.mark.parametrize("schema", ACCEPTED, ids=json.dumps)
def test_a_schema_of_icebergs_types_is_accepted(schema):
    record_reader(json.dumps(schema).encode(), {})


@pytest.mark.parametrize("schema", REFUSED, ids=json.dumps)
def test_another_schema_is_refused(schema):
    with pytest.raises(Malformed):
        record_reader(json.dumps(schema).encode(), {})


@pytest.mark.parametrize("text", [b"", b"{", b"[" * 100_000, b'"' + b"x" * 2**21 + b'"'])
def test_a_text_that_is_no_schema_is_refused(text):
    with pytest.raises(Malformed):
        record_reader(text, {})


PAIRS = {number: number * 10**9 for number in range(-70, 70)}
MAP = array({**record("kv"), "fields": [{"name": n, "type": "long"} for n in ("key", "value")]})
LIST = [{"key": key, "value": value} for key, value in PAIRS.items()]
VALUES = [
    *(("long", value, value) for value in (0, -1, 63, 64, -65, 2**31, -(2**63), 2**63 - 1)),
    *(("string", value, value) for value in ("", "ä" * 100, "x" * 4096)),
    (["null", "long"], None, None),
    (["long", "null"], 5, 5),
    (MAP, LIST, PAIRS),
    (["null", MAP], [], {}),
    (array(array("long")), [[1, 2**40], [], [3] * 70], ...),
    (array(record("b", ["null", "string"], "double")), [{"f0": "a", "f1": 1.5}] * 3, ...),
    (FIXED, b"0123456789abcdef", None),
    *((of, 1, None) for of in ("boolean", "float", "double")),
    ("bytes", b"\0" * 300, None),
]
"""A type, a value, and what is read of it; `...`: it is only skipped."""


@pytest.mark.parametrize("case", VALUES, ids=lambda case: str(case)[:40])
def test_values_are_those_that_fastavro_has_written(case):
    """Each is skipped, too: the value after it is found."""
    type_, value, expected = case
    schema = record("e", type_, "string")
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), {"f0": value, "f1": "after"})
    body, text = out.getvalue(), json.dumps(schema).encode()
    assert record_reader(text, {"f1": ReadAs.VALUE})(body, 0) == ({"f1": "after"}, len(body))
    if expected is not ...:
        wanted = ReadAs.PAIRS if isinstance(expected, dict) else ReadAs.VALUE
        assert record_reader(text, {"f0": wanted})(body, 0) == ({"f0": expected}, len(body))


def test_an_array_in_blocks_with_their_sizes():
    """As Avro's blocking encoder writes it; fastavro does not."""
    block = long(1) + long(2)
    body = b"".join([long(-1), long(len(block)), block, long(1), long(3), long(4), b"\0", long(9)])
    text = json.dumps(record("e", MAP, "long")).encode()
    assert record_reader(text, {"f1": ReadAs.VALUE})(body, 0) == ({"f1": 9}, len(body))
    found = record_reader(text, {"f0": ReadAs.PAIRS})(body, 0)
    assert found == ({"f0": {1: 2, 3: 4}}, len(body))


CUT = [
    ("long", b"\x80"),
    ("string", long(5) + b"abcd"),
    ("double", b"1234"),
    (MAP, long(2) + b"\0"),
]


@pytest.mark.parametrize(("type_", "body"), CUT, ids=str)
def test_values_that_are_cut_off(type_, body):
    for fields in ({}, {"f0": ReadAs.PAIRS if type_ is MAP else ReadAs.VALUE}):
        with pytest.raises((Malformed, IndexError)):
            record_reader(json.dumps(record("e", type_)).encode(), fields)(body, 0)
