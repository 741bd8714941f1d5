"""`polynya serve --tokens`: three clients with a token and keys for tables, and a thief of keys.

Native DuckLake judges what they read and write.
"""

import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

import boto3
import pyarrow as pa
import pytest
import requests
from botocore.config import Config
from botocore.exceptions import ClientError
from duckdb import DuckDBPyConnection
from polynya_local.access.token_file import new_line
from polynya_local.clients.duckdb import ICEBERG, Process, connect, literal
from polynya_local.processes.serving import Bridge, serving
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import NoSuchTableError, OAuthError, UnauthorizedError

from tests.e2e.access.test_vended_clients import OPERATIONS
from tests.e2e.test_several_lakes import SCRIPT, copied, run, toml
from tests.support import file_lakes
from tests.support.writes.starts import DO_NOT_INLINE, INLINE, LAKE, STARTS
from tests.support.writes.writable import Judge, judging, set_up_writes

POLICY = {
    "rules": [
        {"principals": ["token=reader"], "tables": {"main": ["read_*"]}},
        {"principals": ["token=writer"], "tables": {"*": ["*"]}, "write": {"*": ["*"]}},
    ]
}
NO_RETRIES = {"max_attempts": 1}
DELIVERIES = ["object-lambda", pytest.param("materialize", marks=pytest.mark.slow)]


@dataclass(frozen=True)
class Team:
    """A server, and the tokens of its callers."""

    bridge: Bridge
    judge: Judge
    reader: str
    writer: str
    tokens: Path
    audit: Path
    warehouse: str = "lake"

    def pyiceberg(self, token: str, **given: str) -> RestCatalog:
        uri = self.bridge.catalog_uri
        given |= {"oauth2-server-uri": f"{uri}/v1/oauth/tokens", "s3.request-timeout": "60"}
        given |= {"token": token} if token else {}
        return RestCatalog("c", uri=uri, warehouse=self.warehouse, **given)

    def spark(self, catalog: str, credential: str) -> Any:
        """A session with a catalog that has what a member of the team is told, and nothing of S3.

        Args:
            credential: a name of a caller and its token, with a colon between.
        """
        from polynya_local.clients import spark

        session = spark.session()
        settings = {
            "type": "rest",
            "uri": self.bridge.catalog_uri,
            "warehouse": self.warehouse,
            "credential": credential,
            "io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
            "cache-enabled": "false",
        }
        session.conf.set(f"spark.sql.catalog.{catalog}", "org.apache.iceberg.spark.SparkCatalog")
        for key, value in settings.items():
            session.conf.set(f"spark.sql.catalog.{catalog}.{key}", value)
        return session

    def asked(self, path: str, token: str, **headers: str) -> requests.Response:
        return requests.get(
            self.bridge.catalog_uri + path,
            headers={"Authorization": f"Bearer {token}", **headers},
            timeout=60,
        )

    def keys(self, table: str, token: str) -> dict[str, str]:
        """The configuration of a table with keys for it."""
        path = f"/v1/{self.warehouse}/namespaces/main/tables/{table}"
        answer = self.asked(path, token, **{"X-Iceberg-Access-Delegation": "vended-credentials"})
        assert answer.status_code == 200, answer.text
        config: dict[str, str] = answer.json()["config"]
        return config

    def s3(self, config: dict[str, str]) -> "boto3.client":
        return boto3.client(
            "s3",
            endpoint_url=config["s3.endpoint"],
            region_name="us-east-1",
            aws_access_key_id=config["s3.access-key-id"],
            aws_secret_access_key=config["s3.secret-access-key"],
            aws_session_token=config["s3.session-token"],
            config=Config(
                signature_version="s3v4", s3={"addressing_style": "path"}, retries=NO_RETRIES
            ),
        )

    def files(self, table: str, token: str) -> list[tuple[str, str]]:
        """Bucket and key of the files of a table: its metadata's and its data's."""
        loaded = self.pyiceberg(token).load_table(f"main.{table}")
        paths = [task.file.file_path for task in loaded.scan().plan_files()]
        paths += [loaded.current_snapshot().manifest_list]
        return [tuple(path.removeprefix("s3://").split("/", 1)) for path in paths]

    def recorded(self) -> list[dict[str, object]]:
        return [json.loads(line) for line in self.audit.read_text().splitlines()]


