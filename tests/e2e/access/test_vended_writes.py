"""Who may write a table gets credentials that write its files, and no file of another table."""

import json
from types import SimpleNamespace
from uuid import uuid4

import pytest
import requests
from moto.core import DEFAULT_ACCOUNT_ID
from moto.sts.models import sts_backends
from polynya.access.vended_credentials import CredentialVending
from polynya.ducklake import queries
from polynya.ducklake.rows.objects import Table
from polynya.runtime.settings import Config

from tests.e2e.access.test_vended_places import LAKE, MORE, NOTHING, ROLE, check, policies
from tests.support.iam import allowed
from tests.support.openapi import validator
from tests.support.servers.in_process import standing_in

WRITER = f"arn:aws:iam::{DEFAULT_ACCOUNT_ID}:role/Writer"
READ_ONLY = {"t2", "first"}
WRITABLE = ["t", "one", "ice", "*_*", "crowd", "r*", "host", "guest", "s*", "hive", "lost"]
POLICY = {
    "rules": [
        {"principals": ["*"], "tables": {"*": ["*"]}},
        {"principals": ["*"], "tables": {}, "write": {"main": WRITABLE}},
    ]
}
PUT = "s3:PutObject"
SETTINGS = {"WRITES": "yes", "WRITER_ROLE": WRITER, "AUTHORIZATION": json.dumps(POLICY)}
PLACES = """
SELECT t.table_name, t.table_uuid::text, concat(m.value, s.path, t.path)
FROM ducklake_table AS t JOIN ducklake_schema AS s USING (schema_id)
JOIN ducklake_metadata AS m ON m.key = 'data_path' WHERE t.end_snapshot IS NULL"""


@pytest.fixture(scope="module", params=["object-lambda", "materialize"])
def vended(request, lake, moto):
    served = lake.write("vended_writes", LAKE)
    con = served.database.connect()
    con.run(MORE.format(served.data_path))
    places = {name: (uuid, directory) for name, uuid, directory in con.run(PLACES)}
    con.close()
    found = policies(served, moto, request.param, **SETTINGS)
    return SimpleNamespace(**vars(found), places=places, moto=moto)


def written(vended: SimpleNamespace, table: str) -> list[str]:
    """The two prefixes below which clients write a table, by the words of docs/security.md."""
    uuid, directory = vended.places[table]
    return [f"{directory}{uuid}/", f"{vended.lake.data_path}/.polynya-staging/{uuid}/"]


@pytest.mark.slow("[object-lambda]")
def test_writers_and_readers_of_a_table_get_sessions_of_different_roles(vended):
    assert vended.places.keys() - vended.roles.keys() == NOTHING
    readers = {table for table, role in vended.roles.items() if role == ROLE}
    assert readers == READ_ONLY and set(vended.roles.values()) == {ROLE, WRITER}


def test_writers_read_all_of_one_table_and_nothing_of_another(vended):
    check(vended)


def test_writers_put_files_below_two_prefixes_and_nowhere_else(vended):
    everywhere = {path for *_, path in vended.files}
    new = {table: [f"{one}new" for one in written(vended, table)] for table in vended.places}
    for table, policy in vended.policies.items():
        own = set() if table in READ_ONLY else set(new[table])
        mine = {f for f in everywhere if f.startswith(written(vended, table)[0]) and own}
        others = everywhere.union(*new.values())
        assert {path for path in others if allowed(policy, path, PUT)} == own | mine, table
        assert not any(allowed(policy, path, "s3:DeleteObject") for path in others)
    assert any(path.startswith(written(vended, "ice")[0]) for path in everywhere)


ALONE = {"t", "replaced", "rooted", "guest", "stars", "hive"}
"""Tables that may be written, in whose directories no other table has files."""


def test_delete_files_of_duckdb_can_be_put_into_a_directory_of_one_table(vended):
    name = "day=1/f47ac10b-58cc-4372-a567-0e02b2c3d479-deletes.parquet"
    beside = {table: f"{directory}{name}" for table, (_, directory) in vended.places.items()}
    beside |= {"staging": f"{vended.lake.data_path}/.polynya-staging/{name}"}
    beside |= {"lake": f"{vended.lake.data_path}/{name}"}
    for table, policy in vended.policies.items():
        found = {one for one, path in beside.items() if allowed(policy, path, PUT)}
        assert found == ({table} & ALONE), table


# The directory of a table that does not exist yet, and a file of another table in it.
NEW = [("brand_new/", None), ("one/", "one"), ("t/", "t")]


@pytest.mark.parametrize(("path", "sharer"), NEW)
def test_the_writer_of_a_new_table_reads_and_writes_only_its_own_files(vended, path, sharer):
    """Stage-create: a client uploads files before the table exists."""
    environ = {"DATABASE_URL": "u", "VIRTUAL_BUCKET": "v", "VENDING_ROLE": ROLE, **SETTINGS}
    config = Config.from_env(environ | {"DELIVERY": vended.delivery})
    table = Table(1 << 40, str(uuid4()), 1, None, 0, path.strip("/"), path, True)
    virtual = f"s3://v/polynya/{table.table_uuid}"
    con = vended.lake.database.connect()
    lake, schemas = queries.lake().run(con), queries.schemas_at(1).run(con)
    scope = CredentialVending(config).scope(con, lake, schemas[0], table, virtual, may_write=True)
    con.close()
    data = f"{vended.lake.data_path}/main/{path}{table.table_uuid}"
    staged = f"{vended.lake.data_path}/.polynya-staging/{table.table_uuid}"
    assert scope.role == WRITER
    for action in (PUT, "s3:GetObject"):
        assert allowed(scope.policy, f"{data}/f", action)
        assert allowed(scope.policy, f"{staged}/f", action)
    others = [f for *_, f in vended.files] + written(vended, sharer or "t")
    assert not [f for f in others if allowed(scope.policy, f) or allowed(scope.policy, f, PUT)]


def test_the_answer_has_an_entry_for_each_prefix(vended):
    with standing_in(
        vended.lake,
        vended.moto,
        delivery=vended.delivery,
        VENDING_ROLE=ROLE,
        AWS_ENDPOINT_URL_STS=vended.moto,
        **SETTINGS,
    ) as stand_in:
        header = {"X-Iceberg-Access-Delegation": "vended-credentials"}
        sessions = sts_backends[DEFAULT_ACCOUNT_ID]["aws"].assumed_roles

        def load(table: str, prefix: str = "lake") -> tuple[list[str], str]:
            url = f"{stand_in.api_uri}/v1/{prefix}/namespaces/main/tables/{table}"
            body = requests.get(url, headers=header, timeout=60).json()
            validator("#/components/schemas/LoadTableResult").validate(body)
            entries = body["storage-credentials"]
            assert all(one["config"].items() <= body["config"].items() for one in entries)
            first, *prefixes = [entry["prefix"] for entry in entries]
            assert first == f"{body['metadata']['location']}/"
            return prefixes, sessions[-1].role_arn

        own = [vended.places[table][1] for table in ("t", "t2")]
        assert load("t") == ([own[0], *sorted(written(vended, "t"))], WRITER)
        assert load("t2") == ([own[1]], ROLE)
        snapshot = requests.get(f"{stand_in.api_uri}/health", timeout=60).json()["snapshot-id"]
        assert load("t", f"lake--at-{snapshot}") == ([own[0]], ROLE)  # a pinned lake is read-only
