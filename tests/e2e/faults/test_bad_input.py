"""Every kind of bad input gets the answer that the documents and the specification describe."""

import hashlib
import inspect
import json
import re
import secrets
import socket
import subprocess
import threading
import time
from contextlib import suppress
from io import BytesIO
from types import SimpleNamespace
from urllib.parse import quote

import boto3
import fastavro
import pytest
from polynya.aws_lambda import api_handler, object_handler
from polynya.catalog.lakes import STATEMENT_SECONDS
from polynya.ducklake.connection.database import Database
from polynya.runtime import budget
from polynya.runtime.errors import READ_ONLY
from polynya.storage.aws import Clients
from polynya_local.clients import pyiceberg
from polynya_local.processes.serving import COMMAND, REGION, environment, serving

from tests.aws.dynamodb import TABLE as CACHE_TABLE
from tests.aws.stand_in import OBJECT_LAMBDA_TIMEOUT_S, REST_TIMEOUT_S
from tests.support.openapi import ENVELOPE, validator
from tests.support.servers.in_process import (
    ALIAS,
    CACHE_BUCKET,
    cache_settings,
    reset_functions,
    running,
    settings,
    standing_in,
)
from tests.support.servers.raw_http import send

SERVE = [*COMMAND, "serve", "--port", "0", "--s3-endpoint"]
LONG = "n" * 3000
NAMES = [
    "aA",
    "a%41",
    "a%2541",
    "a/b",
    "x.y",
    "ünï ❄",
    "..",
    ".",
    "a b+c",
    "tables",
    "a?b#c",
    "'\"\\",
    "p q",
    "p+q",
]
AMBIGUOUS = "p+q"
BIG = 200_000  # characters of incompressible text: three of them exceed 350 KB
LAKE = f"""
ATTACH 'ducklake:{{{{CATALOG}}}}' AS lake (DATA_PATH '{{{{DATA_PATH}}}}');
USE lake;
CREATE TABLE t(i INTEGER, s VARCHAR);
CALL lake.set_option('data_inlining_row_limit', 0, table_name => 't');
INSERT INTO t SELECT i, 'v' || i FROM range(1000) AS r(i);
DELETE FROM t WHERE i < 5;
CREATE TABLE inlined(i INTEGER, s VARCHAR);
INSERT INTO inlined VALUES (1, 'a'), (2, 'b');
CREATE TABLE big(s VARCHAR);
INSERT INTO big VALUES ('{secrets.token_hex(BIG // 2)}'), ('{secrets.token_hex(BIG // 2)}'),
  ('{secrets.token_hex(BIG // 2)}');
CREATE SCHEMA "dot.ted";
CREATE TABLE "dot.ted".t(i INTEGER);
CREATE SCHEMA "sla/sh";
CREATE TABLE "sla/sh".t(i INTEGER);
CREATE SCHEMA "sp ace";
CREATE TABLE "sp ace".t(i INTEGER);
CREATE VIEW "sp ace"."v w" AS SELECT 1 AS i;
"""
LAKE += "".join(
    f'CREATE TABLE "{name.replace(chr(34), chr(34) * 2)}"(i INTEGER);\n' for name in NAMES
)


@pytest.fixture(scope="module")
def make_lake(lake):
    """Writes the lake of this module under a given name."""
    return lambda name: lake.write(name, LAKE)


@pytest.fixture(scope="module")
def odd(make_lake):
    return make_lake("bad_input")


@pytest.fixture(scope="module")
def bridge(odd, moto):
    with serving(odd.database.url, moto, delivery="object-lambda", page=False) as bridge:
        yield bridge


def error_of(answer) -> dict:
    body = json.loads(answer.body)
    validator(ENVELOPE).validate(body)
    assert body["error"]["code"] == answer.status
    return body["error"]


def table_of(uri: str, table: str = "t", namespace: str = "main", prefix: str = "lake") -> dict:
    path = f"/v1/{prefix}/namespaces/{quote(namespace, safe='')}/tables/{quote(table, safe='')}"
    answer = send(uri, "GET", path)
    assert answer.status == 200, answer.text
    return json.loads(answer.body)


# The catalog