@contextmanager
def tokens_in(folder: Path) -> Iterator[tuple[tuple[str, ...], str, str]]:
    """Options of the command, and the tokens of a reader and of a writer."""
    (reader, of_reader), (writer, of_writer) = new_line("reader"), new_line("writer")
    (folder / "tokens").write_text(f"{of_reader}\n{of_writer}\n")
    (folder / "policy.json").write_text(json.dumps(POLICY))
    named = {"--tokens": "tokens", "--policy": "policy.json", "--audit-log": "audit.log"}
    yield tuple(w for o, f in named.items() for w in (o, str(folder / f))), reader, writer


@pytest.fixture(scope="module", params=DELIVERIES)
def team(request, lake, moto, tmp_path_factory) -> Iterator[Team]:
    one = set_up_writes(lake.write("callers", LAKE))
    folder = tmp_path_factory.mktemp("callers")
    with (
        tokens_in(folder) as (options, reader, writer),
        judging(one, moto) as judge,
        serving(
            one.database.url,
            moto,
            delivery=request.param,
            metadata_schema=one.metadata_schema,
            writes=True,
            options=options,
        ) as bridge,
    ):
        for name in ("read_files", "read_inlined", "hidden"):
            first = INLINE if name == "read_inlined" else DO_NOT_INLINE
            for sql in (first, *STARTS["delete files"]):
                judge.con.execute(sql.format(t=f"lake.main.{name}"))
        yield Team(bridge, judge, reader, writer, folder / "tokens", folder / "audit.log")


def native(judge: Judge, name: str) -> list[tuple[object, ...]]:
    return judge.query(f"SELECT id, s, p FROM lake.main.{name} ORDER BY id")


# Who calls


@pytest.mark.parametrize("header", [None, "Bearer x", "Basic cmVhZGVyOng=", "Bearer"])
@pytest.mark.parametrize(
    "path",
    [
        "/v1/config?warehouse=lake",
        "/v1/lake/namespaces",
        "/v1/lake/namespaces/main/tables/read_files",
        "/v1/lake/namespaces/main/tables/read_files/credentials",
        "/metrics",
        "/metrics/",
        "/?format=json",
    ],
)
def test_nobody_gets_an_answer_without_a_token(team, path, header):
    headers = {"Authorization": header} if header else {}
    answer = requests.get(
        team.bridge.catalog_uri + path, headers=headers, timeout=60, allow_redirects=False
    )
    if not header and path in PAGES:
        assert answer.status_code == PAGES[path]
        return
    assert answer.status_code == 401 and answer.headers["WWW-Authenticate"] == "Bearer"
    error = answer.json()["error"]
    assert (error["type"], error["code"]) == ("NotAuthorizedException", 401)


PAGES = {"/metrics/": 303, "/?format=json": 401}
"""Of the page, which leads people to where they sign in: `tests/pages/test_callers.py`."""


def test_a_balancer_needs_no_token(team):
    uri = team.bridge.catalog_uri
    assert requests.get(f"{uri}/health", timeout=60).json()["status"] == "ok"
    assert requests.get(f"{uri}/live", timeout=60).status_code == 200
    assert team.asked("/metrics", team.reader).status_code == 200


def test_strangers_that_send_slowly_do_not_keep_others_waiting(team):
    place = urlsplit(team.bridge.catalog_uri)
    start = f"POST /v1/oauth/tokens HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: 9\r\n\r\na"
    with ExitStack() as clients:
        for _ in range(60):  # more than there are threads
            address = (place.hostname, place.port)
            client = clients.enter_context(socket.create_connection(address))
            client.sendall(start.encode())
        time.sleep(0.5)
        uri = f"{team.bridge.catalog_uri}/health"
        assert requests.get(uri, timeout=5).status_code == 200
        assert requests.get(f"{team.bridge.s3_endpoint}/b/k", timeout=5).status_code == 403
        client.sendall(b"b" * 8)
        assert client.recv(1000).startswith(b"HTTP/1.1 400")


