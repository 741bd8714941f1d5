"""What `make deployed` does with a stack of `Writes=yes`: clients write, native DuckLake judges."""

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import partial

import boto3
import pyarrow as pa
import requests
from duckdb import DuckDBPyConnection
from polynya.catalog.warehouse import WRITE_ENDPOINTS
from polynya.runtime.errors import READ_ONLY
from polynya_local import ROOT
from polynya_local.clients.duckdb import ICEBERG, LAKE, connect, s3_secret
from polynya_local.clients.native import Lake, attach, write_lake
from polynya_local.processes.serving import REGION
from pyiceberg.catalog import Catalog

from tests.checks.emulator import answer_of, vended_s3

READER, WRITER = "reader", "committer"
POLICY_NAME = "/lake/policy"
WRITABLE = ["py", "dk", "parted", "inlined"]
SECOND = "second"
"""The name of a lake of the document, and of its metadata schema in the same database."""
POLICY = {
    "rules": [
        {
            "principals": ["*"],
            "tables": {"*": ["*"]},
            "write": {"main": WRITABLE},
            "add_files": ["s3://exports/sales/"],
        },
        {"principals": ["*"], "lakes": [SECOND], "tables": {"*": ["*"]}, "write": {"*": ["*"]}},
    ],
}
SECOND_LAKE = f"""
ATTACH 'ducklake:{{{{CATALOG}}}}' AS lake
  (DATA_PATH '{{{{DATA_PATH}}}}', METADATA_SCHEMA '{SECOND}', DATA_INLINING_ROW_LIMIT 0);
CREATE TABLE lake.main.t AS SELECT i, 'second' AS s FROM range(10) r(i);
"""
ROLES = f"CREATE ROLE {READER} LOGIN; CREATE ROLE {WRITER} LOGIN"
READS = f"""
GRANT USAGE ON SCHEMA {{schema}} TO {READER};
GRANT SELECT ON ALL TABLES IN SCHEMA {{schema}} TO {READER};
ALTER DEFAULT PRIVILEGES IN SCHEMA {{schema}} GRANT SELECT ON TABLES TO {READER}"""
FIELD = {"id": 1, "name": "id", "type": "long", "required": False}
TABLE = {"name": "py", "schema": {"type": "struct", "fields": [FIELD]}}

# By a table, the statements of DuckDB.
OF_DUCKDB = {
    "dk": (
        "CREATE TABLE {t} AS SELECT i, 'v' || i AS s FROM range(1000) AS r(i)",
        "INSERT INTO {t} VALUES (2000, NULL), (2001, 'new')",
        "DELETE FROM {t} WHERE i % 7 = 0",
        "UPDATE {t} SET s = 'updated' WHERE i IN (3, 2001)",
    ),
    # Native tables: their files are in DuckLake's own directories, or their rows in PostgreSQL.
    "parted": (
        "DELETE FROM {t} WHERE i = 7",
        "UPDATE {t} SET i = 200 WHERE i = 8",
        "INSERT INTO {t} VALUES (DATE '2026-01-05', 300)",
    ),
    "inlined": ("DELETE FROM {t} WHERE i = 1",),
}


def create_roles(lake: Lake) -> None:
    """The roles of both functions, and that of the reader has SELECT only."""
    for statement in f"{ROLES}; {READS.format(schema='public')}".split(";"):
        lake.database.run(statement)
    [[owner]] = lake.database.run(
        "SELECT tableowner FROM pg_tables WHERE tablename = 'ducklake_snapshot'"
    )
    lake.database.run(f"GRANT {owner} TO {WRITER}")


def parameters(aws: str) -> dict[str, str]:
    """The parameters of a stack that writes; makes what they name."""
    secret = boto3.client("secretsmanager", endpoint_url=aws).create_secret(
        Name="lake/committer", SecretString=json.dumps({"username": WRITER, "password": "unused"})
    )
    ssm = boto3.client("ssm", endpoint_url=aws)
    ssm.put_parameter(Name=POLICY_NAME, Value=json.dumps(POLICY), Type="String")
    return {"Writes": "yes", "CommitsSecretArn": secret["ARN"], "PolicyParameter": POLICY_NAME}


