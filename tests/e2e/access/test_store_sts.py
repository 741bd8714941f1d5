"""`polynya serve --sts-role`: clients with credentials of the store itself, and thieves of these.

No request for data reaches the server. Native DuckLake judges what clients read and write.
"""

import json
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pytest
import requests
from botocore.exceptions import ClientError
from polynya.runtime.errors import Misconfigured, ServiceUnavailable
from polynya_local.access.sts import StoreSessions
from polynya_local.access.token_file import new_line
from polynya_local.cli import app
from polynya_local.clients.duckdb import LAKE, Process, connect, literal
from polynya_local.clients.spark_jars import why_not
from polynya_local.processes.serving import Bridge, serving
from pyiceberg.catalog.rest import RestCatalog
from typer.testing import CliRunner

from tests.e2e.access.test_callers_of_serve import attached, change_by_pyiceberg, code_of, native
from tests.e2e.access.test_vended_clients import OPERATIONS
from tests.support.lakes import BUCKET as BUCKET_OF_MOTO
from tests.support.servers.stores import BUCKET, ROLE, STORES, Keys, Store
from tests.support.writes.starts import DO_NOT_INLINE, INLINE, STARTS
from tests.support.writes.writable import Judge

POLICY = {
    "rules": [
        {"principals": ["token=reader"], "tables": {"main": ["read_*"]}},
        {"principals": ["token=writer"], "tables": {"*": ["*"]}, "write": {"*": ["*"]}},
    ]
}
DENIED = {"AccessDenied", "403"}
NOT_THERE = {*DENIED, "NoSuchKey", "404", "XMinioInvalidResourceName", "InvalidRequest", "400"}


@dataclass(frozen=True)
class Team:
    """A server whose clients read and write the store, and the tokens of its callers."""

    bridge: Bridge
    store: Store
    judge: Judge
    reader: str
    writer: str
    audit: Path
    warehouse: str = "lake"

    def pyiceberg(self, token: str) -> RestCatalog:
        return RestCatalog("c", uri=self.bridge.catalog_uri, warehouse="lake", token=token)

    def asked(self, path: str, token: str) -> Any:
        headers = {"Authorization": f"Bearer {token}"}
        headers["X-Iceberg-Access-Delegation"] = "vended-credentials"
        uri = f"{self.bridge.catalog_uri}/v1/lake/namespaces/main/tables/{path}"
        answer = requests.get(uri, headers=headers, timeout=60)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def client(self, config: dict[str, str], service: str = "s3") -> Any:
        keys = Keys(config["s3.access-key-id"], config["s3.secret-access-key"])
        return self.store.client(service, keys, config["s3.session-token"])

    def files(self, table: str) -> list[str]:
        """The keys of all files of a table: its metadata's and its data's."""
        loaded = self.pyiceberg(self.writer).load_table(f"main.{table}")
        paths = [task.file.file_path for task in loaded.scan().plan_files()]
        paths += [d.file_path for task in loaded.scan().plan_files() for d in task.delete_files]
        paths += [loaded.metadata_location, loaded.current_snapshot().manifest_list]
        return [path.removeprefix(f"s3://{BUCKET}/") for path in paths]


@pytest.fixture(scope="module", params=STORES)
def store(request, moto) -> Iterator[Store]:  # which sets the variables of AWS
    with STORES[request.param]() as store:
        yield store