WAREHOUSE, NAMESPACE = "NoSuchWarehouseException", "NoSuchNamespaceException"
TABLE, VIEW, BAD = "NoSuchTableException", "NoSuchViewException", "BadRequestException"
CATALOG = [
    ("config?warehouse=other", 404, WAREHOUSE),
    ("config?warehouse=lake@999999", 404, WAREHOUSE),
    ("config?warehouse=lake@-1", 404, WAREHOUSE),
    ("config?warehouse=lake@", 404, WAREHOUSE),
    ("config?warehouse=lake@1.5", 404, WAREHOUSE),
    ("config?warehouse=lake@" + "9" * 30, 404, WAREHOUSE),
    ("config?warehouse=%00", 404, WAREHOUSE),
    ("config?warehouse=" + LONG, 404, WAREHOUSE),
    ("other/namespaces", 404, WAREHOUSE),
    ("other/namespaces/main", 404, WAREHOUSE),
    ("other/namespaces/main/tables/t", 404, WAREHOUSE),
    ("other/namespaces/main/views", 404, WAREHOUSE),
    ("lake--at-999999/namespaces", 404, WAREHOUSE),
    ("lake@3/namespaces", 404, WAREHOUSE),
    ("%00/namespaces", 404, WAREHOUSE),
    ("lake/namespaces?parent=no_such", 404, NAMESPACE),
    ("lake/namespaces?parent=%00", 404, NAMESPACE),
    ("lake/namespaces?parent=main%1Fdeeper", 404, NAMESPACE),
    ("lake/namespaces/no_such", 404, NAMESPACE),
    ("lake/namespaces/MAIN", 404, NAMESPACE),
    ("lake/namespaces/main%1Fdeeper", 404, NAMESPACE),
    ("lake/namespaces/" + LONG, 404, NAMESPACE),
    ("lake/namespaces/no_such/tables", 404, NAMESPACE),
    ("lake/namespaces/no_such/views", 404, NAMESPACE),
    ("lake/namespaces/main/tables/no_such", 404, TABLE),
    ("lake/namespaces/no_such/tables/t", 404, TABLE),
    ("lake/namespaces/no_such/tables/snapshots", 404, TABLE),
    ("lake/namespaces/default%1Ft/tables/snapshots", 404, TABLE),  # as Spark asks for t.snapshots
    ("lake/namespaces/main/tables/T", 404, TABLE),
    ("lake/namespaces/main/tables/" + LONG, 404, TABLE),
    ("lake/namespaces/main/tables/%FF%FE", 404, TABLE),
    ("lake/namespaces/main/tables/t%27%20OR%201=1--", 404, TABLE),
    ("lake/namespaces/main/tables/ducklake_metadata", 404, TABLE),
    ("lake/namespaces/main/tables/t/credentials", 404, TABLE),
    ("lake/namespaces/main/views/no_such", 404, VIEW),
    ("lake/namespaces/no_such/views/no_such", 404, VIEW),
    ("lake/namespaces/main/views/%00", 404, VIEW),
    ("lake/namespaces?pageSize=0", 400, BAD),
    ("lake/namespaces?pageSize=-1", 400, BAD),
    ("lake/namespaces?pageSize=many", 400, BAD),
    ("lake/namespaces?pageSize=1.5", 400, BAD),
    ("lake/namespaces?pageSize=", 400, BAD),
    ("lake/namespaces?pageToken=!", 400, BAD),
    ("lake/namespaces?pageToken=_w==", 400, BAD),
    ("lake/namespaces?pageToken=%C3%BC", 400, BAD),
    ("lake/namespaces?pageToken=%00", 400, BAD),
    ("lake/namespaces/main/tables?pageSize=0", 400, BAD),
    ("lake/namespaces/main/tables?pageToken=!", 400, BAD),
    ("lake/namespaces/main/views?pageSize=0", 400, BAD),
    ("lake/namespaces/main/tables/t?snapshots=some", 400, BAD),
    ("lake/namespaces/main/tables/t?snapshots=ALL", 400, BAD),
]


@pytest.mark.parametrize("target, status, type", CATALOG)
def test_the_catalog_names_what_is_wrong(bridge, target, status, type):
    answer = send(bridge.catalog_uri, "GET", f"/v1/{target}")
    assert (answer.status, error_of(answer)["type"]) == (status, type), answer.text


@pytest.mark.parametrize("target", ["tables/%00", "tables/t%00", "views/%00x"])
@pytest.mark.parametrize("namespace", ["main", "%00", "no%00such"])
def test_a_nul_in_a_name_is_a_client_error(bridge, namespace, target):
    answer = send(bridge.catalog_uri, "GET", f"/v1/lake/namespaces/{namespace}/{target}")
    assert answer.status in {400, 404} and error_of(answer)["type"] in {BAD, TABLE, VIEW}


@pytest.mark.parametrize(
    "target", ["", "v1", "v1/", "v1/no", "v1/lake", "v1/lake/tables/t", "v2/config"]
)
def test_an_unknown_route_is_not_found(bridge, target):
    answer = send(bridge.catalog_uri, "GET", f"/{target}")
    assert error_of(answer)["message"] and answer.status == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    "path", ["v1/config", "v1/lake/namespaces", "v1/lake/namespaces/main/tables/t", "v1/%00", ""]
)
def test_a_write_is_forbidden(bridge, method, path):
    headers = {"Content-Length": "0"}
    answer = send(bridge.catalog_uri, method, f"/{path}", headers)
    assert answer.status == 403
    error = {"message": READ_ONLY, "type": "ForbiddenException", "code": 403}
    assert error_of(answer) == error


def test_no_write_is_advertised(bridge):
    answer = send(bridge.catalog_uri, "GET", "/v1/config")
    methods = {endpoint.split()[0] for endpoint in json.loads(answer.body)["endpoints"]}
    posts = [e for e in json.loads(answer.body)["endpoints"] if e.startswith("POST")]
    assert methods == {"GET", "HEAD", "POST"} and {one.rpartition("/")[2] for one in posts} == {
        "metrics",
        "plan",
        "tasks",
    }


