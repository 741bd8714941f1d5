"""Several lakes in one deployment: nothing of one is read, cached or committed in another."""

import json
import re
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import replace

import boto3
import pyarrow as pa
import pytest
import requests
from pg8000.native import identifier, literal
from polynya.access.vended_credentials import CredentialVending
from polynya.catalog import scans
from polynya.catalog.lakes_document import lakes_of
from polynya.ducklake import queries
from polynya.ducklake.connection.database import Database
from polynya.runtime import metrics
from polynya.virtual_files.names import UUID
from polynya_local.clients import native, pyiceberg
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import attach
from polynya_local.clients.pyiceberg import s3_properties
from polynya_local.processes.serving import COMMAND, environment, serving
from pyiceberg.catalog import load_catalog
from pyiceberg.catalog.rest import RestCatalog

from tests.aws.dynamodb import TABLE
from tests.support import file_lakes
from tests.support.lakes import BUCKET, SCRIPTS
from tests.support.native_lakes import snapshots
from tests.support.rest import Rest
from tests.support.servers.in_process import ALIAS, cache_settings, standing_in
from tests.support.writes.writable import set_up_writes

SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 10);
USE lake;
CREATE TABLE t(i INTEGER, s VARCHAR);
INSERT INTO t SELECT j, 'both' FROM range(50) r(j);
INSERT INTO t VALUES (1000, 'inlined');
DELETE FROM t WHERE i % 10 = 3;
"""


def copied(lake, moto: str, schema: str = "twin"):
    """The lake with a copy of its catalog in another schema: the same names, ids and uuids.

    Its data is a copy too.
    """
    con = lake.database.connect()
    own, other = identifier(lake.metadata_schema), identifier(schema)
    con.run(f"CREATE SCHEMA {other}")
    tables = con.run(
        "SELECT tablename::text FROM pg_catalog.pg_tables "
        f"WHERE schemaname = {literal(lake.metadata_schema)} AND tablename LIKE 'ducklake_%'"
    )
    for (table,) in tables:
        name = identifier(table)
        con.run(f"CREATE TABLE {other}.{name} (LIKE {own}.{name} INCLUDING ALL)")
        con.run(f"INSERT INTO {other}.{name} SELECT * FROM {own}.{name}")
    path = f"{lake.data_path.rstrip('/')}-{schema}/"
    con.run(f"UPDATE {other}.ducklake_metadata SET value = {literal(path)} WHERE key = 'data_path'")
    con.close()
    s3 = boto3.client("s3", endpoint_url=moto)
    prefix = lake.data_path.removeprefix(f"s3://{BUCKET}/").rstrip("/") + "/"
    for entry in s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", []):
        key = path.removeprefix(f"s3://{BUCKET}/") + entry["Key"].removeprefix(prefix)
        s3.copy_object(Bucket=BUCKET, Key=key, CopySource=f"{BUCKET}/{entry['Key']}")
    return replace(lake, metadata_schema=schema, data_path=path, native=None)


def serving_of(file, s3_endpoint: str | None, **how):
    """The command with the lakes of a file."""
    return serving(None, s3_endpoint, options=("--lakes", str(file)), **how)


def run(lake, moto: str, *statements: str) -> None:
    with closing(connect(LAKE, moto)) as con:
        attach(con, lake, read_only=False)
        for statement in statements:
            con.execute(statement)


def document(**lakes) -> str:
    entries = {
        name: {"metadata_schema": lake.metadata_schema, "data_path": lake.data_path}
        for name, lake in lakes.items()
    }
    return json.dumps(entries)


@contextmanager
def served(lake, twin, moto: str, **values):
    """The lake of the settings, and beside it the twin."""
    values = cache_settings(moto) | values
    text = json.loads(document(twin=twin)) | {"lake": {"data_path": lake.data_path}}
    with standing_in(lake, moto, LAKES=json.dumps(text), **values) as stand_in:
        yield stand_in


def rows_of(opened) -> list[str]:
    """The rows of the table `t`, as texts."""
    return sorted(map(repr, opened.rows("main", "t").to_pylist()))


def keys(moto: str) -> set[str]:
    """The keys of the cache, of files and of leases."""
    pages = (
        boto3.client("dynamodb", endpoint_url=moto).get_paginator("scan").paginate(TableName=TABLE)
    )
    return {item["pk"]["S"] for page in pages for item in page["Items"]}


def names_of(lake, moto: str) -> list[tuple[str, str]]:
    with closing(native.open(lake, moto)) as opened:
        return [(table.namespace, table.name) for table in opened.tables()]


CHANGES = (
    [
        "INSERT INTO lake.t SELECT j, 'first' FROM range(100, 140) r(j)",
        "DELETE FROM lake.t WHERE i = 1",
    ],
    [
        "INSERT INTO lake.t SELECT j, 'other' FROM range(100, 140) r(j)",
        "DELETE FROM lake.t WHERE i = 2",
    ],
)
"""What follows in each of the two: the same snapshots, the same ids, other rows."""


@pytest.fixture(scope="module")
def twins(lake, moto):
    first = lake.write("several", SCRIPT)
    twin = copied(first, moto)
    for each, changes in zip((first, twin), CHANGES, strict=True):
        run(each, moto, *changes)
    return first, twin


def test_no_row_and_no_file_crosses(twins, moto):
    """Two lakes with the same names, uuids, ids and snapshots, of which the newest differ."""
    with served(*twins, moto) as stand_in:
        before = keys(moto)
        metadata = {}
        for turn in range(2):  # the second time from the cache
            for name, each in zip(("lake", "twin"), twins, strict=True):
                where = (stand_in.api_uri, name, stand_in.s3_uri)
                with (
                    closing(native.open(each, moto)) as ours,
                    closing(pyiceberg.open(*where)) as client,
                ):
                    assert rows_of(client) == rows_of(ours), (
                        turn,
                        name,
                    )
                metadata[name] = Rest(stand_in.api_uri, name).load_table("main", "t")
        assert metadata["lake"]["table-uuid"] == metadata["twin"]["table-uuid"]
        new = keys(moto) - before
        own = {key for key in new if key.startswith("polynya/twin/")}
        assert own and new - own and not any("twin" in key for key in new - own)
        # A name of one lake names nothing in the other.
        lists = [s["manifest-list"] for s in metadata["twin"]["snapshots"]]
        for location in lists:
            key = location.removeprefix(f"s3://{ALIAS}/")
            own_answer = requests.get(f"{stand_in.s3_uri}/{ALIAS}/{key}", timeout=60)
            crossed = key.replace("polynya/twin/", "polynya/")
            answer = requests.get(f"{stand_in.s3_uri}/{ALIAS}/{crossed}", timeout=60)
            assert own_answer.status_code == 200 and answer.status_code == 404, location


def test_a_data_file_with_more_columns_is_that_of_its_lake(lake, moto):
    """Two lakes with the same names and ids; one has another default."""
    one = lake.write("defaults", SCRIPT)
    twins = one, copied(one, moto)
    for each, text in zip(twins, ("first", "other"), strict=True):
        run(each, moto, f"ALTER TABLE lake.t ADD COLUMN d VARCHAR DEFAULT '{text}'")
    with served(*twins, moto, CLIENTS="all") as stand_in:
        for name, each, prefix in zip(("lake", "twin"), twins, ("", "twin/"), strict=True):
            with (
                closing(native.open(each, moto)) as ours,
                closing(pyiceberg.open(stand_in.api_uri, name, stand_in.s3_uri)) as client,
            ):
                assert rows_of(client) == rows_of(ours)
                tasks = client._catalog.load_table("main.t").scan().plan_files()
            beginning = f"s3://{ALIAS}/polynya/{prefix}"
            files = {task.file.file_path for task in tasks if "/data-file-" in task.file.file_path}
            assert files and all(re.match(UUID, file.removeprefix(beginning)) for file in files)


@pytest.mark.slow
def test_no_row_crosses_by_materialize(twins, moto):
    """Both lakes put their files into one bucket."""
    with served(*twins, moto, delivery="materialize") as stand_in:
        for name, each in zip(("lake", "twin"), twins, strict=True):
            where = (stand_in.api_uri, name, stand_in.s3_uri)
            with (
                closing(native.open(each, moto)) as ours,
                closing(pyiceberg.open(*where)) as client,
            ):
                assert rows_of(client) == rows_of(ours), name
            table = Rest(stand_in.api_uri, name).load_table("main", "t")
            prefix = f"s3://{BUCKET}/polynya/" + ("" if name == "lake" else f"{name}/")
            lists = [snapshot["manifest-list"] for snapshot in table["snapshots"]]
            assert {entry.startswith(f"{prefix}{table['table-uuid']}/") for entry in lists} == {
                True
            }


@pytest.mark.slow
def test_lakes_answer_at_the_same_time(lake, moto, tmp_path):
    """Each thread asks one lake, whose rows are others than those of its neighbours."""
    first = lake.write("parallel", SCRIPT)
    lakes = {f"lake_{number}": copied(first, moto, f"lake_{number}") for number in range(6)}
    for number, each in enumerate(lakes.values()):
        run(each, moto, f"INSERT INTO lake.t SELECT j, 'x' FROM range({number + 1}) r(j)")
    file = tmp_path / "lakes.toml"
    file.write_text(
        toml(
            **{
                name: {
                    "database_url": each.database.url,
                    "metadata_schema": each.metadata_schema,
                    "data_path": each.data_path,
                }
                for name, each in lakes.items()
            }
        )
    )
    wrong: list[str] = []
    with serving_of(file, moto, delivery="object-lambda", page=False) as bridge:

        def read(name: str, rows: int) -> None:
            for _ in range(5):
                where = (bridge.catalog_uri, name, bridge.s3_endpoint)
                with closing(pyiceberg.open(*where)) as client:
                    count = client.rows("main", "t").num_rows
                if count != rows:
                    wrong.append(f"{name}: {count}, not {rows}")

        with ThreadPoolExecutor(len(lakes)) as pool:
            for future in [pool.submit(read, name, 47 + n) for n, name in enumerate(lakes)]:
                future.result()
    assert wrong == []


def test_the_lakes_of_one_postgresql_have_one_connection(twins, moto):
    lake, twin = twins
    with served(lake, twin, moto) as stand_in:
        for _ in range(2):
            for name in ("lake", "twin"):
                Rest(stand_in.api_uri, name).load_table("main", "t")
        con = lake.database.connect()
        [(count,)] = con.run(
            "SELECT count(*) FROM pg_stat_activity "
            f"WHERE application_name = 'polynya' AND datname = {literal(lake.database.dbname)}"
        )
        con.close()
        assert count == 1


def test_a_plan_task_of_one_lake_is_none_of_the_other(twins, moto, monkeypatch):
    monkeypatch.setattr(scans, "MOST_FILES", 1)
    with served(*twins, moto) as stand_in:
        base = f"{stand_in.api_uri}/v1/{{}}/namespaces/main/tables/t"
        tasks = {
            name: requests.post(f"{base.format(name)}/plan", json={}, timeout=60).json()[
                "plan-tasks"
            ]
            for name in ("lake", "twin")
        }
        for name, other in (("lake", "twin"), ("twin", "lake")):
            for task in tasks[name]:
                body = {"plan-task": task}
                own = requests.post(f"{base.format(name)}/tasks", json=body, timeout=60)
                crossed = requests.post(f"{base.format(other)}/tasks", json=body, timeout=60)
                assert own.status_code == 200
                assert crossed.json()["error"]["type"] == "NoSuchPlanTaskException"


def test_metrics_are_by_lake(twins, moto, monkeypatch, capsys):
    """No name that only a client has given, and none of a lake in which it has no rights."""
    counted: list[tuple[str, float, dict[str, str]]] = []
    # The functions run in threads, which have a context of their own.
    everywhere = ContextVar("watchers", default=(lambda *value: counted.append(value),))
    monkeypatch.setattr(metrics, "_watchers", everywhere)
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "as on AWS")
    asked = {"lake": 1, "twin": 3, "none": 2}
    rules = [{"principals": ["*"], "lakes": ["lake", "twin"], "tables": {"*": ["*"]}}]
    hidden = {"hidden": json.loads(document(hidden=twins[1]))["hidden"] | {"data_path": "s3://h/"}}
    text = json.dumps(json.loads(document(twin=twins[1])) | hidden)
    with standing_in(
        twins[0],
        moto,
        **cache_settings(moto) | {"LAKES": text, "AUTHORIZATION": json.dumps({"rules": rules})},
    ) as stand_in:
        for name, times in {**asked, "hidden": 1}.items():
            where = f"{stand_in.api_uri}/v1/{name}/namespaces/main/tables/t"
            for _ in range(times):
                answer = requests.get(where, timeout=60)
        [listed] = Rest(stand_in.api_uri, "twin").load_table("main", "t")["snapshots"][-1:]
        key = listed["manifest-list"].removeprefix("s3://")
        assert requests.get(f"{stand_in.s3_uri}/{key}", timeout=60).status_code == 200
    assert answer.status_code == 404
    labels_of = {name: [each for n, _, each in counted if n == name] for name, _, _ in counted}
    operations = Counter((each["operation"], each["lake"]) for each in labels_of["Requests"])
    assert operations == {
        ("load_table", "lake"): 1,
        ("load_table", "twin"): 4,
        ("load_table", ""): 3,
        ("get_config", "twin"): 1,
        ("getObject", "twin"): 1,
    }
    # Each statement and each request to the cache is one of a lake, also those in other threads.
    statements = Counter(each["lake"] for each in labels_of["Database"])
    assert statements.keys() == {"lake", "twin"}
    assert {each["lake"] for each in labels_of["AwsCalls"]} == {"twin"}
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines() if "_aws" in line]
    of_lakes = [line for line in lines if "lake" in line]
    assert {line["lake"] for line in of_lakes} == {"lake", "twin"}
    for name, number in statements.items():
        values = [line for line in of_lakes if line["lake"] == name]
        assert sum(len(line.get("Database", ())) for line in values) == number
        answers = sum(n for (_, lake), n in operations.items() if lake == name)
        assert sum(len(line["Requests"]) for line in values) == answers


def test_a_lake_without_rights_does_not_exist(twins, moto):
    """The answers are those for a lake that does not exist, byte for byte but the name."""
    policy = {"rules": [{"principals": ["*"], "tables": {"*": ["*"]}}]}
    with served(*twins, moto, AUTHORIZATION=json.dumps(policy)) as stand_in:
        assert Rest(stand_in.api_uri, "lake").tables() == [("main", "t")]
        requested = (
            ("GET", "config?warehouse={}"),
            ("GET", "config?warehouse={}@1"),
            ("GET", "{}/namespaces"),
            ("GET", "{}/events"),
            ("GET", "{}--at-1/namespaces/main/tables/t"),
            ("POST", "{}/namespaces/main/tables/t/plan"),
        )
        for method, path in requested:
            hidden, missing = (
                requests.request(method, f"{stand_in.api_uri}/v1/{path.format(name)}", timeout=60)
                for name in ("twin", "none")
            )
            assert hidden.status_code == missing.status_code == 404
            assert hidden.text.replace("twin", "none") == missing.text
    policy["rules"].append({"principals": ["*"], "lakes": ["tw*"], "tables": {"main": ["t"]}})
    with served(*twins, moto, AUTHORIZATION=json.dumps(policy)) as stand_in:
        assert Rest(stand_in.api_uri, "twin").tables() == [("main", "t")]


def test_a_file_of_a_hidden_lake_does_not_exist(twins, moto):
    with served(*twins, moto) as stand_in:
        location = Rest(stand_in.api_uri, "twin").load_table("main", "t")["snapshots"][-1][
            "manifest-list"
        ]
    policy = {"rules": [{"principals": ["*"], "tables": {"*": ["*"]}}]}
    with served(*twins, moto, AUTHORIZATION=json.dumps(policy)) as stand_in:
        key = location.removeprefix(f"s3://{ALIAS}/")
        answer = requests.get(f"{stand_in.s3_uri}/{ALIAS}/{key}", timeout=60)
        other = requests.get(f"{stand_in.s3_uri}/{ALIAS}/polynya/none/{key[13:]}", timeout=60)
        assert answer.status_code == other.status_code == 404
        words = [re.search("<Message>.*</Message>", each.text)[0] for each in (answer, other)]
        assert words[0] == words[1]


def test_a_lake_whose_data_is_elsewhere_is_refused(twins, moto):
    """The document says where the files of a lake are, and nothing else is read for it."""
    lake, twin = twins
    wrong = replace(twin, data_path=f"s3://{BUCKET}/elsewhere/")
    with served(lake, wrong, moto) as stand_in:
        answer = requests.get(f"{stand_in.api_uri}/v1/twin/namespaces", timeout=60)
        assert answer.status_code == 500 and "data_path" in answer.json()["error"]["message"]
        assert Rest(stand_in.api_uri, "lake").tables() == [("main", "t")]


VENDING = {
    "VENDING_ROLE": "arn:aws:iam::111122223333:role/Vended",
    "WRITER_ROLE": "arn:aws:iam::111122223333:role/Writer",
    "WRITES": "yes",
    "VIRTUAL_BUCKET": ALIAS,
}


def test_no_credentials_are_vended_for_the_files_of_another_lake(lake, moto):
    """Whoever writes a catalog can name any file in it."""
    first = lake.write("vended", SCRIPT)
    twin = copied(first, moto)
    environ = VENDING | {"DATABASE_URL": twin.database.url}
    config = lakes_of(document(twin=twin), environ)["twin"]
    virtual = config.storage.location(config.files.virtual_prefix)

    def scope():
        with (
            closing(Database(twin.database.url, "twin")) as database,
            database.transaction() as con,
        ):
            of_lake = queries.lake().run(con)
            schema, table = queries.table_at(of_lake.snapshot_id, ("main",), "t").run(con)
            vending = CredentialVending(config)
            return vending.scope(
                *(con, of_lake, schema, table, f"{virtual}/{table.table_uuid}"), may_write=True
            )

    own = scope()
    assert not own.reason and twin.data_path.removeprefix("s3://") in own.policy
    assert f"{first.data_path.removeprefix('s3://').rstrip('/')}/" not in own.policy
    con = twin.database.connect()
    [(path,)] = con.run("SELECT path FROM twin.ducklake_data_file LIMIT 1")
    location = f"{first.data_path.rstrip('/')}/main/t/{path}"
    con.run(
        f"UPDATE twin.ducklake_data_file SET path = {literal(location)}, path_is_relative = false"
    )
    con.close()
    assert "outside of the lake's data path" in scope().reason


def test_a_request_key_of_one_lake_is_none_of_the_other(lake, moto):
    """The same request under the same Idempotency-Key takes place once in each lake."""
    first = lake.write("keys", SCRIPT)
    twin = copied(first, moto)
    for each in (first, twin):
        set_up_writes(each)
    everybody = {"principals": ["*"], "lakes": ["*"], "tables": {"*": ["*"]}, "write": {"*": ["*"]}}
    policy = json.dumps({"rules": [everybody]})
    key = {"Idempotency-Key": "01a212e8-e8ec-7cc5-9520-b4beb7caec98"}
    with served(first, twin, moto, writes=True, AUTHORIZATION=policy) as stand_in:
        for name in ("lake", "twin"):
            answers = [
                requests.post(
                    f"{stand_in.api_uri}/v1/{name}/namespaces",
                    json={"namespace": ["made"]},
                    headers=key,
                    timeout=60,
                )
                for _ in range(2)
            ]
            assert [answer.status_code for answer in answers] == [200, 200], name
    for each in (first, twin):
        with closing(native.open(each, moto)) as opened:
            made = [text for text in snapshots(opened).values() if "made" in text]
        assert len(made) == 1


STAGING = "s3://staging/commits"
ROW = pa.table({"i": pa.array([7], pa.int32()), "s": ["x"]})


def append_to_each(catalog_uri: str, s3_endpoint: str, staging: str, *names: str) -> None:
    """Append by PyIceberg, whose manifests have to be below the staging location of the lake."""
    for name in names:
        properties = s3_properties(s3_endpoint)
        with closing(RestCatalog("c", uri=catalog_uri, warehouse=name, **properties)) as client:
            table = client.load_table("main.t")
            assert table.properties["write.metadata.path"].startswith(staging)
            before = table.scan().to_arrow().num_rows
            table.append(ROW)
            assert table.scan().to_arrow().num_rows == before + 1


def test_lakes_are_written_with_a_staging_location(lake, moto):
    """As in a deployment, where it is in a bucket of the stack."""
    first = set_up_writes(lake.write("staged", SCRIPT))
    twin = set_up_writes(copied(first, moto))
    boto3.client("s3", endpoint_url=moto).create_bucket(Bucket="staging")
    everybody = {"principals": ["*"], "lakes": ["*"], "tables": {"*": ["*"]}, "write": {"*": ["*"]}}
    settings = {"STAGING_LOCATION": STAGING, "AUTHORIZATION": json.dumps({"rules": [everybody]})}
    with served(first, twin, moto, writes=True, delivery="materialize", **settings) as stand_in:
        append_to_each(stand_in.api_uri, moto, STAGING, "lake", "twin")


@pytest.mark.slow
@pytest.mark.parametrize("delivery", ["object-lambda", "materialize"])
@pytest.mark.parametrize("is_own", [True, False])
def test_the_command_writes_with_a_staging_location(lake, moto, tmp_path, delivery, is_own):
    """Of the lake's entry, or of the environment. The functions may read the data's bucket too."""
    staging = f"s3://{BUCKET}/staging" if is_own else STAGING
    boto3.client("s3", endpoint_url=moto).create_bucket(Bucket="staging")
    first = set_up_writes(lake.write("staged_by_command", SCRIPT))
    lakes = {"sales": first, "twin": set_up_writes(copied(first, moto))}
    entries = {
        name: {
            "database_url": each.database.url,
            "metadata_schema": each.metadata_schema,
            "data_path": each.data_path,
        }
        for name, each in lakes.items()
    }
    if is_own:
        for name, entry in entries.items():
            entry["staging_location"] = f"{staging}/{name}"
    file = tmp_path / "lakes.toml"
    file.write_text(toml(**entries))
    settings = {} if is_own else {"STAGING_LOCATION": staging}
    options = {"delivery": delivery, "writes": True, "page": False}
    with serving_of(file, moto, settings=settings, **options) as bridge:
        append_to_each(bridge.catalog_uri, bridge.s3_endpoint, staging, *lakes)


ENCRYPTED = "29_encrypted"
"""A lake that is refused as a whole."""

NAMES = sorted({path.stem for path in SCRIPTS.glob("*.sql")} - {ENCRYPTED})


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_each_test_lake_beside_its_twin(name, lake, moto):
    """The twin has lost a row of each table, where it has one."""
    first = lake.fresh(name)
    twin = copied(first, moto)
    tables = names_of(first, moto)
    for namespace, table in tables:
        source = f"lake.{identifier(namespace)}.{identifier(table)}"
        try:
            run(twin, moto, f"DELETE FROM {source} WHERE rowid = (SELECT min(rowid) FROM {source})")
        except Exception as error:
            print(f"{name}: {table} of the twin stays: {error}")
    with served(first, twin, moto) as stand_in:
        for opened_name, each in (("lake", first), ("twin", twin), ("lake", first)):
            where = (stand_in.api_uri, opened_name, stand_in.s3_uri)
            with (
                closing(native.open(each, moto)) as ours,
                closing(pyiceberg.open(*where)) as client,
            ):
                for namespace, table in tables:
                    try:
                        count = client.rows(namespace, table).num_rows
                    except Exception as error:  # what the client or the lake refuses
                        print(f"{name}: {table} is not compared: {type(error).__name__}")
                        continue
                    assert count == ours.rows(namespace, table).num_rows, (opened_name, table)


def toml(**lakes: dict[str, str]) -> str:
    lines = []
    for name, settings in lakes.items():
        lines += [f"[{name}]", *(f"{key} = {json.dumps(text)}" for key, text in settings.items())]
    return "\n".join(lines)


@pytest.mark.slow
@pytest.mark.parametrize("command", ["publish", "verify", "doctor"])
def test_a_command_works_on_one_lake_of_a_file(command, twins, moto, tmp_path):
    """`publish` puts into the cache what the functions look for."""
    lake, twin = twins
    settings = {"database_url": twin.database.url, "metadata_schema": "twin"}
    file = tmp_path / "lakes.toml"
    file.write_text(toml(twin=settings | {"data_path": twin.data_path}))
    words = [command, f"{file}#twin", "--s3-endpoint", moto, "--json"]
    with served(lake, twin, moto) as stand_in:
        before = keys(moto)
        done = subprocess.run(
            [*COMMAND, *words],
            env=environment({"VIRTUAL_BUCKET": ALIAS, **cache_settings(moto)}),
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        report = json.loads(done.stdout)
        if command == "publish":
            start = f"s3://{ALIAS}/"
            assert report["tables"][0]["metadata_location"].startswith(f"{start}polynya/twin/")
            table = Rest(stand_in.api_uri, "twin").load_table("main", "t")
            lists = {each["manifest-list"].removeprefix(start) for each in table["snapshots"]}
            assert lists and lists <= keys(moto)
            assert all(key.startswith("polynya/twin/") for key in keys(moto) - before)


@pytest.mark.slow
def test_three_kinds_of_lakes_by_one_command(lake, moto, tmp_path):
    """Each is read and written beside the others; one that is missing is left out."""
    in_postgresql = set_up_writes(lake.write("kinds", SCRIPT))
    in_files = {kind: file_lakes.empty(kind, tmp_path / kind) for kind in file_lakes.KINDS}
    for each in in_files.values():
        with file_lakes.writing(each) as con:
            con.execute("CREATE TABLE lake.t (i INTEGER, s VARCHAR)")
            con.execute("INSERT INTO lake.t VALUES (1, 'native')")
    entries = {kind: {"database_url": each.address} for kind, each in in_files.items()}
    entries["sales"] = {
        "database_url": in_postgresql.database.url,
        "data_path": in_postgresql.data_path,
    }
    entries["gone"] = {"database_url": str(tmp_path / "gone.ducklake")}
    file = tmp_path / "lakes.toml"
    file.write_text(toml(**entries))
    served = {"delivery": "object-lambda", "writes": True}
    with serving_of(file, moto, **served) as bridge:
        assert set(bridge.warehouses) == {"duckdb", "sqlite", "sales"}
        page = requests.get(f"{bridge.page}?format=json", timeout=60).json()
        assert [each["name"] for each in page["lakes"]] == list(bridge.warehouses)
        assert {each["state"] for each in page["lakes"]} == {"served"}
        assert {each["summary"]["tables"] for each in page["lakes"]} == {1}
        assert "there is no file" in page["not_served"]["gone"]
        listed = requests.get(bridge.page, timeout=60).text
        assert "not served" in listed and str(tmp_path / "gone.ducklake") in listed
        # The functions read and write where they did before, whichever page was shown last.
        for name in bridge.warehouses:
            tables = requests.get(f"{bridge.page}lakes/{name}/tables/main/t", timeout=60)
            assert tables.status_code == 200
        for name in bridge.warehouses:
            client = load_catalog("c", uri=bridge.catalog_uri, warehouse=name)
            table = client.load_table("main.t")
            before = table.scan().to_arrow().num_rows
            table.append(pa.table({"i": pa.array([7], pa.int32()), "s": [f"to {name}"]}))
            rows = client.load_table("main.t").scan().to_arrow()
            assert rows.num_rows == before + 1
            written = {text for text in rows["s"].to_pylist() if text.startswith("to ")}
            assert written == {f"to {name}"}
            events = requests.get(f"{bridge.catalog_uri}/v1/{name}/events?since=1", timeout=60)
            assert events.json()["events"][-1]["changes"][0]["name"] == "t"
            tables = requests.get(f"{bridge.page}lakes/{name}/tables/main/t", timeout=60)
            assert tables.status_code == 200
            assert f'href="/lakes/{name}/tables/main/t/rows"' in tables.text
        shown = requests.get(f"{bridge.catalog_uri}/metrics", timeout=60).text
        assert "polynya_mirror_age_seconds" in shown
    for each in in_files.values():
        with file_lakes.writing(each) as con:
            assert con.execute("SELECT count(*) FROM lake.t WHERE s LIKE 'to %'").fetchall() == [
                (1,)
            ]
    with closing(native.open(in_postgresql, moto)) as opened:
        assert opened.query("SELECT count(*) FROM lake.t WHERE s = 'to sales'") == [(1,)]
    # Without one of them the others are as they were.
    del entries["sqlite"]
    file.write_text(toml(**entries))
    with serving_of(file, moto, **served) as bridge:
        assert set(bridge.warehouses) == {"duckdb", "sales"}
        client = load_catalog("c", uri=bridge.catalog_uri, warehouse="duckdb")
        assert client.load_table("main.t").scan().to_arrow().num_rows == 2


@pytest.mark.slow
def test_a_lake_that_clients_may_not_write_stays_as_it_is(tmp_path):
    """Beside one that they may write: its file gets no table, and its folder no file."""
    lakes = {name: file_lakes.empty("duckdb", tmp_path / name) for name in ("sales", "archive")}
    for each in lakes.values():
        with file_lakes.writing(each) as con:
            con.execute("CREATE TABLE lake.t (i INTEGER)")
            con.execute("INSERT INTO lake.t FROM range(50)")
    entries = {name: {"database_url": each.address} for name, each in lakes.items()}
    entries["archive"]["writes"] = "no"
    file = tmp_path / "lakes.toml"
    file.write_text(toml(**entries))
    archive = lakes["archive"]
    before = archive.file.read_bytes(), sorted(archive.data.rglob("*"))
    with serving_of(file, None, delivery="object-lambda", writes=True) as bridge:
        for name in lakes:
            where = {"uri": bridge.catalog_uri, "s3.endpoint": bridge.s3_endpoint}
            table = load_catalog("c", warehouse=name, **where).load_table("main.t")
            rows = pa.table({"i": pa.array([7], pa.int32())})
            if name == "archive":
                with pytest.raises(OSError, match="polynya serve --writes"):
                    table.append(rows)
            else:
                table.append(rows)
                assert table.scan().to_arrow().num_rows == 51
    assert (archive.file.read_bytes(), sorted(archive.data.rglob("*"))) == before


LAKES = 50


@pytest.mark.slow
def test_fifty_lakes_of_which_one_hangs(lake, moto, tmp_path):
    """The others answer meanwhile; the one is refused at once after two slow failures."""
    first = lake.write("fifty", SCRIPT)
    names = [f"lake_{number}" for number in range(LAKES)]
    text = ""
    for name in names:
        each = copied(first, moto, name)
        url = each.database.url
        text += f'[{name}]\ndatabase_url = "{url}"\nmetadata_schema = "{name}"\n'
        text += f'data_path = "{each.data_path}"\n'
    file = tmp_path / "lakes.toml"
    file.write_text(text)
    with serving_of(file, moto, delivery="object-lambda", page=False) as bridge:

        def asked(name: str) -> tuple[float, int]:
            started = time.monotonic()
            url = f"{bridge.catalog_uri}/v1/{name}/namespaces/main/tables/t"
            status = requests.get(url, timeout=60).status_code
            return time.monotonic() - started, status

        for name in names:
            assert asked(name)[1] == 200
        connections = first.database.connect()
        [(count,)] = connections.run(
            "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'polynya' "
            f"AND datname = {literal(first.database.dbname)}"
        )
        alone = sorted(seconds for seconds, _ in map(asked, names[1:]))
        connections.run("BEGIN")
        connections.run(f"LOCK TABLE {names[0]}.ducklake_metadata IN ACCESS EXCLUSIVE MODE")
        hanging: list[tuple[float, int]] = []
        thread = threading.Thread(target=lambda: hanging.extend(asked(names[0]) for _ in range(4)))
        thread.start()
        beside = [asked(name) for name in names[1:]]
        while thread.is_alive():
            beside += [asked(name) for name in names[1:]]
        connections.run("ROLLBACK")
        connections.close()
    median = [sorted(seconds)[len(seconds) // 2] for seconds in (alone, [s for s, _ in beside])]
    print(f"connections {count}; median alone, beside: {median}; at most {max(beside)}; {hanging}")
    assert count == 1
    assert {status for _, status in beside} == {200}
    assert {status for _, status in hanging} == {503}
    assert hanging[-1][0] < 1 < hanging[0][0]
    assert max(seconds for seconds, _ in beside) < hanging[0][0]