@pytest.fixture(scope="module")
def team(store, postgres_server, tmp_path_factory) -> Iterator[Team]:
    folder = tmp_path_factory.mktemp("sts")
    database = postgres_server.create_database(f"sts_{folder.name}")
    with closing(connect(LAKE)) as con:
        con.execute(
            f"CREATE SECRET (TYPE s3, KEY_ID {literal(store.root.id)}, URL_STYLE 'path', "
            f"SECRET {literal(store.root.secret)}, REGION 'us-east-1', USE_SSL false, "
            f"ENDPOINT {literal(store.endpoint.removeprefix('http://'))})"
        )
        path = f"(DATA_PATH 's3://{BUCKET}/data/')"
        con.execute(f"ATTACH {literal(f'ducklake:postgres:{database.libpq}')} AS lake {path}")
        for name in ("read_files", "read_inlined", "hidden"):
            first = INLINE if name == "read_inlined" else DO_NOT_INLINE
            for sql in (first, *STARTS["delete files"]):
                con.execute(sql.format(t=f"lake.main.{name}"))
        (reader, of_reader), (writer, of_writer) = new_line("reader"), new_line("writer")
        (folder / "tokens").write_text(f"{of_reader}\n{of_writer}\n")
        (folder / "policy.json").write_text(json.dumps(POLICY))
        named = {"--tokens": "tokens", "--policy": "policy.json", "--audit-log": "audit.log"}
        options = [word for o, f in named.items() for word in (o, str(folder / f))]
        with serving(
            database.url,
            store.endpoint,
            writes=True,
            options=(*options, "--sts-role", ROLE),
            settings={
                "AWS_ACCESS_KEY_ID": store.server.id,
                "AWS_SECRET_ACCESS_KEY": store.server.secret,
            },
        ) as bridge:
            team = Team(bridge, store, Judge(con), reader, writer, folder / "audit.log")
            yield team
            # Whatever the tests did: no request for data came here.
            recorded = map(json.loads, (folder / "audit.log").read_text().splitlines())
            operations = {line["operation"] for line in recorded}
            # Those of the catalog are like `load_table`, those of S3 like `GetObject`.
            assert "load_table" in operations and not any(name[0].isupper() for name in operations)


# Clients


@pytest.mark.slow
def test_the_server_names_the_store(team):
    assert team.bridge.s3_endpoint == team.store.endpoint
    config = team.asked("read_files", team.reader)["config"]
    assert config["s3.endpoint"] == team.store.endpoint
    left = int(config["s3.session-token-expires-at-ms"]) / 1000 - time.time()
    assert 3500 < left <= 3600


@pytest.mark.slow
def test_pyiceberg_reads_with_the_keys_of_a_reader(team):
    catalog = team.pyiceberg(team.reader)
    for name in ("read_files", "read_inlined"):
        table = catalog.load_table(f"main.{name}").scan().to_arrow()
        rows = sorted(zip(*(table[c].to_pylist() for c in ("id", "s", "p")), strict=True))
        assert rows == native(team.judge, name)
    rows = pa.table({"id": [1], "s": ["x"], "p": pa.array([1], pa.int32())})
    with pytest.raises(OSError, match="ACCESS_DENIED"):
        catalog.load_table("main.read_files").append(rows)


@pytest.mark.slow
def test_pyiceberg_creates_and_changes_a_table(team):
    change_by_pyiceberg(team)