HEADERS = [
    {"Authorization": "Bearer None"},  # PyIceberg without a token
    {"Authorization": "Basic %%%"},
    {"If-None-Match": '"'},
    {"If-None-Match": ""},
    {"X-Iceberg-Access-Delegation": "vended-credentials,remote-signing"},
    {"Accept": "text/html"},
    {"Content-Type": "application/json; charset=ünknown"},
    {"Cookie": "a=b; c"},
    {"Idempotency-Key": "x"},
]


@pytest.mark.parametrize("headers", HEADERS)
def test_an_odd_header_is_harmless(bridge, headers):
    for target in ("config", "lake/namespaces/main/tables/t"):
        assert send(bridge.catalog_uri, "GET", f"/v1/{target}", headers).status == 200


def test_every_name_leads_to_its_own_table(bridge, odd):
    """Compares table UUIDs, because a name that is read wrongly may be that of another table."""
    sql = """SELECT s.schema_name, t.table_name, t.table_uuid::text FROM ducklake_table AS t
      JOIN ducklake_schema AS s USING (schema_id)"""
    truth = {(namespace, name): uuid for namespace, name, uuid in odd.database.run(sql)}
    names = {uuid: name for name, uuid in truth.items()}
    wrong = {}
    for (namespace, name), uuid in truth.items():
        if name == AMBIGUOUS:
            continue
        words = quote(namespace, safe=""), quote(name, safe="")
        path = "/v1/lake/namespaces/{}/tables/{}".format(*words)
        answer = send(bridge.catalog_uri, "GET", path)
        if answer.status != 200:
            wrong[namespace, name] = answer.text
        elif (found := json.loads(answer.body)["metadata"]["table-uuid"]) != uuid:
            wrong[namespace, name] = names[found]
    assert not wrong


def test_java_writes_a_space_as_a_plus(bridge):
    literal = table_of(bridge.catalog_uri, "a b+c")
    path = "/v1/lake/namespaces/{}/tables/{}"
    answer = send(bridge.catalog_uri, "GET", path.format("main", "a+b%2Bc"))
    assert json.loads(answer.body) == literal
    assert send(bridge.catalog_uri, "HEAD", path.format("sp+ace", "t")).status == 204
    assert send(bridge.catalog_uri, "GET", "/v1/lake/namespaces/sp+ace/tables").status == 200
    assert send(bridge.catalog_uri, "HEAD", "/v1/lake/namespaces/sp+ace/views/v+w").status == 204
    assert send(bridge.catalog_uri, "GET", path.format("main", "a+b+d")).status == 404


def test_an_ambiguous_plus_is_refused(bridge):
    path = "/v1/lake/namespaces/main/tables/"
    for name in ("p+q", "p%2Bq"):  # API Gateway makes these two equal
        error = error_of(send(bridge.catalog_uri, "GET", path + name))
        assert error["code"] == 400 and "rename one of them" in error["message"]
    table_of(bridge.catalog_uri, "p q")


def test_duckdb_writes_a_dot_as_the_unit_separator(bridge):
    tables = send(bridge.catalog_uri, "GET", "/v1/lake/namespaces/dot%1Fted/tables")
    assert json.loads(tables.body)["identifiers"] == [{"namespace": ["dot.ted"], "name": "t"}]
    parent = send(bridge.catalog_uri, "GET", "/v1/lake/namespaces?parent=dot%1Fted")
    assert (parent.status, json.loads(parent.body)) == (200, {"namespaces": []})


# The files


def virtual_files_of(bridge, table: str = "t") -> dict[str, str]:
    """Targets of the virtual files of a table's newest snapshot, by their kinds."""
    loaded = table_of(bridge.catalog_uri, table)
    locations = [loaded["metadata-location"], loaded["metadata"]["snapshots"][-1]["manifest-list"]]
    body = send(bridge.s3_endpoint, "GET", target_of(locations[1])).body
    for manifest in [record["manifest_path"] for record in fastavro.reader(BytesIO(body))]:
        locations.append(manifest)
        entries = fastavro.reader(
            BytesIO(send(bridge.s3_endpoint, "GET", target_of(manifest)).body)
        )
        locations += [entry["data_file"]["file_path"] for entry in entries]
    kinds = {}
    for location in locations:
        kind = re.search(r"/g\d+/(?:\d+-)?([a-z-]+?)-[0-9a-f]", location)
        kinds[kind[1] if kind else "real"] = target_of(location)
    return kinds


def target_of(location: str) -> str:
    return "/" + location.removeprefix("s3://")


@pytest.fixture(scope="module")
def files(bridge):
    return virtual_files_of(bridge) | {
        kind: target
        for kind, target in virtual_files_of(bridge, "inlined").items()
        if "rows" in kind
    }


KINDS = ["table", "list", "data", "deletes-manifest", "deletes", "rows-manifest", "rows", "real"]


