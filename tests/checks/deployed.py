"""`make deployed`: `sam deploy` of the template to an emulator of AWS; clients read and write
through it.

MiniStack (its own environment, loopback only) emulates CloudFormation with SAM's transform, Lambda,
API Gateway, S3 with Object Lambda, DynamoDB, Secrets Manager, SSM and STS. PostgreSQL, SAM, the
built functions and layers, PyIceberg and DuckDB are real.

`polynya aws check` gives the parameters. First nobody may write; then the same stack is deployed
again with Writes=yes, and then with a second lake, SnapStart, EventsSchedule and AddedFiles.
Variables of the functions' environment differ from AWS: the endpoint of AWS, the endpoint of
WriteGetObjectResponse, a database without TLS on this machine, and with SnapStart the one by which
Lambda says so. The bucket for the Avro files of commits accepts requests without TLS.
"""

import json
import time
from contextlib import closing
from functools import partial
from socket import getaddrinfo
from typing import Any
from unittest.mock import patch

import boto3
import requests
from polynya_local.cli import app
from polynya_local.clients import native
from polynya_local.clients.canonical import difference, from_arrow
from polynya_local.clients.duckdb import ICEBERG, LAKE, connect, identifier, s3_secret
from polynya_local.clients.native import Lake, attach, write_lake
from polynya_local.processes.postgres import postgres
from pyiceberg.catalog import load_catalog
from typer.testing import CliRunner

from tests.checks import deployed_options as options
from tests.checks import deployed_writes as writes
from tests.checks.emulator import (
    REGION,
    ROOT,
    answer_of,
    catalog,
    deployed,
    ministack,
    stack_of,
    vended_s3,
)

SCRIPT = ROOT / "tests/checks/deployed.sql"
# The emulator requires a signature and does not check it.
SIGNED = f"AWS4-HMAC-SHA256 Credential=test/20261121/{REGION}/execute-api/aws4_request"

# Under AUTH the emulator checks signatures and permissions, except on an Object Lambda alias, which
# it treats as a bucket. With Tracing=Active the functions load the layer of X-Ray.
RUNS = {
    "object-lambda": ("AUTH=false", "Disabled"),
    "materialize": ("AUTH=true", "Active"),
}


def main() -> None:
    for delivery, (auth, tracing) in RUNS.items():
        with ministack(auth) as aws, postgres() as server:
            for bucket in ("lakes", "packages"):
                boto3.client("s3", endpoint_url=aws).create_bucket(Bucket=bucket)
            database = server.create_database("deployed")
            script = SCRIPT.read_text()
            lake = write_lake("deployed", script, database, "s3://lakes/deployed/lake", aws)
            writes.create_roles(lake)
            secret = boto3.client("secretsmanager", endpoint_url=aws).create_secret(
                Name="lake/reader",
                SecretString=json.dumps({"username": writes.READER, "password": "unused"}),
            )
            before = checked(lake, delivery)
            values = {"Tracing": tracing, **before["parameters"]}
            assert values["DatabaseSecretArn"] == secret["ARN"]
            with catalog(aws, deployed(aws, lake, delivery, values)) as uri:
                is_used = delivery == "object-lambda"
                assert object_lambda(before) == "unknown"
                assert object_lambda(checked(lake, delivery)) == ("ok" if is_used else "unknown")
                read(uri, aws, lake)
                view(uri, aws, lake)
                writes.refuse(uri, SIGNED)
                if auth == "AUTH=true":
                    steal(uri, aws)
            writes.set_up(lake)
            values |= writes.parameters(aws)
            with catalog(aws, deployed(aws, lake, delivery, values)) as uri:
                write(uri, aws, lake, delivery, is_enforced=auth == "AUTH=true")
            second = writes.second_lake(lake, aws, stack_of(delivery))
            bus = options.Bus(aws)
            values |= {"Lakes": "yes"} | options.PARAMETERS
            with catalog(aws, deployed(aws, lake, delivery, values)) as uri:
                options.snapshots(aws, stack_of(delivery))
                options.rights(aws, stack_of(delivery))
                options.dashboard(aws, stack_of(delivery))
                options.publish(aws, options.schedule(aws, stack_of(delivery)), bus, lake)
                with closing(Vended(uri, aws, warehouse=writes.SECOND)) as vended:
                    writes.append_to_second(vended.catalog, second, aws)
                use_added_files(uri, aws, lake, is_enforced=auth == "AUTH=true")
                read(uri, aws, lake)
                options.scheduled(bus, aws, lake)