@pytest.mark.slow
def test_duckdb_creates_and_changes_tables(team):
    rows = "SELECT i AS id, 's' || i AS s, i % 3 AS p FROM range(9) AS r(i)"
    team.judge.expect("by_duckdb", rows)
    with closing(Process(attached, team.bridge.catalog_uri, team.writer)) as duckdb:
        duckdb.query(f"CREATE TABLE ice.main.by_duckdb AS {rows}")
        for sql in (DO_NOT_INLINE, *STARTS["both deletes"]):
            team.judge.con.execute(sql.format(t="lake.main.changed"))
        team.judge.expect("changed", "FROM lake.main.changed")
        for name in ("by_duckdb", "changed"):
            for sql in OPERATIONS:
                duckdb.query(sql.format(t=f"ice.main.{name}"))
                team.judge.con.execute(sql.format(t=f"memory.main.{name}"))
                team.judge.check(f"main.{name}", name)
        table = duckdb.query("SELECT id, s, p FROM ice.main.read_inlined ORDER BY id")
    assert [tuple(r.values()) for r in table.to_pylist()] == native(team.judge, "read_inlined")


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
def test_spark_creates_and_changes_a_table(team, request):
    from polynya_local.clients import spark

    session = spark.session()
    name = f"sts_{request.node.callspec.params['store']}"
    settings = {
        "": "org.apache.iceberg.spark.SparkCatalog",
        ".type": "rest",
        ".uri": team.bridge.catalog_uri,
        ".warehouse": "lake",
        ".token": team.writer,
        ".io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
        ".cache-enabled": "false",
    }
    for key, value in settings.items():
        session.conf.set(f"spark.sql.catalog.{name}{key}", value)
    rows = "SELECT id, concat('s', id) AS s, CAST(id % 3 AS INT) AS p FROM range(1, 10)"
    session.sql(f"CREATE TABLE {name}.main.by_spark AS {rows}")
    expected = "SELECT i AS id, 's' || i AS s, (i % 3)::INTEGER AS p FROM range(1, 10) AS r(i)"
    team.judge.expect("by_spark", expected)
    for sql in OPERATIONS[:-1]:
        session.sql(sql.format(t=f"{name}.main.by_spark"))
        team.judge.con.execute(sql.format(t="memory.main.by_spark"))
        team.judge.check("main.by_spark", "by_spark")
    read = session.sql(f"SELECT id, s, p FROM {name}.main.read_inlined ORDER BY id").collect()
    assert [tuple(row) for row in read] == native(team.judge, "read_inlined")


# Thieves


@pytest.mark.slow
def test_keys_of_a_reader_read_one_table_and_nothing_else(team):
    s3 = team.client(team.asked("read_files", team.reader)["config"])
    own, others = team.files("read_files"), team.files("hidden") + team.files("read_inlined")
    for key in own:
        assert s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()
        assert s3.head_object(Bucket=BUCKET, Key=key)["ContentLength"] > 0
    [directory] = {key.rpartition("/")[0] for key in own if key.startswith("data/")}
    # A name with `..` is none, or is that of an object of its own; it never leads elsewhere.
    tricks = [other.replace("data/main/", f"{directory}/../") for other in others]
    places = [*others, directory, f"{directory}x", "data/", "polynya/"]
    for key in (*places, *tricks):
        name = {"Bucket": BUCKET, "Key": key}
        codes = NOT_THERE if key in tricks else DENIED
        assert code_of(lambda name=name: s3.get_object(**name)) in codes, key
        assert code_of(lambda name=name: s3.head_object(**name)) in codes, key
    [key] = own[:1]
    name = {"Bucket": BUCKET, "Key": key}
    copy = {"Bucket": BUCKET, "Key": f"{directory}/copy", "CopySource": name}
    writes = [
        lambda: s3.put_object(**name, Body=b"x"),
        lambda: s3.put_object(Bucket=BUCKET, Key=f"{directory}/new.parquet", Body=b"x"),
        lambda: s3.delete_object(**name),
        lambda: s3.copy_object(**copy),
        lambda: s3.create_multipart_upload(**name),
        lambda: s3.put_object_acl(**name, ACL="public-read"),
        lambda: s3.put_object_tagging(**name, Tagging={"TagSet": []}),
    ]
    reads = [
        lambda: s3.list_objects_v2(Bucket=BUCKET),
        lambda: s3.list_objects_v2(Bucket=BUCKET, Prefix=f"{directory}/"),
        lambda: s3.list_objects(Bucket=BUCKET),
        lambda: s3.list_object_versions(Bucket=BUCKET),
        lambda: s3.list_multipart_uploads(Bucket=BUCKET),
        lambda: s3.get_bucket_policy(Bucket=BUCKET),
        lambda: s3.get_bucket_acl(Bucket=BUCKET),
        lambda: s3.delete_bucket(Bucket=BUCKET),
        lambda: s3.put_bucket_policy(Bucket=BUCKET, Policy="{}"),
        lambda: s3.create_bucket(Bucket="another-bucket"),
    ]
    codes = [code_of(action) for action in (*writes, *reads)]
    assert set(codes) <= DENIED, codes
    [error] = s3.delete_objects(Bucket=BUCKET, Delete={"Objects": [{"Key": key}]})["Errors"]
    assert error["Code"] in DENIED
    assert s3.get_object(**name)["Body"].read()