@pytest.mark.parametrize("kind", KINDS)
def test_head_agrees_with_get_and_ranges_make_up_the_file(bridge, files, kind):
    target = files[kind]
    whole = send(bridge.s3_endpoint, "GET", target)
    head = send(bridge.s3_endpoint, "HEAD", target)
    assert (whole.status, head.status, head.body) == (200, 200, b"")
    size = len(whole.body)
    assert head.headers["content-length"] == whole.headers["content-length"] == str(size) != "0"
    assert head.headers["etag"] == whole.headers["etag"]
    assert head.headers["content-type"] == whole.headers["content-type"]
    pieces = b""
    for first in range(0, size, 777):
        last = min(first + 776, size - 1)
        part = send(bridge.s3_endpoint, "GET", target, {"Range": f"bytes={first}-{last}"})
        assert (part.status, part.headers["etag"]) == (206, whole.headers["etag"])
        assert part.headers["content-range"] == f"bytes {first}-{last}/{size}"
        assert part.headers["content-length"] == str(len(part.body))
        pieces += part.body
    assert pieces == whole.body


# `n` is the size. RFC 9110, section 14: an invalid range is ignored, one without bytes is 416.
RANGES = [
    ("bytes=0-0", slice(0, 1)),
    ("bytes=0-", slice(0, None)),
    ("bytes=-5", slice(-5, None)),
    ("bytes=-{more}", slice(0, None)),
    ("bytes={last}-", slice(-1, None)),
    ("bytes=0-{more}", slice(0, None)),
    ("bytes=0-" + "9" * 30, slice(0, None)),
    ("bytes=0-" + "9" * 5000, slice(0, None)),
    ("bytes=-" + "9" * 5000, slice(0, None)),
    ("bytes={n}-", 416),
    ("bytes={more}-", 416),
    ("bytes={n}-{more}", 416),
    ("bytes=-0", 416),
    ("bytes=" + "9" * 30 + "-", 416),
    ("bytes=" + "9" * 5000 + "-", 416),
    ("bytes=5-2", None),
    ("bytes=-", None),
    ("bytes=", None),
    ("bytes=a-b", None),
    ("bytes=0-1,4-5", None),
    ("bytes=1--1", None),
    ("bytes=0x1-0x2", None),
    ("bytes=٣-٥", None),
    ("items=0-1", None),
    ("0-1", None),
    ("", None),
]


@pytest.mark.parametrize("text, wanted", RANGES, ids=lambda value: str(value)[:24])
def test_ranges(bridge, files, text, wanted):
    whole = send(bridge.s3_endpoint, "GET", files["list"])
    size = len(whole.body)
    header = text.format(n=size, last=size - 1, more=size + 10)
    answer = send(bridge.s3_endpoint, "GET", files["list"], {"Range": header})
    if wanted == 416:
        assert answer.status == 416 and b"<Code>InvalidRange</Code>" in answer.body
    elif wanted is None:
        assert (answer.status, answer.body) == (200, whole.body)
    else:
        assert (answer.status, answer.body) == (206, whole.body[wanted])


# `{etag}` is the file's own. RFC 9110, section 13.
CONDITIONS = [
    ({"If-Match": "{etag}"}, 200),
    ({"If-Match": "*"}, 200),
    ({"If-Match": '"other", {etag}'}, 200),
    ({"If-Match": '"other"'}, 412),
    ({"If-None-Match": '"other"'}, 200),
    ({"If-None-Match": "{etag}"}, 304),
    ({"If-None-Match": "W/{etag}"}, 304),
    ({"If-None-Match": "*"}, 304),
    ({"If-None-Match": "{etag}", "Range": "bytes=0-3"}, 304),
    ({"If-Match": "{etag}", "Range": "bytes=0-3"}, 206),
    ({"If-Match": '"other"', "Range": "bytes=0-3"}, 412),
]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("conditions, status", CONDITIONS)
def test_conditions(bridge, files, method, conditions, status):
    etag = send(bridge.s3_endpoint, "HEAD", files["list"]).headers["etag"]
    headers = {name: text.format(etag=etag) for name, text in conditions.items()}
    answer = send(bridge.s3_endpoint, method, files["list"], headers)
    # As in S3, HEAD with a range may describe the whole object.
    assert answer.status in ({status, 200} if method == "HEAD" and status == 206 else {status})
    if status == 304:
        assert answer.body == b""