def test_slow_uploads_do_not_keep_the_catalog_waiting(team):
    properties = team.pyiceberg(team.writer).load_table("main.read_files").properties
    bucket, _, path = properties["write.data.path"].removeprefix("s3://").partition("/")
    s3 = team.s3(team.keys("read_files", team.writer))
    place = urlsplit(team.bridge.s3_endpoint)
    with ExitStack() as clients:
        for number in range(60):
            name = {"Bucket": bucket, "Key": f"{path}/{number}"}
            target = s3.generate_presigned_url("put_object", name).partition(place.netloc)[2]
            start = f"PUT {target} HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: 9\r\n\r\na"
            address = (place.hostname, place.port)
            client = clients.enter_context(socket.create_connection(address))
            client.sendall(start.encode())
        time.sleep(0.5)
        uri = f"{team.bridge.catalog_uri}/health"
        assert requests.get(uri, timeout=5).status_code == 200
        assert team.asked("/v1/config?warehouse=lake", team.reader).status_code == 200


def test_pyiceberg_has_the_same_rows_by_a_token_and_by_an_id_and_a_secret(team):
    catalogs = [
        team.pyiceberg(team.reader),
        team.pyiceberg("", credential=f"reader:{team.reader}"),
    ]
    for catalog in catalogs:
        assert catalog.list_tables("main") == [("main", "read_files"), ("main", "read_inlined")]
        for name in ("read_files", "read_inlined"):
            table = catalog.load_table(f"main.{name}").scan().to_arrow()
            rows = sorted(zip(*(table[c].to_pylist() for c in ("id", "s", "p")), strict=True))
            assert rows == native(team.judge, name)
        with pytest.raises(NoSuchTableError):
            catalog.load_table("main.hidden")
    with pytest.raises(OAuthError, match="unknown client id, or wrong secret"):
        team.pyiceberg("", credential="reader:x")
    with pytest.raises(UnauthorizedError):
        team.pyiceberg("x")


def attached(uri: str, token: str) -> DuckDBPyConnection:
    con = connect(ICEBERG)
    con.execute(
        "CREATE SECRET token (TYPE iceberg, CLIENT_ID 'writer', "
        f"CLIENT_SECRET {literal(token)}, OAUTH2_SERVER_URI {literal(uri + '/v1/oauth/tokens')})"
    )
    con.execute(
        f"ATTACH 'lake' AS ice (TYPE iceberg, ENDPOINT {literal(uri)}, SECRET token, "
        "DEFAULT_SCHEMA 'main')"
    )
    return con


@pytest.fixture(scope="module")
def duckdb(team) -> Iterator[Process]:
    with closing(Process(attached, team.bridge.catalog_uri, team.writer)) as process:
        yield process


def test_duckdb_creates_and_changes_a_table(team, duckdb):
    rows = "SELECT i AS id, 's' || i AS s, i % 3 AS p FROM range(9) AS r(i)"
    team.judge.expect("by_duckdb", rows)
    duckdb.query(f"CREATE TABLE ice.main.by_duckdb AS {rows}")
    for sql in OPERATIONS:
        duckdb.query(sql.format(t="ice.main.by_duckdb"))
        team.judge.con.execute(sql.format(t="memory.main.by_duckdb"))
        team.judge.check("main.by_duckdb", "by_duckdb")
    table = duckdb.query("SELECT id, s, p FROM ice.main.hidden ORDER BY id")
    assert [tuple(row.values()) for row in table.to_pylist()] == native(team.judge, "hidden")


