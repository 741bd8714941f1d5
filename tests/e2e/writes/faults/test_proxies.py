"""Two servers behind a real NGINX and a real HAProxy, as docs/team.md has them, with TLS.

PyIceberg writes and DuckDB reads through it, while one server is killed.
"""

import json
import random
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path
from ssl import create_default_context
from threading import Event

import numpy as np
import pyarrow as pa
import pytest
import requests
from polynya_local.clients.duckdb import ICEBERG, connect, literal
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import NestedField, StringType

from tests.e2e.writes.faults.test_several_servers import (
    LAKE,
    ROWS,
    Outcomes,
    appending,
    options_in,
    set_up_writes,
)
from tests.support.servers.proxies import balanced_by
from tests.support.servers.replaceable import Replaceable
from tests.support.writes.writable import Judge, judging

pytestmark = [pytest.mark.slow, pytest.mark.versions("1.0")]

CLIENTS = 8


@dataclass(frozen=True, slots=True)
class Behind:
    """Two servers behind a balancer."""

    servers: list[Replaceable]
    judge: Judge
    uri: str
    token: str
    certificate: Path
    audit: Path

    def pyiceberg(self) -> RestCatalog:
        ssl = {"cabundle": str(self.certificate)}
        return RestCatalog("c", uri=self.uri, warehouse="lake", token=self.token, ssl=ssl)


def wait_for_balancer(address: str, certificate: Path) -> None:
    """Wait until it has seen that the servers are there."""
    until = time.monotonic() + 60
    while requests.get(address, verify=str(certificate), timeout=10).status_code in {502, 503}:
        assert time.monotonic() < until, f"{address} knows no server"
        time.sleep(0.2)


@pytest.fixture(scope="module", params=["nginx", "haproxy"])
def behind(request, lake, moto, certificate, tmp_path_factory) -> Iterator[Behind]:
    folder = tmp_path_factory.mktemp(request.param)
    one = set_up_writes(lake.write("proxies", LAKE))
    options, token = options_in(folder)
    options += ["--s3-endpoint", moto, "--writes", "--workers", "1", "--delivery", "materialize"]
    options += ["--trust-proxy", "127.0.0.1", "--audit-log", str(folder / "audit.log")]
    with pytest.MonkeyPatch.context() as patch, ExitStack() as stack:
        for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "AWS_CA_BUNDLE"):
            patch.delenv(name, raising=False)
        servers = [Replaceable(folder / f"server {n}", one.database.url, *options) for n in (1, 2)]
        for server in servers:
            stack.callback(server.stop)
        ports = [server.port for server in servers]
        of_balancer = folder / "balancer"
        of_balancer.mkdir()
        balancer = balanced_by(
            request.param, ports, certificate.chain, certificate.key, of_balancer
        )
        public = [f"https://localhost:{port}" for port in stack.enter_context(balancer)]
        for server in servers:
            server.add("--public-uri", public[0], "--public-s3-uri", public[1])
            server.start()
        for address in public:
            wait_for_balancer(address, certificate.chain)
        judge = stack.enter_context(judging(one, moto))
        yield Behind(servers, judge, public[0], token, certificate.chain, folder / "audit.log")


def test_the_audit_log_has_the_address_of_the_client(behind):
    """Not that of the balancer, nor one that the client claims."""
    context = create_default_context(cafile=str(behind.certificate))
    port = int(behind.uri.rpartition(":")[2])
    claims = {f"X-Forwarded-{name}": "203.0.113.5" for name in ("For", "Proto", "Host")}
    lines_before = behind.audit.read_text().count("\n")
    for path in ("/v1/config?warehouse=lake", "/v1/lake/namespaces"):
        with closing(
            HTTPSConnection("localhost", port, context=context, source_address=("127.0.0.7", 0))
        ) as con:
            con.request("GET", path, headers=claims | {"Authorization": f"Bearer {behind.token}"})
            answer = con.getresponse()
            assert answer.status == 200, answer.read()
    lines = map(json.loads, behind.audit.read_text().splitlines()[lines_before:])
    assert [line["address"] for line in lines] == ["127.0.0.7"] * 2