# `{key}` is a virtual file's own key, `{uuid}` its table, `{file}` its last part.
NO_KEYS = [
    "polynya",
    "polynya/",
    "polynya/../lakes",
    "polynya/../{key}",
    "polynya/./{uuid}/g3/{file}",
    "polynya//{uuid}/g3/{file}",
    "polynya/%2e%2e/{key}",
    "polynya/{uuid}/../{uuid}/g3/{file}",
    "/{key}",
    "//{key}",
    "%2F{key}",
    "{key}/",
    "{key}x",
    "{key}%20",
    "{key}%00",
    "{key}%0A",
    "{key}%23x",
    "%09{key}",
    "poly%09nya/{uuid}/g3/{file}",
    "polynya/{uuid}/g3/%20{file}",
    "polynya/{uuid}/g3/{encoded}",
    "polynya/{upper}/g3/{file}",
    "polynya/{other}/g3/{file}",
    "polynya/00000000-0000-0000-0000-000000000000/g3/{file}",
    "polynya/{uuid}/g0/{file}",
    "polynya/{uuid}/{file}",
    "POLYNYA/{uuid}/g3/{file}",
    "other/{uuid}/g3/{file}",
    "{uuid}/g3/{file}",
    "polynya/{uuid}/g3/list-1-00000000000000000000.avro",
    "polynya/{uuid}/g3/list-0-00000000000000000000.avro",
    "polynya/{uuid}/g3/list-01-00000000000000000000.avro",
    "polynya/{uuid}/g3/list--1-00000000000000000000.avro",
    "polynya/{uuid}/g3/list-999999999999999999-00000000000000000000.avro",
    "polynya/{uuid}/g3/list-9999999999999999999-00000000000000000000.avro",
    "polynya/{uuid}/g3/list-" + "9" * 500 + "-00000000000000000000.avro",
    "polynya/{uuid}/g3/list-1-2-00000000000000000000.avro",
    "polynya/{uuid}/g3/list-1-0000000000000000000g.avro",
    "polynya/{uuid}/g3/list-1-00000000000000000000.parquet",
    "polynya/{uuid}/g3/data-3-00000000000000000000.avro",
    "polynya/{uuid}/g3/data-9-0-3-00000000000000000000.avro",
    "polynya/{uuid}/g3/rows-3-00000000000000000000.parquet",
    "polynya/{uuid}/g3/rows-manifest-0-3-00000000000000000000.avro",
    "polynya/{uuid}/g3/deletes-0-3-00000000000000000000.parquet",
    "polynya/{uuid}/g3/deletes-999999999999999999-3-00000000000000000000.parquet",
    "polynya/{uuid}/g3/deletes-manifest-3-00000000000000000000.avro",
    "polynya/{uuid}/g3/3-table-00000000000000000000.metadata.json",
    "polynya/{uuid}/g3/other-3-00000000000000000000.avro",
    "polynya/" + "a" * 1000,
    "polynya/%FF%FE",
    "no/such/object.parquet",
]


@pytest.mark.parametrize("key", NO_KEYS, ids=lambda key: key[:60])
def test_an_invalid_key_is_not_found(bridge, files, key):
    own = files["list"].removeprefix(f"/{bucket_of(files)}/")
    _, uuid, _, file = own.split("/")
    words = {"key": own, "uuid": uuid, "file": file, "upper": uuid.upper()}
    words["other"] = table_of(bridge.catalog_uri, "inlined")["metadata"]["table-uuid"]
    words["encoded"] = file.replace("-", "%252D")  # a key with %2D in it
    target = f"/{bucket_of(files)}/{key.format(**words)}"
    for headers in ({}, {"Range": "bytes=0-3"}):
        answer = send(bridge.s3_endpoint, "GET", target, headers)
        assert (answer.status, b"<Code>NoSuchKey</Code>" in answer.body) == (404, True)
    assert send(bridge.s3_endpoint, "HEAD", target).status == 404


def bucket_of(files) -> str:
    return files["list"].split("/")[1]


# Lakes that cannot be served

EVERYTHING = [
    "config",
    "config?warehouse=lake",
    "config?warehouse=lake@1",
    "lake/namespaces",
    "lake/namespaces/main",
    "lake/namespaces/main/tables",
    "lake/namespaces/main/tables/enc",
    "lake/namespaces/main/views",
    "lake/namespaces/main/views/v",
    "lake--at-1/namespaces/main/tables/enc",
]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_an_encrypted_lake_is_refused_with_the_reason(lake, moto, method, capfd):
    encrypted = lake("29")
    keys = [
        key
        for (key,) in encrypted.database.run("SELECT encryption_key FROM ducklake_data_file")
        if key
    ]
    [[uuid]] = encrypted.database.run("SELECT table_uuid::text FROM ducklake_table")
    answers = []
    with standing_in(encrypted, moto) as stand_in:
        for target in EVERYTHING:
            if method == "GET" or not re.search(r"config|/namespaces$|/(tables|views)$", target):
                answers.append((target, send(stand_in.api_uri, method, f"/v1/{target}")))
        for kind in ("list-2", "data-0-0-9-2-2", "rows-0-0-2", "2-table"):
            suffix = {"rows-0-0-2": "parquet", "2-table": "metadata.json"}.get(kind, "avro")
            key = f"/{ALIAS}/polynya/{uuid}/g3/{kind}-{'0' * 20}.{suffix}"
            answers.append((key, send(stand_in.s3_uri, method, key)))
    assert keys
    refused = [(t, a) for t, a in answers if a.status == 400]
    for target, answer in refused:
        assert method == "HEAD" or "encrypted" in answer.text, target
        if method == "GET" and not target.startswith("/"):
            assert error_of(answer)["type"] == BAD
    said = "".join(map(str, answers)) + "".join(capfd.readouterr())
    assert not [key for key in keys if key in said]
    assert not [(target, answer.status) for target, answer in answers if answer.status != 400]