def second_lake(lake: Lake, aws: str, stack: str) -> Lake:
    """Write another lake into a schema of the same database, and the document that has it."""
    second = write_lake(SECOND, SECOND_LAKE, lake.database, "s3://lakes/deployed/second", aws)
    for statement in READS.format(schema=SECOND).split(";"):
        lake.database.run(statement)
    set_up(second)
    document = {SECOND: {"metadata_schema": SECOND, "data_path": f"{second.data_path}/"}}
    boto3.client("ssm", endpoint_url=aws).put_parameter(
        Name=f"/polynya/{stack}/lakes", Value=json.dumps(document), Type="SecureString"
    )
    return second


def append_to_second(catalog: Catalog, lake: Lake, aws: str) -> None:
    """PyIceberg appends to the lake of the document; its rows are those of native DuckLake."""
    table = catalog.load_table("main.t")
    table.append(pa.table({"i": pa.array([10], pa.int64()), "s": ["appended"]}))
    rows = sorted(map(tuple, (row.values() for row in table.scan().to_arrow().to_pylist())))
    with connect(LAKE, aws) as con:
        attach(con, lake)
        assert rows == con.execute("FROM lake.main.t ORDER BY ALL").fetchall()
    assert rows[-1] == (10, "appended")
    print(
        f"  PyIceberg, vended credentials: {len(rows)} rows of the lake {lake.name}, one appended"
    )


def set_up(lake: Lake) -> None:
    """Run `polynya writes --setup` as the role that writes."""
    url = lake.database.url.replace(f"//{lake.database.user}@", f"//{WRITER}@")
    command = [ROOT / ".venv/bin/polynya", "writes", "--setup", "--database", url]
    command += ["--metadata-schema", lake.metadata_schema]
    run = subprocess.run(command, text=True, capture_output=True, check=True)
    print("".join(f"  {line}\n" for line in run.stderr.splitlines()), end="")


def refuse(uri: str, signed: str) -> None:
    """Without Writes=yes a write is answered with 403, and not advertised."""
    headers = {"Authorization": signed}
    endpoints = requests.get(f"{uri}/v1/config", headers=headers, timeout=60).json()["endpoints"]
    assert not {*WRITE_ENDPOINTS} & {*endpoints}
    assert post(uri, headers, TABLE) == (403, READ_ONLY)
    print("  without Writes=yes: createTable is not advertised, and answered with 403")


def forbid(uri: str, signed: str) -> None:
    """With Writes=yes only tables of the policy can be created."""
    headers = {"Authorization": signed}
    endpoints = requests.get(f"{uri}/v1/config", headers=headers, timeout=60).json()["endpoints"]
    assert {*WRITE_ENDPOINTS} <= {*endpoints}
    status, message = post(uri, headers, TABLE | {"name": "other"})
    assert status == 403 and "no right to write main.other" in message, (status, message)
    print(f"  with Writes=yes: createTable is advertised; of another table: {status}")


def post(uri: str, headers: dict[str, str], table: dict[str, object]) -> tuple[int, str]:
    """The status of createTable, and the message."""
    at = f"{uri}/v1/lake/namespaces/main/tables"
    answer = requests.post(at, json=table, headers=headers, timeout=60)
    return answer.status_code, answer.json().get("error", {}).get("message", "")


class Judge:
    """Native DuckLake, beside the rows that are expected, which are in memory."""

    def __init__(self, con: DuckDBPyConnection, catalog: Catalog) -> None:
        self._con, self._catalog = con, catalog

    def begin_with(self, table: str) -> None:
        """Expect the rows that a native table has."""
        self._con.execute(f"CREATE TABLE memory.main.{table} AS FROM lake.main.{table}")

    def change(self, table: str, sql: str, act: Callable[[], object]) -> None:
        """Let a client change a table; the rows are those that SQL gives, for all who read."""
        before = self._newest()
        act()
        assert self._newest() == before + 1, (table, sql)
        self._con.execute(sql.format(t=f"memory.main.{table}"))
        rows = self._rows(f"memory.main.{table}")
        assert self._rows(f"lake.main.{table}") == rows, (table, sql)
        scan = self._catalog.load_table(f"main.{table}").scan()
        self._con.register("scanned", scan.to_arrow())
        assert self._rows("scanned") == rows, (table, sql)

    def _newest(self) -> int:
        [[found]] = self._con.execute("SELECT max(snapshot_id) FROM lake.snapshots()").fetchall()
        return int(found)

    def _rows(self, source: str) -> list[tuple[object, ...]]:
        return self._con.execute(f"FROM {source} ORDER BY ALL").fetchall()