def test_uploads_of_any_size_and_names_of_any_form_pass(behind):
    """Names in paths, and the address that is signed, arrive as they were sent."""
    with closing(behind.pyiceberg()) as catalog:
        schema = Schema(NestedField(1, "p", StringType()), NestedField(2, "s", StringType()))
        spec = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "p"))
        table = catalog.create_table("main.names", schema, partition_spec=spec)
        values = ["a b", "ä/ö", "x+y", "50%", "a//b", "../c", "a=b&c?d#e", "~'()*!"]
        rows = pa.table({"p": values, "s": [f"row {value}" for value in values]})
        table.append(rows)
        # More than one part, and what cannot be compressed.
        body = np.random.default_rng(1).bytes(24_000_000).hex()
        large = pa.table({"s": [body[n : n + 1_000_000] for n in range(0, len(body), 1_000_000)]})
        catalog.create_table("main.large", large.schema).append(large)
        table, read = (catalog.load_table(f"main.{name}").scan() for name in ("names", "large"))
        assert table.to_arrow().sort_by("p") == rows.sort_by("p").cast(table.to_arrow().schema)
        assert sorted(read.to_arrow()["s"].to_pylist()) == sorted(large["s"].to_pylist())
    assert behind.judge.query("SELECT p FROM lake.names ORDER BY p") == sorted(
        (value,) for value in values
    )


def test_duckdb_reads_and_writes(behind):
    with closing(connect(ICEBERG)) as con:
        con.execute(f"SET ca_cert_file = {literal(str(behind.certificate))}")
        con.execute(f"CREATE SECRET token (TYPE iceberg, TOKEN {literal(behind.token)})")
        con.execute(
            f"ATTACH 'lake' AS ice (TYPE iceberg, ENDPOINT {literal(behind.uri)}, SECRET token, "
            "DEFAULT_SCHEMA 'main')"
        )
        con.execute(
            "CREATE TABLE ice.main.by_duckdb AS SELECT i::BIGINT AS i FROM range(9) AS r(i)"
        )
        con.execute("DELETE FROM ice.main.by_duckdb WHERE i = 3")
        assert con.execute("SELECT count(*), sum(i) FROM ice.main.by_duckdb").fetchall() == [
            (8, 33)
        ]
    assert behind.judge.query("SELECT count(*), sum(i) FROM lake.by_duckdb") == [(8, 33)]


def test_eight_clients_go_on_when_a_server_is_killed(behind):
    names = [f"main.{'shared' if n < CLIENTS // 2 else f'own_{n}'}" for n in range(CLIENTS)]
    clients = [behind.pyiceberg() for _ in range(CLIENTS)]
    for name in dict.fromkeys(names):
        clients[0].create_table(name, ROWS.schema)
    end = Event()
    with ThreadPoolExecutor(CLIENTS) as pool:
        appended = [
            pool.submit(appending, client, name, number * 1_000_000, end)
            for number, (client, name) in enumerate(zip(clients, names, strict=True))
        ]
        try:
            counts = []
            for server in behind.servers:
                time.sleep(random.uniform(8, 10))  # a balancer sees that the other one is back
                server.kill()
                # What was under way has failed; with one server all of them go on.
                for _ in range(2):
                    time.sleep(8)
                    counts += behind.judge.query("SELECT count(*) FROM lake.snapshots()")
                server.start()
        finally:
            end.set()
        outcomes = [future.result() for future in appended]
    for client in clients:
        client.close()
    check_rows(behind.judge, names, outcomes)
    assert all(before < after for before, after in zip(counts[::2], counts[1::2], strict=True))


def check_rows(judge: Judge, names: list[str], outcomes: list[Outcomes]) -> None:
    counts = {what: sum(len(getattr(o, what)) for o in outcomes) for what in vars(outcomes[0])}
    print(counts, *Counter(error for o in outcomes for error in o.errors).items(), sep="\n")
    for name in dict.fromkeys(names):
        rows = [id_ for (id_,) in judge.query(f"SELECT id FROM lake.{name}")]
        of_name = [o for o, own in zip(outcomes, names, strict=True) if own == name]
        answered = {value for o in of_name for value in o.answered}
        unknown = {value for o in of_name for value in o.unknown}
        assert len(rows) == len({*rows})
        assert answered <= {*rows} <= answered | unknown
    # A request that a killed server had begun is all that a client may have to ask for again.
    assert counts["unknown"] <= 4 * CLIENTS and counts["answered"] > 4 * CLIENTS