@pytest.fixture
def of_version(lake):
    """Gives lake 31 the requested version number."""
    served = lake("31")
    sql = "UPDATE ducklake_metadata SET value = :v WHERE key = 'version'"
    [[own]] = served.database.run("SELECT value FROM ducklake_metadata WHERE key = 'version'")

    def set_version(version: str):
        served.database.run(sql, v=version)
        return served

    yield set_version
    served.database.run(sql, v=own)


@pytest.mark.parametrize("version", ["2.0", "0.1", "", "1.0; DROP TABLE x"])
def test_an_unknown_catalog_version_is_refused_with_advice(of_version, moto, version):
    with standing_in(of_version(version), moto) as stand_in:
        for target in ("config", "lake/namespaces", "lake/namespaces/main/tables/other"):
            error = error_of(answer := send(stand_in.api_uri, "GET", f"/v1/{target}"))
            assert (answer.status, error["type"]) == (400, BAD)
            assert repr(version) in error["message"] and "update Polynya" in error["message"]


@pytest.mark.parametrize("schema", ["nowhere", "pg_catalog", 'No"Where', "x" * 100, "Public"])
def test_a_wrong_metadata_schema_is_named(odd, moto, schema):
    with standing_in(odd, moto, METADATA_SCHEMA=schema) as stand_in:
        answer = send(stand_in.api_uri, "GET", "/v1/config")
        assert answer.status == 500 and "METADATA_SCHEMA" in error_of(answer)["message"]


def test_a_missing_grant_on_inlined_rows_is_named(odd, moto):
    """DuckLake makes a table of inlined rows when it first needs one, so after the GRANT."""
    odd.database.run("CREATE ROLE few_rights LOGIN")
    try:
        odd.database.run("GRANT SELECT ON ALL TABLES IN SCHEMA public TO few_rights")
        sql = "SELECT relname::text FROM pg_class WHERE relname ~ '^ducklake_inlined_data_[0-9]'"
        for (name,) in odd.database.run(sql):
            odd.database.run(f'REVOKE SELECT ON "{name}" FROM few_rights')
        url = odd.database.url.replace("postgres@", "few_rights@")
        with standing_in(odd, moto, DATABASE_URL=url) as stand_in:
            assert send(stand_in.api_uri, "GET", "/v1/lake/namespaces/main/tables").status == 200
            path = "/v1/lake/namespaces/main/tables/inlined"
            answer = send(stand_in.api_uri, "GET", path)
            assert answer.status == 500 and "GRANT SELECT" in error_of(answer)["message"]
            odd.database.run("GRANT SELECT ON ALL TABLES IN SCHEMA public TO few_rights")
            assert send(stand_in.api_uri, "GET", path).status == 200
    finally:
        odd.database.run("DROP OWNED BY few_rights")
        odd.database.run("DROP ROLE few_rights")


# Unreachable databases

SECRETS = ("secret-user", "secret-password", "secret-host")
URLS = {
    "refuses the role": "postgresql://secret-user:secret-password@localhost:{port}/{dbname}",
    "refuses TLS": (
        "postgresql://secret-user:secret-password@localhost:{port}/{dbname}?sslmode=require"
    ),
    "knows no such database": "postgresql://postgres:secret-password@localhost:{port}/secret-host",
    "refuses the connection": "postgresql://secret-user:secret-password@localhost:1/x",
    "has no address": "postgresql://secret-user:secret-password@secret-host.invalid/x",
    "cannot be a host": "postgresql://secret-user:secret-password@" + "secret-host" * 20 + "/x",
    "has a broken port": "postgresql://secret-user:secret-password@secret-host:port/x",
    "has a slash unescaped": "postgresql://secret-user:secret-password/1@secret-host/x",
    "is no URL": "host=secret-host user=secret-user password=secret-password",
    "has a wrong TLS mode": "postgresql://secret-user:secret-password@secret-host/x?sslmode=no",
    "has no certificate": (
        "postgresql://secret-user:secret-password@secret-host/x?sslrootcert=/secret-host.pem"
    ),
}


@pytest.mark.parametrize("what", URLS)
def test_no_answer_and_no_log_contains_a_secret(odd, moto, what, capfd, caplog):
    url = URLS[what].format(port=odd.database.port, dbname=odd.database.dbname)
    said = []
    with standing_in(odd, moto, DATABASE_URL=url) as stand_in:
        for target in ("config", "lake/namespaces", "lake/namespaces/main/tables/t"):
            answer = send(stand_in.api_uri, "GET", f"/v1/{target}")
            assert answer.status in {500, 503} and error_of(answer)["message"]
            said.append(str(answer))
        name = f"/{ALIAS}/polynya/{'0' * 8}-0000-0000-0000-{'0' * 12}/g3/list-1-{'0' * 20}.avro"
        for method in ("GET", "HEAD"):
            answer = send(stand_in.s3_uri, method, name)
            assert answer.status in {500, 503}
            said.append(str(answer))
    said += [*capfd.readouterr(), caplog.text]
    assert not [secret for secret in SECRETS if secret in "".join(said)]