def change_by_pyiceberg(team):
    """PyIceberg creates and changes tables, as the team's writer; native DuckLake judges."""
    rows = pa.table({"id": [1, 2, 3], "s": ["a", None, "c"]})
    catalog = team.pyiceberg(team.writer)
    table = catalog.create_table("main.by_pyiceberg", rows.schema)
    table.append(rows)
    table.delete("id = 2")
    with catalog.create_table_transaction("main.staged", rows.schema) as transaction:
        transaction.append(rows)
    team.judge.expect("by_pyiceberg", "FROM (VALUES (1::BIGINT, 'a'), (3, 'c')) AS v(id, s)")
    team.judge.check("main.by_pyiceberg", "by_pyiceberg")
    team.judge.expect("staged", "FROM (VALUES (1::BIGINT, 'a'), (2, NULL), (3, 'c')) AS v(id, s)")
    team.judge.check("main.staged", "staged")


def test_pyiceberg_creates_and_changes_a_table(team):
    change_by_pyiceberg(team)
    authors = team.judge.query("SELECT DISTINCT author FROM lake.snapshots() WHERE author <> ''")
    assert authors == [("token=writer",)]


@pytest.mark.slow
@pytest.mark.spark
def test_spark_creates_and_changes_a_table(team):
    name = f"callers_{team.bridge.delivery.replace('-', '_')}"
    session = team.spark(name, f"writer:{team.writer}")
    rows = "SELECT id, concat('s', id) AS s, CAST(id % 3 AS INT) AS p FROM range(1, 10)"
    session.sql(f"CREATE TABLE {name}.main.by_spark AS {rows}")
    expected = "SELECT i AS id, 's' || i AS s, (i % 3)::INTEGER AS p FROM range(1, 10) AS r(i)"
    team.judge.expect("by_spark", expected)
    for sql in OPERATIONS[:-1]:
        session.sql(sql.format(t=f"{name}.main.by_spark"))
        team.judge.con.execute(sql.format(t="memory.main.by_spark"))
        team.judge.check("main.by_spark", "by_spark")


# What keys permit


def code_of(action) -> str:
    try:
        action()
    except ClientError as error:
        # The answer to HEAD has no body.
        return str(error.response["Error"]["Code"])
    return ""


def test_keys_of_a_reader_read_one_table_and_write_none(team):
    s3 = team.s3(team.keys("read_files", team.reader))
    for bucket, key in team.files("read_files", team.reader):
        assert s3.get_object(Bucket=bucket, Key=key)["Body"].read()
        assert s3.head_object(Bucket=bucket, Key=key)["ContentLength"] > 0
        part = s3.get_object(Bucket=bucket, Key=key, Range="bytes=0-3")["Body"].read()
        assert len(part) == 4
        url = s3.generate_presigned_url("get_object", Params={"Bucket": bucket, "Key": key})
        assert requests.get(url, timeout=60).content[:4] == part
    others = [
        *team.files("hidden", team.writer),
        *team.files("read_inlined", team.writer),
    ]
    for bucket, key in others:
        name = {"Bucket": bucket, "Key": key}
        assert code_of(lambda name=name: s3.get_object(**name)) in {"AccessDenied", "NoSuchKey"}
        assert code_of(lambda name=name: s3.head_object(**name)) in {"403", "404"}
    bucket, key = team.files("read_files", team.reader)[0]
    folder = key.rpartition("/")[0]
    for denied in (
        lambda: s3.put_object(Bucket=bucket, Key=f"{folder}/new.parquet", Body=b"x"),
        lambda: s3.put_object(Bucket=bucket, Key=key, Body=b"x"),
        lambda: s3.delete_object(Bucket=bucket, Key=key),
        lambda: s3.create_multipart_upload(Bucket=bucket, Key=f"{folder}/new.parquet"),
        lambda: s3.list_objects_v2(Bucket=bucket, Prefix=folder),
        lambda: s3.get_object_acl(Bucket=bucket, Key=key),
        lambda: s3.get_object_tagging(Bucket=bucket, Key=key),
        lambda: s3.get_bucket_policy(Bucket=bucket),
        lambda: s3.list_buckets(),
        lambda: s3.copy_object(Bucket=bucket, Key=f"{folder}/c", CopySource=f"{bucket}/{key}"),
    ):
        assert code_of(denied) == "AccessDenied"
    removal = s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": key}]})
    assert [error["Code"] for error in removal["Errors"]] == ["AccessDenied"]
    assert native(team.judge, "read_files")