@contextmanager
def judging(lake: Lake, aws: str, catalog: Catalog) -> Iterator[Judge]:
    with connect(LAKE, aws) as con:
        attach(con, lake)
        yield Judge(con, catalog)


def pyiceberg(judge: Judge, catalog: Catalog) -> None:
    """PyIceberg creates a table, appends, deletes and overwrites."""
    rows = pa.table({"i": pa.array(range(1000), pa.int64()), "s": [f"v{n}" for n in range(1000)]})
    create = "CREATE TABLE {t} (i BIGINT, s VARCHAR)"
    insert = "INSERT INTO {t} SELECT i, 'v' || i FROM range(1000) AS r(i)"
    judge.change("py", create, lambda: catalog.create_table("main.py", rows.schema))
    table = catalog.load_table("main.py")
    judge.change("py", insert, lambda: table.append(rows))
    judge.change("py", insert, lambda: table.append(rows))
    judge.change("py", "DELETE FROM {t} WHERE i < 500", lambda: table.delete("i < 500"))
    print("  PyIceberg, vended credentials: 4 changes of py equal those of DuckLake")


def duckdb(judge: Judge, uri: str, aws: str, tables: list[str]) -> None:
    """DuckDB changes tables; with signed requests it takes no vended credentials."""
    with closing(connect(ICEBERG)) as con:
        con.execute(s3_secret(aws).replace("SECRET (", "SECRET own (", 1))
        con.execute(
            f"ATTACH 'lake' AS ice (TYPE iceberg, ENDPOINT '{uri}', AUTHORIZATION_TYPE 'sigv4', "
            f"SECRET own, SIGV4_REGION '{REGION}', SIGV4_SERVICE 'execute-api', "
            "DEFAULT_SCHEMA 'main', REMOVE_FILES_ON_DELETE false)"
        )
        for table in tables:
            if table != "dk":
                judge.begin_with(table)
            for template in OF_DUCKDB[table]:
                sql = template.format(t=f"ice.main.{table}")
                judge.change(table, template, partial(con.execute, sql))
    count = sum(len(OF_DUCKDB[table]) for table in tables)
    names = ", ".join(tables)
    print(f"  DuckDB, own credentials: {count} changes of {names} equal those of DuckLake")


def overwrite(catalog: Catalog, aws: str, native: str) -> None:
    """Try what the credentials of a writer must not allow.

    Args:
        native: a native table that the caller may write.
    """
    table = catalog.load_table(f"main.{native}")
    [own, *_] = [task.file.file_path for task in table.scan().plan_files()]
    [other, *_] = [t.file.file_path for t in catalog.load_table("main.added").scan().plan_files()]
    s3 = vended_s3(table.io.properties, aws)
    beside = f"{own.rpartition('/')[0]}/f47ac10b-58cc-4372-a567-0e02b2c3d479-deletes.parquet"
    elsewhere = f"{other.rpartition('/')[0]}/{beside.rpartition('/')[2]}"
    cases = [
        ("put_object", f"{table.properties['write.data.path']}/new.parquet", True),
        ("put_object", beside, True),
        ("put_object", own, False),
        ("delete_object", own, False),
        ("delete_object", beside, False),
        ("put_object", other, False),
        ("put_object", elsewhere, False),
        ("put_object", table.metadata_location, False),
        ("put_object", f"{table.properties['write.metadata.path']}/m0.avro", True),
    ]
    for operation, location, expected in cases:
        bucket, _, key = location.removeprefix("s3://").partition("/")
        body = {"Body": b""} if operation == "put_object" else {}
        answer = answer_of(partial(getattr(s3, operation), Bucket=bucket, Key=key, **body))
        print(f"  writer of {native}, {operation} {key}: {answer}")
        assert (answer == "allowed") is expected, (operation, location, answer)