@pytest.mark.parametrize(
    "what",
    [
        "refuses the role",
        pytest.param("has no address", marks=pytest.mark.slow),
        pytest.param("cannot be a host", marks=pytest.mark.slow),
    ],
)
def test_the_command_does_not_print_the_password(odd, moto, what):
    url = URLS[what].format(port=odd.database.port, dbname=odd.database.dbname)
    ended = subprocess.run(
        [*SERVE, moto],
        env=environment({"DATABASE_URL": url}),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 1 and ended.stdout == ""
    assert ended.stderr.startswith("polynya: ") and ended.stderr.count("\n") == 1, ended.stderr
    assert "secret-password" not in ended.stderr


class Forwarder:
    """A TCP proxy for PostgreSQL whose connections can be cut."""

    def __init__(self, host: str, port: int) -> None:
        self._to = (host, port)
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def cut(self) -> None:
        for sock in (self._listener, *self._open):
            with suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)  # wakes the thread that waits for it
            sock.close()
        self._open.clear()

    def restore(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port))
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            far = socket.create_connection(self._to)
            self._open += [near, far]
            for source, target in ((near, far), (far, near)):
                threading.Thread(target=self._copy, args=(source, target), daemon=True).start()

    def _copy(self, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


@pytest.fixture
def proxy(odd):
    forwarder = Forwarder(odd.database.host, odd.database.port)
    port = str(odd.database.port)
    yield SimpleNamespace(
        url=odd.database.url.replace(port, str(forwarder.port)),
        cut=forwarder.cut,
        restore=forwarder.restore,
    )
    forwarder.cut()


def test_an_unreachable_database_gives_503_until_it_is_back(odd, moto, proxy):
    with standing_in(odd, moto, DATABASE_URL=proxy.url) as stand_in:
        location = table_of(stand_in.api_uri)["metadata"]["snapshots"][-1]["manifest-list"]
        proxy.cut()
        for target in ("config", "lake/namespaces/main", "lake/namespaces/main/tables/t"):
            answer = send(stand_in.api_uri, "GET", f"/v1/{target}")
            assert answer.status == 503 and int(answer.headers["retry-after"]) > 0
            assert error_of(answer)["type"] in {"SlowDownException", "ServiceUnavailableException"}
        answer = send(stand_in.s3_uri, "GET", target_of(location))
        assert answer.status == 503 and b"<Code>SlowDown</Code>" in answer.body
        assert send(stand_in.s3_uri, "HEAD", target_of(location)).status == 503
        proxy.restore()
        table_of(stand_in.api_uri)
        assert send(stand_in.s3_uri, "GET", target_of(location)).status == 200


def test_a_broken_connection_is_invisible_to_the_client(odd, moto):
    terminate = """SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
      WHERE application_name = 'polynya' AND datname = current_database()"""
    with standing_in(odd, moto) as stand_in:
        for _ in range(3):
            location = table_of(stand_in.api_uri)["metadata"]["snapshots"][-1]["manifest-list"]
            assert send(stand_in.s3_uri, "GET", target_of(location)).status == 200
            assert odd.database.run(terminate)[0][0] >= 1
            forget_bodies()


def forget_bodies() -> None:
    running().lakes("object_lambda").shared._memory.__init__()


def test_waits_end_before_the_timeout_of_the_caller():
    """A wait that begins just before the budget ends is over before AWS answers 503 itself, and a
    cache that hangs leaves most of the budget for the work without it."""
    budgets = {
        "rest": REST_TIMEOUT_S - api_handler.RESERVE_SECONDS,
        "files": OBJECT_LAMBDA_TIMEOUT_S - object_handler.RESERVE_SECONDS,
    }
    tries = 2 * inspect.signature(Database).parameters["timeout_seconds"].default
    assert tries < budgets["rest"]
    assert budgets["files"] > 2 * STATEMENT_SECONDS
    with settings(AWS_DEFAULT_REGION=REGION):
        clients = Clients()
        for service, share in (("dynamodb", 0.3), ("s3", 0.6)):
            client = clients(service).meta.config
            attempts = client.retries["total_max_attempts"]
            waits = attempts * (client.connect_timeout + client.read_timeout)
            assert waits < share * min(budgets.values()), service
        with budget.limited(1):
            hurried = clients("s3").meta.config
            assert hurried.retries["total_max_attempts"] * hurried.read_timeout <= 1


def test_the_command_logs_only_to_stderr(odd, moto, proxy):
    """The line of JSON is the only output on stdout, because its reader reads no further."""
    process = subprocess.Popen(
        [*SERVE, moto],
        env=environment({"DATABASE_URL": proxy.url}),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    ready = json.loads(process.stdout.readline())
    proxy.cut()
    for _ in range(3):
        assert send(ready["catalog_uri"], "GET", "/v1/config").status == 503
    process.terminate()
    out, log = process.communicate(timeout=30)
    assert out == "" and "the catalog database does not answer" in log
    assert process.returncode == 0


# Broken stores


@pytest.fixture(scope="module")
def cache(moto):
    """DynamoDB and S3 in the form that the store uses."""
    values = cache_settings(moto)
    arguments = {"endpoint_url": moto, "region_name": REGION}
    dynamodb, s3 = (boto3.client(service, **arguments) for service in ("dynamodb", "s3"))

    def item(key: str) -> dict:
        return dynamodb.get_item(TableName=CACHE_TABLE, Key={"pk": {"S": key}}).get("Item")

    def change(key: str, **values) -> None:
        dynamodb.put_item(TableName=CACHE_TABLE, Item=item(key) | values)

    return SimpleNamespace(item=item, change=change, s3=s3, settings=values)


BROKEN = {
    "no such table": {"CACHE_TABLE": "no-such-table"},
    "DynamoDB away": {"CACHE_TABLE": "x", "AWS_ENDPOINT_URL_DYNAMODB": "http://127.0.0.1:1"},
    "no such bucket": {"CACHE_TABLE": CACHE_TABLE, "CACHE_BUCKET": "no-such-bucket"},
}


@pytest.mark.parametrize("what", BROKEN)
def test_a_broken_store_costs_only_time(odd, moto, cache, what):
    started = time.monotonic()
    with standing_in(odd, moto, **BROKEN[what]) as stand_in:
        client = pyiceberg.open(stand_in.api_uri, "lake", stand_in.s3_uri)
        for table, rows in (("t", 995), ("inlined", 2), ("big", 3)):
            assert client.rows("main", table).num_rows == rows
        client.close()
    # An API Gateway waits 29 s for one answer; these are about ten files.
    assert time.monotonic() - started < 15


@pytest.mark.parametrize("how", ["other bytes", "expired", "object changed", "object gone"])
def test_a_wrong_stored_file_is_built_again(odd, moto, cache, how):
    table = "big" if how.startswith("object") else "inlined"
    with standing_in(odd, moto, **cache.settings) as stand_in:
        bridge = SimpleNamespace(catalog_uri=stand_in.api_uri, s3_endpoint=stand_in.s3_uri)
        target = virtual_files_of(bridge, table)["rows"]
        key = target.removeprefix(f"/{ALIAS}/")
        right = send(stand_in.s3_uri, "GET", target)
        stored = cache.item(key)
        assert int(stored["ttl"]["N"]) > time.time() + 86_400
        if table == "big":
            assert len(right.body) > 350_000 and "body" not in stored
            pointed = cache.s3.get_object(Bucket=CACHE_BUCKET, Key=stored["s3"]["S"])["Body"].read()
            assert pointed == right.body
        else:
            assert stored["body"]["B"] == right.body
        wrong = b"wrong" + right.body[5:]
        if how == "other bytes":
            cache.change(key, body={"B": wrong})
        elif how == "expired":
            digest = hashlib.sha256(wrong).hexdigest()
            yesterday = str(int(time.time()) - 86_400)
            cache.change(key, body={"B": wrong}, sha256={"S": digest}, ttl={"N": yesterday})
        elif how == "object changed":
            cache.s3.put_object(Bucket=CACHE_BUCKET, Key=stored["s3"]["S"], Body=wrong)
        else:
            cache.s3.delete_object(Bucket=CACHE_BUCKET, Key=stored["s3"]["S"])
        for _ in range(2):
            reset_functions()
            again = send(stand_in.s3_uri, "GET", target)
            assert (again.status, again.body) == (200, right.body)
            assert again.headers["etag"] == right.headers["etag"]
        repaired = cache.item(key)
        assert repaired["sha256"] == stored["sha256"] and int(repaired["ttl"]["N"]) > time.time()
        if table == "big":
            body = cache.s3.get_object(Bucket=CACHE_BUCKET, Key=repaired["s3"]["S"])["Body"].read()
        else:
            body = repaired["body"]["B"]
        assert body == right.body


S3_AWAY = {"AWS_ENDPOINT_URL_S3": "http://127.0.0.1:1"}


def test_deletes_are_not_shown_without_their_file(odd, moto):
    with standing_in(odd, moto, **S3_AWAY) as stand_in:
        location = table_of(stand_in.api_uri)["metadata"]["snapshots"][-1]["manifest-list"]
        answer = send(stand_in.s3_uri, "GET", target_of(location))
        assert answer.status == 503 and b"<Code>SlowDown</Code>" in answer.body


def test_a_table_is_not_loaded_when_its_files_cannot_be_put(odd, moto):
    with standing_in(odd, moto, delivery="materialize", **S3_AWAY) as stand_in:
        answer = send(stand_in.api_uri, "GET", "/v1/lake/namespaces/main/tables/inlined")
        assert answer.status == 503 and int(answer.headers["retry-after"]) > 0