def test_no_spelling_of_a_key_leads_to_another_table(team):
    config = team.keys("read_files", team.reader)
    s3 = team.s3(config)
    (bucket, own), *_ = team.files("read_files", team.reader)
    [(_, other)] = team.files("hidden", team.writer)[:1]
    folder, hidden = own.rpartition("/")[0], other.rpartition("/")
    up = "../" * folder.count("/")
    assert code_of(lambda: s3.get_object(Bucket=bucket, Key=own)) == ""
    for key in (
        f"{folder}/../hidden/{hidden[2]}",
        f"{folder}/./../hidden/{hidden[2]}",
        f"{folder}//../hidden/{hidden[2]}",
        f"{folder}/{up}{other}",
        f"/{other}",
        f"./{other}",
        quote(other, safe=""),
        f"{folder}/%2e%2e/hidden/{hidden[2]}",
        other.upper(),
    ):
        assert code_of(lambda key=key: s3.get_object(Bucket=bucket, Key=key)) in {
            "AccessDenied",
            "NoSuchKey",
        }, key


def test_keys_of_a_writer_write_one_table(team):
    config = team.keys("read_files", team.writer)
    s3 = team.s3(config)
    metadata = team.pyiceberg(team.writer).load_table("main.read_files").metadata
    bucket, _, path = metadata.properties["write.data.path"].removeprefix("s3://").partition("/")
    name = {"Bucket": bucket, "Key": f"{path}/day=1/new.parquet"}
    for checksum in ({}, {"ChecksumAlgorithm": "SHA256"}, {"ChecksumAlgorithm": "CRC32"}):
        s3.put_object(**name, Body=b"content", **checksum)
        assert s3.get_object(**name)["Body"].read() == b"content"
        s3.delete_object(**name)
        assert code_of(lambda: s3.head_object(**name)) == "404"
    # The server's own keys may do this, and would publish the file to the world.
    for more in (
        {"ACL": "public-read"},
        {"GrantRead": 'uri="http://acs.amazonaws.com/groups/global/AllUsers"'},
        {"Tagging": "a=b"},
        {"ObjectLockMode": "COMPLIANCE", "ObjectLockRetainUntilDate": "2099-01-01T00:00:00Z"},
        {"WebsiteRedirectLocation": "https://example.com"},
    ):
        assert code_of(lambda m=more: s3.put_object(**name, Body=b"x", **m)) == "AccessDenied"
        assert code_of(lambda: s3.head_object(**name)) == "404"
    other = team.pyiceberg(team.writer).load_table("main.hidden").metadata
    for kind in ("data", "metadata"):
        _, _, path = other.properties[f"write.{kind}.path"].removeprefix("s3://").partition("/")
        denied = {"Bucket": bucket, "Key": f"{path}/new.parquet"}
        assert code_of(lambda d=denied: s3.put_object(**d, Body=b"x")) == "AccessDenied"
        assert code_of(lambda d=denied: s3.delete_object(**d)) == "AccessDenied"
    committed = team.files("read_files", team.writer)[0]
    assert code_of(lambda: s3.put_object(Bucket=bucket, Key=committed[1], Body=b"x"))
    assert code_of(lambda: s3.delete_object(Bucket=bucket, Key=committed[1])) == "AccessDenied"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"s3.access-key-id": "any", "s3.secret-access-key": "any"}, "InvalidAccessKeyId"),
        ({"s3.secret-access-key": "any"}, "SignatureDoesNotMatch"),
        ({"s3.session-token": ""}, "InvalidAccessKeyId"),
        ({"s3.session-token": "WyJyb290Il0=.AAAA"}, "InvalidAccessKeyId"),
        ({"s3.access-key-id": "POLYNYA/../X"}, "AuthorizationHeaderMalformed"),
        ({"s3.access-key-id": "POLYNYÄ"}, "InvalidAccessKeyId"),
    ],
)
def test_other_keys_open_nothing(team, change, code):
    (bucket, key), *_ = team.files("read_files", team.reader)
    s3 = team.s3({**team.keys("read_files", team.reader), **change})
    assert code_of(lambda: s3.get_object(Bucket=bucket, Key=key)) == code