def checked(lake: Lake, delivery: str) -> dict[str, Any]:
    """What `polynya aws check` says of the emulator, with the parameters for the deployment."""
    words = {
        "--bucket": "lakes",
        "--secret": "lake/reader",
        "--database-host": lake.database.host,
        "--database-port": str(lake.database.port),
        "--database-name": lake.database.dbname,
        "--delivery": delivery,
    }
    options = [word for pair in words.items() for word in pair]
    with patch("socket.getaddrinfo", on_this_machine):
        run = CliRunner().invoke(app, ["aws", "check", *options, "--json"])
    answer: dict[str, Any] = json.loads(run.stdout)
    lines = {line["about"]: line["status"] for line in answer["lines"]}
    needed = ("account", "bucket", "bucket encryption", "bucket policy", "secret", "Lambda quota")
    assert {lines[about] for about in needed} == {"ok"}, answer
    # The database of this machine has no public address.
    missing = [about for about, status in lines.items() if status == "missing"]
    assert missing == ["way to the database"] and run.exit_code == 1, answer
    print(f"polynya aws check, {delivery}: S3 Object Lambda {object_lambda(answer)}")
    return answer


def object_lambda(answer: dict[str, Any]) -> str:
    """What `polynya aws check` says of the account's use of S3 Object Lambda."""
    [status] = [one["status"] for one in answer["lines"] if one["about"] == "S3 Object Lambda"]
    return str(status)


def on_this_machine(host: str, *arguments: Any, **options: Any) -> Any:
    """Names of S3 Control begin with the account, also before an address: 1111….127.0.0.1."""
    name = "127.0.0.1" if str(host).endswith(".127.0.0.1") else host
    return getaddrinfo(name, *arguments, **options)


def write(uri: str, aws: str, lake: Lake, delivery: str, *, is_enforced: bool) -> None:
    """Create and change tables with both clients."""
    writes.forbid(uri, SIGNED)
    with closing(Vended(uri, aws)) as vended, writes.judging(lake, aws, vended.catalog) as judge:
        writes.pyiceberg(judge, vended.catalog)
        # DuckDB's upload beside inlined rows was not tried with MiniStack's Object Lambda.
        without = {"inlined"} if delivery == "object-lambda" else set()
        writes.duckdb(judge, uri, aws, [one for one in writes.OF_DUCKDB if one not in without])
        if is_enforced:
            writes.overwrite(vended.catalog, aws, "parted")
    read(uri, aws, lake)
    options.add_files(lake, aws)
    if is_enforced:
        options.refuse(uri, SIGNED, "sold")


def use_added_files(uri: str, aws: str, lake: Lake, *, is_enforced: bool) -> None:
    """Read files of AddedFiles, add more, and try what is outside."""
    if is_enforced:
        options.refuse(uri, SIGNED, "paid")
        with closing(Vended(uri, aws)) as vended:
            options.reach(vended.catalog, aws)
    options.add_by_client(uri, aws)
    options.drop(lake, aws)  # `read` reads every table


def steal(uri: str, aws: str) -> None:
    """Request files of each table with the credentials of one."""
    with closing(Vended(uri, aws)) as vended:
        tables = [vended.table(name) for name in vended.tables()]
    s3 = vended_s3(tables[0].io.properties, aws)
    for table in tables:
        places = [table.metadata_location, *(t.file.file_path for t in table.scan().plan_files())]
        for place in dict.fromkeys((places[0], places[-1])):
            bucket, _, key = place.removeprefix("s3://").partition("/")
            answer = answer_of(partial(s3.get_object, Bucket=bucket, Key=key))
            what = f"a file of {table.name()[-1]}, {place.rpartition('.')[2]}"
            print(f"  credentials of {tables[0].name()[-1]} for {what}: {answer}")
            assert (answer == "allowed") == (table is tables[0]), answer