@pytest.mark.slow
def test_keys_of_a_writer_write_where_clients_upload(team):
    loaded = team.asked("hidden", team.writer)
    s3, properties = team.client(loaded["config"]), loaded["metadata"]["properties"]
    data, staged = (
        properties[f"write.{what}.path"].removeprefix(f"s3://{BUCKET}/")
        for what in ("data", "metadata")
    )
    for directory in (data, staged):
        name = {"Bucket": BUCKET, "Key": f"{directory}/x"}
        s3.put_object(**name, Body=b"x")
        assert s3.get_object(**name)["Body"].read() == b"x"
        assert code_of(lambda name=name: s3.delete_object(**name)) in DENIED
        upload = {**name, "UploadId": s3.create_multipart_upload(**name)["UploadId"]}
        part = s3.upload_part(**upload, PartNumber=1, Body=b"y")
        parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
        s3.complete_multipart_upload(**upload, MultipartUpload=parts)
        assert s3.get_object(**name)["Body"].read() == b"y"
    live = team.files("hidden")
    foreign = team.files("read_files")
    parent = data.rpartition("/")[0]
    tricks = [f"{data}/../../read_files/x", f"{parent}/x.parquet", f"{data}x", "data/x", "x"]
    for key in (*live, *foreign, *tricks):
        name = {"Bucket": BUCKET, "Key": key}
        code = code_of(lambda name=name: s3.put_object(**name, Body=b"stolen"))
        assert code in (NOT_THERE if ".." in key else DENIED), key
        assert code_of(lambda name=name: s3.create_multipart_upload(**name)), key
    for key in foreign:
        copied = {"Bucket": BUCKET, "Key": f"{data}/stolen"}
        source = {"Bucket": BUCKET, "Key": key}
        assert code_of(lambda c=copied, s=source: s3.copy_object(**c, CopySource=s)) in DENIED
        upload = {**copied, "UploadId": s3.create_multipart_upload(**copied)["UploadId"]}
        part = {**upload, "PartNumber": 1, "CopySource": source}
        assert code_of(lambda part=part: s3.upload_part_copy(**part)) in DENIED
    assert code_of(lambda: s3.list_objects_v2(Bucket=BUCKET, Prefix=data)) in DENIED


@pytest.mark.slow
def test_keys_give_no_others(team):
    """They are no way to what the role, or the server, may do."""
    config = team.asked("read_files", team.reader)["config"]
    sts = team.client(config, "sts")
    all_ = (
        '{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":"s3:*","Resource":"*"}]}'
    )
    policies = [{}, {"Policy": all_}]
    attempts = [
        lambda given: sts.assume_role(RoleArn=ROLE, RoleSessionName="thief", **given),
        lambda given: sts.get_federation_token(Name="thief", **given),
        lambda given: sts.get_session_token(),
    ]
    secret = team.files("hidden")[0]
    for attempt in attempts:
        for given in policies:
            try:
                credentials = attempt(given)["Credentials"]
            except ClientError:
                continue
            keys = Keys(credentials["AccessKeyId"], credentials["SecretAccessKey"])
            s3 = team.store.client("s3", keys, credentials["SessionToken"])
            assert code_of(lambda s3=s3: s3.head_object(Bucket=BUCKET, Key=secret)) in DENIED
    iam = team.client(config, "iam")
    assert code_of(lambda: iam.create_user(UserName="thief"))
    assert code_of(lambda: iam.create_access_key(UserName=team.store.server.id))


