"""Several `polynya serve --writes` with one lake in PostgreSQL: they share what they must, and one
that is killed in the middle of commits loses nothing, and writes nothing twice.
"""

import io
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event
from uuid import uuid4

import boto3
import fastavro
import psutil
import pyarrow as pa
import pytest
import requests
from botocore.config import Config
from botocore.exceptions import ClientError
from polynya_local.access.token_file import new_line
from polynya_local.cli import app
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitFailedException
from requests.adapters import HTTPAdapter
from typer.testing import CliRunner
from urllib3.util.retry import Retry

from tests.e2e.commands.test_workers import eventually
from tests.support.servers.balancer import balancing
from tests.support.servers.replaceable import Replaceable
from tests.support.writes.writable import Judge, judging, set_up_writes

pytestmark = [pytest.mark.slow, pytest.mark.versions("1.0")]

LAKE = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE many (p INTEGER, s VARCHAR);
ALTER TABLE many SET PARTITIONED BY (p);
INSERT INTO many SELECT i, 's' || i FROM range(150) AS r(i);
"""
ROWS = pa.table({"id": pa.array([1], pa.int64())})
DELEGATION = {"X-Iceberg-Access-Delegation": "vended-credentials"}


@dataclass
class Servers:
    """Two servers of one lake, each with a cache of its own."""

    each: list[Replaceable]
    token: str
    judge: Judge
    address: str

    def asked(self, server: int, method: str, path: str, **given) -> requests.Response:
        headers = {"Authorization": f"Bearer {self.token}", **given.pop("headers", {})}
        uri = f"{self.each[server].uri}/v1/{path}"
        return requests.request(method, uri, headers=headers, timeout=60, **given)

    def pyiceberg(self, uri: str) -> RestCatalog:
        return RestCatalog("c", uri=uri, warehouse="lake", token=self.token)

    def s3(self, server: int, config: dict[str, str]):
        """S3 of one server, with the keys that another one may have vended."""
        return boto3.client(
            "s3",
            endpoint_url=f"http://127.0.0.1:{self.each[server].port + 1}",
            region_name="us-east-1",
            aws_access_key_id=config["s3.access-key-id"],
            aws_secret_access_key=config["s3.secret-access-key"],
            aws_session_token=config["s3.session-token"],
            config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 1}),
        )


def options_in(folder) -> tuple[list[str], str]:
    """Options of every server of a team, and a token."""
    token, line = new_line("writer")
    (folder / "tokens").write_text(f"{line}\n")
    (folder / "secret").write_text("0123456789abcdef" * 4)
    return [
        *("--tokens", str(folder / "tokens"), "--secret-file", str(folder / "secret")),
        *("--audit-log", "/dev/null"),
    ], token


@contextmanager
def serving_twice(lake, moto, folder, *more: str) -> Iterator[Servers]:
    """Two servers that have not been started yet."""
    one = set_up_writes(lake.write("several_servers", LAKE))
    options, token = options_in(folder)
    options += ["--s3-endpoint", moto, "--writes", *more]
    with ExitStack() as stack:
        each = []
        for number in range(2):
            each.append(Replaceable(folder / f"server {number}", one.database.url, *options))
            stack.callback(each[-1].stop)
        yield Servers(each, token, stack.enter_context(judging(one, moto)), one.database.url)


@pytest.fixture(scope="module")
def two(lake, moto, tmp_path_factory) -> Iterator[Servers]:
    with serving_twice(lake, moto, tmp_path_factory.mktemp("two"), "--workers", "1") as servers:
        for server in servers.each:
            server.start()
        yield servers


# What they share


def test_a_plan_that_one_made_is_fetched_at_the_other(two):
    table = "lake/namespaces/main/tables/many"
    filter_ = {"type": "not-in", "term": "s", "values": [f"{n:0>100}" for n in range(500)]}
    answer = two.asked(0, "POST", f"{table}/plan", json={"filter": filter_}).json()
    files, left, server = answer["file-scan-tasks"], answer["plan-tasks"], 1
    while left:
        page = two.asked(server, "POST", f"{table}/tasks", json={"plan-task": left.pop()})
        assert page.status_code == 200, page.text
        files += page.json().get("file-scan-tasks", [])
        left += page.json().get("plan-tasks", [])
        server = 1 - server
    paths = {task["data-file"]["file-path"] for task in files}
    assert len(files) == len(paths) == 150


def test_a_key_that_was_used_at_one_is_honoured_by_the_other(two):
    schema = {"type": "struct", "fields": []}
    schema["fields"] = [{"id": 1, "name": "id", "type": "long", "required": False}]
    for server in range(2):
        name, key = f"t{server}", {"Idempotency-Key": str(uuid4())}
        where, body = "lake/namespaces/main/tables", {"name": name, "schema": schema}
        made = two.asked(server, "POST", where, json=body, headers=key)
        again = two.asked(1 - server, "POST", where, json=body, headers=key)
        assert (made.status_code, again.status_code) == (200, 200)
        assert made.json()["metadata"]["table-uuid"] == again.json()["metadata"]["table-uuid"]
        without = two.asked(1 - server, "POST", where, json=body)
        assert without.status_code == 409
        other = two.asked(1 - server, "POST", where, json=body | {"name": "x"}, headers=key)
        assert other.status_code == 400


def test_keys_and_uploads_of_one_hold_at_the_other(two):
    with closing(two.pyiceberg(two.each[0].uri)) as catalog:
        catalog.create_table("main.t", ROWS.schema).append(ROWS)
        [task] = catalog.load_table("main.t").scan().plan_files()
    loaded = two.asked(0, "GET", "lake/namespaces/main/tables/t", headers=DELEGATION).json()
    s3 = [two.s3(server, loaded["config"]) for server in range(2)]
    bucket, _, key = task.file.file_path.removeprefix("s3://").partition("/")
    bodies = {client.get_object(Bucket=bucket, Key=key)["Body"].read() for client in s3}
    assert len(bodies) == 1
    place = {"Bucket": bucket, "Key": f"{key}-uploaded.parquet"}
    upload = {**place, "UploadId": s3[0].create_multipart_upload(**place)["UploadId"]}
    part = s3[1].upload_part(**upload, PartNumber=1, Body=b"x")
    parts = {"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]}
    s3[0].complete_multipart_upload(**upload, MultipartUpload=parts)
    assert s3[1].get_object(**place)["Body"].read() == b"x"
    s3[1].delete_object(**place)
    with pytest.raises(ClientError, match="NoSuchKey"):
        s3[0].get_object(**place)
    for client in s3:
        with pytest.raises(ClientError, match=r"AccessDenied.*only DuckLake removes it"):
            client.delete_object(Bucket=bucket, Key=key)


def test_what_is_committed_at_one_is_seen_at_the_other_at_once(two):
    with ExitStack() as stack:
        catalogs = [stack.enter_context(closing(two.pyiceberg(s.uri))) for s in two.each]
        catalogs[0].create_table("main.seen", ROWS.schema)
        since = two.asked(0, "GET", "lake/events").json()["last-snapshot-id"]
        for number in range(20):
            catalogs[number % 2].load_table("main.seen").append(ROWS)
            seen = [catalog.load_table("main.seen") for catalog in catalogs]
            assert len({table.current_snapshot().snapshot_id for table in seen}) == 1
            assert len({table.metadata_location for table in seen}) == 1
            assert len(seen[0].snapshots()) == number + 1
        catalogs[1].rename_table("main.seen", "main.renamed")
        assert catalogs[0].load_table("main.renamed").scan().to_arrow().num_rows == 20
        assert not catalogs[0].table_exists("main.seen")
        told = [two.asked(n, "GET", f"lake/events?since={since}").json() for n in range(2)]
        assert told[0] == told[1] and len(told[0]["events"]) == 21


def test_files_of_a_table_that_one_has_answered_are_read_at_the_other(two):
    """The other generates them: to the same bytes."""
    loaded = two.asked(0, "GET", "lake/namespaces/main/tables/many", headers=DELEGATION).json()
    place = loaded["metadata"]["snapshots"][-1]["manifest-list"].removeprefix("s3://")
    bucket, _, key = place.partition("/")
    bodies = [
        two.s3(n, loaded["config"]).get_object(Bucket=bucket, Key=key)["Body"].read()
        for n in (1, 0)
    ]
    assert bodies[0] == bodies[1]


@pytest.mark.parametrize(
    ("options", "is_readable"),
    [
        (("--delivery", "materialize"), True),
        # docs/team.md: so servers of the default delivery need a common folder.
        ((), False),
        (("--cache", "common"), True),
    ],
)
def test_a_plan_of_one_stays_readable_at_the_other_when_the_history_is_rewritten(
    lake, moto, tmp_path, options, is_readable
):
    options = [str(tmp_path / word) if word == "common" else word for word in options]
    with serving_twice(lake, moto, tmp_path, "--workers", "1", *options) as servers:
        for server in servers.each:
            server.start()
        execute = servers.judge.con.execute
        execute("CALL lake.set_option('data_inlining_row_limit', 10)")
        execute("CREATE TABLE lake.main.inlined AS FROM (VALUES (1)) AS v(i)")
        where = "lake/namespaces/main/tables/inlined"
        loaded = servers.asked(0, "GET", where, headers=DELEGATION).json()
        clients = [servers.s3(n, loaded["config"]) for n in range(2)]

        def read(server: int, location: str) -> bytes:
            bucket, _, key = location.removeprefix("s3://").partition("/")
            body: bytes = clients[server].get_object(Bucket=bucket, Key=key)["Body"].read()
            return body

        listed = read(0, loaded["metadata"]["snapshots"][-1]["manifest-list"])
        [manifest] = [entry["manifest_path"] for entry in fastavro.reader(io.BytesIO(listed))]
        execute("CALL ducklake_flush_inlined_data('lake')")
        execute("CALL ducklake_expire_snapshots('lake', older_than => now() + INTERVAL 1 DAY)")
        assert read(0, manifest)
        if is_readable:
            assert read(1, manifest) == read(0, manifest)
        else:
            with pytest.raises(ClientError, match="NoSuchKey"):
                read(1, manifest)


# One is killed

CLIENTS = 16
KILLS = 20


@dataclass
class Outcomes:
    """What clients were told of the values that they have appended."""

    answered: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    unknown: list[int] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    """Why the last ones are unknown."""


def appending(catalog: RestCatalog, name: str, first: int, end: Event) -> Outcomes:
    """Append one value after the other to a table, until the end."""
    outcomes = Outcomes()
    value = first
    while not end.is_set():
        value += 1
        try:
            table = catalog.load_table(name)
            table.append(pa.table({"id": pa.array([value], pa.int64())}))
        except CommitFailedException:
            outcomes.refused.append(value)
        except Exception as error:
            outcomes.unknown.append(value)
            outcomes.errors.append(f"{type(error).__name__}: {str(error)[:300]}")
        else:
            outcomes.answered.append(value)
    return outcomes


def retrying(catalog: RestCatalog) -> RestCatalog:
    """The same client, which sends a request again when its connection ends, to any server."""
    retry = Retry(total=10, backoff_factor=0.1, status=0, allowed_methods=None)
    catalog._session.mount("http://", HTTPAdapter(max_retries=retry))
    catalog._session.headers["Connection"] = "close"  # each request to any server
    return catalog


def kill_server(server: Replaceable) -> None:
    server.kill()
    time.sleep(random.uniform(0, 1))
    server.start()


def kill_worker(server: Replaceable) -> None:
    # The one that was killed before is replaced, and has had time to answer.
    eventually(lambda: len(workers_of(server)) == 2)
    time.sleep(random.uniform(2, 4))
    os.kill(random.choice(workers_of(server)).pid, signal.SIGKILL)


def workers_of(server: Replaceable) -> list[psutil.Process]:
    """The processes of a server that answer, and have not ended."""
    workers = []
    assert server.process is not None
    for process in psutil.Process(server.process.pid).children():
        with suppress(psutil.NoSuchProcess):  # also of one that has ended
            workers += [process] if "spawn_main" in " ".join(process.cmdline()) else []
    return workers


@pytest.mark.parametrize(("kill", "workers"), [(kill_server, 1), (kill_worker, 2)])
def test_what_was_answered_is_there_once_although_servers_are_killed(
    lake, moto, tmp_path, kill, workers
):
    ports: list[list[int]] = [[], []]
    with ExitStack() as stack:
        uris = [f"http://127.0.0.1:{stack.enter_context(balancing(of))}" for of in ports]
        public = ("--public-uri", uris[0], "--public-s3-uri", uris[1])
        served = serving_twice(lake, moto, tmp_path, "--workers", str(workers), *public)
        servers = stack.enter_context(served)
        for server in servers.each:
            server.start()
            ports[0].append(server.port)
            ports[1].append(server.port + 1)
        clients = [retrying(servers.pyiceberg(uris[0])) for _ in range(CLIENTS)]
        names = ["main.shared" if n < CLIENTS // 2 else f"main.own_{n}" for n in range(CLIENTS)]
        for name in dict.fromkeys(names):
            clients[0].create_table(name, ROWS.schema)
        snapshots = "SELECT count(*) FROM lake.snapshots()"
        [(before,)] = servers.judge.query(snapshots)
        end = Event()
        with ThreadPoolExecutor(CLIENTS) as pool:
            appended = [
                pool.submit(appending, client, name, number * 1_000_000, end)
                for number, (client, name) in enumerate(zip(clients, names, strict=True))
            ]
            try:
                for number in range(KILLS):
                    time.sleep(random.uniform(1, 3))
                    kill(servers.each[number % 2])
            finally:
                end.set()
            outcomes = [future.result() for future in appended]
        for client in clients:
            client.close()
        rows = {
            name: [id_ for (id_,) in servers.judge.query(f"SELECT id FROM lake.{name}")]
            for name in dict.fromkeys(names)
        }
        [(after,)] = servers.judge.query(snapshots)
        healthy = CliRunner().invoke(app, ["doctor", servers.address, "--s3-endpoint", moto])
    counts = {what: sum(len(getattr(o, what)) for o in outcomes) for what in vars(outcomes[0])}
    print(f"{kill.__name__}: {counts}, {after - before} snapshots")
    print(*Counter(error for o in outcomes for error in o.errors).items(), sep="\n")
    for name in rows:
        of_name = [o for o, own in zip(outcomes, names, strict=True) if own == name]
        answered = {value for o in of_name for value in o.answered}
        unknown = {value for o in of_name for value in o.unknown}
        assert len(rows[name]) == len({*rows[name]})
        assert answered <= {*rows[name]} <= answered | unknown
    assert after - before == sum(map(len, rows.values()))
    assert healthy.exit_code == 0, healthy.output