def test_the_token_of_another_table_does_not_go_with_the_keys(team):
    first, second = (team.keys(name, team.reader) for name in ("read_files", "read_inlined"))
    (bucket, key), *_ = team.files("read_files", team.reader)
    mixed = {**first, "s3.session-token": second["s3.session-token"]}
    assert (
        code_of(lambda: team.s3(mixed).get_object(Bucket=bucket, Key=key)) == "InvalidAccessKeyId"
    )
    body, _, seal = first["s3.session-token"].partition(".")
    longer = {**first, "s3.session-token": f"{body[:-4]}AAAA.{seal}"}
    assert code_of(lambda: team.s3(longer).get_object(Bucket=bucket, Key=key))


def test_an_unsigned_request_reads_nothing(team):
    for bucket, key in team.files("read_files", team.reader):
        answer = requests.get(f"{team.bridge.s3_endpoint}/{bucket}/{key}", timeout=60)
        assert answer.status_code == 403 and "<Code>AccessDenied</Code>" in answer.text


def test_keys_are_refreshed(team):
    path = "/v1/lake/namespaces/main/tables/read_files/credentials"
    answer = team.asked(path, team.reader)
    [entry] = answer.json()["storage-credentials"]
    (bucket, key), *_ = team.files("read_files", team.reader)
    assert code_of(lambda: team.s3(entry["config"]).get_object(Bucket=bucket, Key=key)) == ""
    expires = int(entry["config"]["s3.session-token-expires-at-ms"]) / 1000
    assert 3500 < expires - time.time() <= 3600
    assert team.asked(path.replace("read_files", "hidden"), team.reader).status_code == 404


def test_keys_do_not_reach_a_table_that_takes_the_directory(team):
    run = team.judge.con.execute
    run(DO_NOT_INLINE)
    run("CREATE TABLE lake.main.read_moved AS SELECT 1 AS id")
    s3 = team.s3(team.keys("read_moved", team.reader))
    (bucket, key), *_ = team.files("read_moved", team.reader)
    assert code_of(lambda: s3.get_object(Bucket=bucket, Key=key)) == ""
    run("ALTER TABLE lake.main.read_moved RENAME TO read_earlier")
    run("CREATE TABLE lake.main.read_moved AS SELECT 2 AS id")
    (_, other), *_ = team.files("read_moved", team.writer)
    assert key.rpartition("/")[0] == other.rpartition("/")[0]
    assert eventually(
        lambda: code_of(lambda: s3.get_object(Bucket=bucket, Key=other)) == "AccessDenied", 3
    )
    assert code_of(lambda: s3.get_object(Bucket=bucket, Key=key)) == ""


def test_a_reader_reads_a_branch(team):
    """Its manifests are where the writer's client has staged them."""
    writer = team.pyiceberg(team.writer)
    table = writer.create_table("main.read_branch", pa.schema([("id", pa.int64())]))
    table.append(pa.table({"id": [1]}))
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, "b").commit()
    table.append(pa.table({"id": [2]}), branch="b")
    reader = team.pyiceberg(team.reader).load_table("main.read_branch")
    of_branch = reader.scan().use_ref("b").to_arrow()
    assert sorted(of_branch["id"].to_pylist()) == [1, 2]
    assert reader.scan().to_arrow()["id"].to_pylist() == [1]
    assert team.judge.query("FROM lake.main.read_branch") == [(1,)]


# The audit log