@pytest.mark.slow
def test_parts_of_keys_do_not_fit_to_others(team):
    one, other = (team.asked(name, team.writer)["config"] for name in ("read_files", "hidden"))
    names = ("s3.access-key-id", "s3.secret-access-key", "s3.session-token")
    for mixed in (names[:1], names[1:2], names[2:], names[:2], names[1:]):
        s3 = team.client(one | {name: other[name] for name in mixed})
        for table in ("read_files", "hidden"):
            key = team.files(table)[0]
            assert code_of(lambda s3=s3, key=key: s3.get_object(Bucket=BUCKET, Key=key)), mixed
    text = one["s3.session-token"]
    for token in (f"{text[:-2]}xx", text[:-1], f"x{text}", ""):
        s3 = team.client(one | {"s3.session-token": token})
        assert code_of(lambda s3=s3: s3.get_object(Bucket=BUCKET, Key=team.files("read_files")[0]))


@pytest.mark.slow
def test_new_keys_come_from_the_endpoint_of_credentials(team):
    one = team.asked("read_files", team.reader)
    [entry] = team.asked("read_files/credentials", team.reader)["storage-credentials"]
    assert entry["config"]["s3.access-key-id"] != one["config"]["s3.access-key-id"]
    s3, key = team.client(entry["config"]), team.files("read_files")[0]
    assert s3.get_object(Bucket=BUCKET, Key=key)["Body"].read()


# What is refused at the start

CALLERS = {"is_materialized": True, "has_callers": True}
REFUSED = [
    ((None, "http://sts"), CALLERS, "--sts-endpoint is for --sts-role"),
    (("lake", None), CALLERS, "takes the ARN of a role"),
    ((ROLE, None), {**CALLERS, "has_callers": False}, "is for --tokens or --oidc-issuer"),
    ((ROLE, None), {**CALLERS, "is_materialized": False}, "needs --delivery materialize"),
]


@pytest.mark.parametrize(("given", "others", "words"), REFUSED)
def test_options_that_lack_another_one_are_refused(given, others, words):
    with pytest.raises(Misconfigured, match=words):
        StoreSessions.from_options(*given, "http://s3", **others)


def test_a_store_without_an_address_is_refused():
    with pytest.raises(Misconfigured, match="needs --s3-endpoint"):
        StoreSessions.from_options(ROLE, None, None, **CALLERS)
    assert StoreSessions.from_options(None, None, None, **CALLERS) is None


@pytest.mark.parametrize("role", ["arn:aws:iam:::role/lake", "arn:aws:iam::tenant:role/a/b", ROLE])
def test_roles_of_all_stores_are_taken(role):
    sessions = StoreSessions.from_options(role, None, "http://s3", **CALLERS)
    assert sessions == StoreSessions(role, "http://s3", "http://s3")


@pytest.mark.parametrize("key", ["sts/file", None])
def test_a_store_that_does_not_limit_credentials_is_refused(moto, key):
    """moto gives credentials with which everything may be read."""
    boto3.client("s3", endpoint_url=moto).put_object(
        Bucket=BUCKET_OF_MOTO, Key="sts/file", Body=b""
    )
    with pytest.raises(Misconfigured, match="does not limit credentials"):
        StoreSessions(ROLE, moto, moto).check(BUCKET_OF_MOTO, key)


def test_an_sts_that_does_not_answer_is_named(moto):
    with pytest.raises(ServiceUnavailable, match=r"the STS at http.* does not answer"):
        StoreSessions(ROLE, moto, "http://127.0.0.1:1").check(BUCKET_OF_MOTO, "x")


def test_the_command_says_it(moto, tmp_path):
    (tmp_path / "tokens").write_text(f"{new_line('a')[1]}\n")
    words = ["serve", "postgresql://u@127.0.0.1:1/lake", "--tokens", str(tmp_path / "tokens")]
    ended = CliRunner().invoke(app, [*words, "--s3-endpoint", moto, "--sts-role", ROLE])
    assert ended.exit_code == 1 and "--sts-role needs --delivery materialize" in ended.stderr