def read(uri: str, aws: str, lake: Lake) -> None:
    """Read every table at every listed snapshot with both clients; compare with DuckLake's rows."""
    unsigned = requests.get(f"{uri}/v1/config", timeout=60).status_code
    signed = requests.get(f"{uri}/v1/config", headers={"Authorization": SIGNED}, timeout=60)
    print(f"  GET /v1/config: {signed.status_code}; without a signature: {unsigned}")
    truth = native.open(lake, aws)
    for client in (Vended(uri, aws), Own(uri, aws)):
        reads = 0
        started = time.monotonic()
        with closing(truth), closing(client):
            for table in truth.tables():
                name = table.namespace, table.name
                for snapshot_id, of_ducklake in {None: None, **client.snapshots(*name)}.items():
                    at = (*name, of_ducklake)
                    rows = from_arrow(client.rows(*name, snapshot_id), truth.columns(*at))
                    wrong = difference(truth.canonical(*at), rows)
                    assert not wrong, (client.name, at, wrong)
                    reads += 1
        print(
            f"  {client.name}: {reads} reads equal DuckLake's, {time.monotonic() - started:.1f} s"
        )
        truth = native.open(lake, aws)
    truth.close()


def view(uri: str, aws: str, lake: Lake) -> None:
    """Run the text of the view in DuckDB; the rows are those of the view."""
    address = f"{uri}/v1/lake/namespaces/main/views/of_added"
    loaded = requests.get(address, headers={"Authorization": SIGNED}, timeout=60).json()
    [version] = loaded["metadata"]["versions"]
    [representation] = version["representations"]
    with connect(LAKE, aws) as con:
        attach(con, lake)
        con.execute("USE lake")
        rows = con.execute(f"{representation['sql']} ORDER BY ALL").fetchall()
        assert rows == con.execute("FROM lake.main.of_added ORDER BY ALL").fetchall() != []
    print(f"  the view of_added: {len(rows)} rows by its text")


class Vended:
    """PyIceberg with vended credentials and none of its own."""

    name = "PyIceberg, vended credentials"

    def __init__(self, uri: str, aws: str, warehouse: str = "lake") -> None:
        given = {"type": "rest", "uri": uri, "warehouse": warehouse, "s3.endpoint": aws}
        given["s3.request-timeout"] = "60"  # a cold start on a busy machine
        signing = {"rest.sigv4-enabled": "true", "rest.signing-name": "execute-api"}
        region = {"rest.signing-region": REGION}
        self.catalog = load_catalog("deployed", **given, **signing, **region)

    def tables(self) -> list[tuple[str, ...]]:
        return self.catalog.list_tables("main")

    def table(self, name: tuple[str, ...]):
        return self.catalog.load_table(name)

    def snapshots(self, namespace: str, table: str) -> dict[int, int]:
        """The listed snapshots, and DuckLake's id of each: its sequence number."""
        listed = self.catalog.load_table((namespace, table)).snapshots()
        return {one.snapshot_id: one.sequence_number for one in listed}

    def rows(self, namespace: str, table: str, snapshot_id: int | None):
        loaded = self.catalog.load_table((namespace, table))
        assert loaded.io.properties["s3.session-token"]
        return loaded.scan(snapshot_id=snapshot_id).to_arrow()

    def close(self) -> None:
        self.catalog.close()


class Own:
    """DuckDB with its own credentials."""

    name = "DuckDB, own credentials"

    def __init__(self, uri: str, aws: str) -> None:
        self._listing = Vended(uri, aws)
        self._con = connect(ICEBERG)
        self._con.execute(s3_secret(aws).replace("SECRET (", "SECRET own (", 1))
        self._con.execute("SET arrow_lossless_conversion = true")
        self._con.execute(
            f"ATTACH 'lake' AS ice (TYPE iceberg, ENDPOINT '{uri}', AUTHORIZATION_TYPE 'sigv4', "
            f"SECRET own, SIGV4_REGION '{REGION}', SIGV4_SERVICE 'execute-api', "
            "DEFAULT_SCHEMA 'main')"
        )

    def snapshots(self, namespace: str, table: str) -> dict[int, int]:
        return self._listing.snapshots(namespace, table)

    def rows(self, namespace: str, table: str, snapshot_id: int | None):
        at = "" if snapshot_id is None else f" AT (VERSION => {snapshot_id})"
        source = f"ice.{identifier(namespace)}.{identifier(table)}{at}"
        return self._con.execute(f"SELECT * FROM {source}").to_arrow_table()

    def close(self) -> None:
        self._con.close()
        self._listing.close()


if __name__ == "__main__":
    main()