def test_each_request_has_its_line_and_no_line_a_key(team):
    team.pyiceberg(team.reader).load_table("main.read_files").scan().to_arrow()
    requests.get(f"{team.bridge.catalog_uri}/v1/config", timeout=60)
    lines = team.recorded()
    asked = [(line.get("who"), line["operation"], line["status"]) for line in lines]
    assert ("token=reader", "load_table", 200) in asked
    assert ("token=reader", "GetObject", 206) in asked or (
        "token=reader",
        "GetObject",
        200,
    ) in asked
    assert {"who", "refused"} & lines[-1].keys() == {"refused"} and lines[-1]["status"] == 401
    loaded = next(line for line in lines if line["operation"] == "load_table")
    assert loaded["table"] and loaded["namespace"] == "main" and loaded["address"] == "127.0.0.1"
    text = team.audit.read_text()
    keys = team.keys("read_files", team.reader)
    for secret in (
        team.reader,
        team.writer,
        keys["s3.secret-access-key"],
        keys["s3.session-token"],
    ):
        assert secret not in text


def test_an_answer_has_the_id_of_its_line(team):
    config, uri, own = "/v1/config?warehouse=lake", team.bridge.catalog_uri, os.urandom(4).hex()
    answers = [team.asked(config, team.reader, **{"X-Request-Id": own})]
    answers += [requests.get(url, timeout=60) for url in (uri + config, f"{uri}/?format=json")]
    ids = [answer.headers["x-request-id"] for answer in answers]
    assert ids[0] == own
    s3 = team.s3(team.keys("read_files", team.reader))
    bucket, key = team.files("read_files", team.reader)[0]
    got = s3.get_object(Bucket=bucket, Key=key)["ResponseMetadata"]["HTTPHeaders"]
    refused = requests.get(f"{team.bridge.s3_endpoint}/b/k", timeout=60)
    ids += [headers["x-amz-request-id"] for headers in (got, refused.headers)]
    assert f"<RequestId>{ids[-1]}</RequestId>" in refused.text
    recorded = [line["request_id"] for line in team.recorded()]
    assert [recorded.count(request_id) for request_id in ids] == [1] * len(ids)
    assert len({*recorded}) == len(recorded)


def test_a_token_that_is_taken_back_ceases_within_a_second(team):
    token, line = new_line("guest")
    before = team.tokens.read_text()
    team.tokens.write_text(f"{before}{line}\n")
    assert eventually(lambda: team.asked("/v1/config?warehouse=lake", token).status_code == 200)
    team.tokens.write_text(before)
    assert eventually(lambda: team.asked("/v1/config?warehouse=lake", token).status_code == 401)


def eventually(condition, seconds: float = 10) -> bool:
    until = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > until:
            return False
        time.sleep(0.1)
    return True


# A lake in a file, with its data in a folder


def test_keys_for_a_lake_in_files(tmp_path):
    lake = file_lakes.written("08", "duckdb", tmp_path / "lake")
    os.environ.pop("AUTHORIZATION", None)
    with (
        tokens_in(tmp_path) as (options, reader, writer),
        serving(
            lake.address, None, delivery="object-lambda", writes=True, options=options
        ) as bridge,
    ):
        team = Team(bridge, None, reader, writer, tmp_path / "tokens", tmp_path / "audit.log")
        catalog = team.pyiceberg(writer)
        tables = [name for (_, name) in catalog.list_tables("main")]
        assert len(tables) >= 2
        files = {name: team.files(name, writer) for name in tables}
        s3, others = (team.s3(team.keys(name, writer)) for name in tables[:2])
        places = [catalog.load_table(f"main.{name}").metadata.properties for name in tables[:2]]
        own, other = (
            dict(zip(("Bucket", "Key"), f"{p['write.data.path'][5:]}/x".split("/", 1), strict=True))
            for p in places
        )
        upload = {"UploadId": s3.create_multipart_upload(**own)["UploadId"]}
        tag = s3.upload_part(**own, **upload, PartNumber=1, Body=b"part")["ETag"]
        parts = {"MultipartUpload": {"Parts": [{"PartNumber": 1, "ETag": tag}]}}
        for foreign in (
            lambda: others.upload_part(**other, **upload, PartNumber=1, Body=b"x"),
            lambda: others.complete_multipart_upload(**other, **upload, **parts),
            lambda: others.abort_multipart_upload(**other, **upload),
        ):
            assert code_of(foreign) == "NoSuchUpload"
        s3.complete_multipart_upload(**own, **upload, **parts)
        assert s3.get_object(**own)["Body"].read() == b"part"
        for name in tables:
            s3 = team.s3(team.keys(name, writer))
            for bucket, key in files[name]:
                assert code_of(lambda b=bucket, k=key, s=s3: s.get_object(Bucket=b, Key=k)) == ""
            for other in set(tables) - {name}:
                for bucket, key in files[other]:
                    folder = files[name][0][1].rpartition("/")[0]
                    for spelt in (key, f"{folder}/{'../' * 9}{key}", f"./{key}", f"/{key}"):
                        denied = code_of(
                            lambda b=bucket, k=spelt, s=s3: s.get_object(Bucket=b, Key=k)
                        )
                        assert denied in {"AccessDenied", "NoSuchKey"}, spelt


# Several lakes


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_keys_of_a_lake_open_nothing_of_its_twin(delivery, lake, moto, tmp_path):
    """Two lakes with the same names and uuids, in one bucket; each caller may write one."""
    name = f"callers_{delivery.replace('-', '_')}"
    first = lake.write(name, SCRIPT)
    lakes = {"first": first, "twin": copied(first, moto, f"{name}_twin")}
    for each in lakes.values():
        run(each, moto, "CALL lake.set_option('data_inlining_row_limit', 0)")
        run(each, moto, "INSERT INTO lake.t SELECT j, 'x' FROM range(20) r(j)")
        set_up_writes(each)
    os.environ.pop("AUTHORIZATION", None)
    with tokens_in(tmp_path) as (options, *tokens):
        settings = {
            called: {
                "database_url": each.database.url,
                "metadata_schema": each.metadata_schema,
                "data_path": each.data_path,
            }
            for called, each in lakes.items()
        }
        (tmp_path / "lakes.toml").write_text(toml(**settings))
        everything = {"tables": {"*": ["*"]}, "write": {"*": ["*"]}}
        rules = [
            {"principals": [f"token={token}"], "lakes": [called], **everything}
            for token, called in (("reader", "first"), ("writer", "twin"))
        ]
        (tmp_path / "policy.json").write_text(json.dumps({"rules": rules}))
        with serving(
            None,
            moto,
            delivery=delivery,
            writes=True,
            options=(*options, "--lakes", str(tmp_path / "lakes.toml")),
        ) as bridge:
            members = [
                Team(bridge, None, "", token, tmp_path, tmp_path / "audit.log", called)
                for token, called in zip(tokens, lakes, strict=True)
            ]
            uuids = [
                m.pyiceberg(m.writer).load_table("main.t").metadata.table_uuid for m in members
            ]
            assert uuids[0] == uuids[1]
            for own, other in (members, members[::-1]):
                path = f"/v1/{other.warehouse}/namespaces/main/tables/t"
                assert own.asked(path, own.writer).status_code == 404
                s3 = own.s3(own.keys("t", own.writer))
                for bucket, key in own.files("t", own.writer):
                    assert s3.get_object(Bucket=bucket, Key=key)["Body"].read()
                for bucket, key in other.files("t", other.writer):
                    of_other = {"Bucket": bucket, "Key": key}
                    beside = {"Bucket": bucket, "Key": f"{key.rpartition('/')[0]}/{uuids[0]}/x"}
                    denied = {"AccessDenied", "NoSuchKey"}
                    assert code_of(partial(s3.get_object, **of_other)) in denied
                    assert code_of(partial(s3.delete_object, **of_other)) == "AccessDenied"
                    for name in (of_other, beside):
                        upload = code_of(partial(s3.put_object, **name, Body=b"x"))
                        assert upload == "AccessDenied"
