"""`polynya writes`, and what `polynya serve --writes` checks, with roles of a real PostgreSQL."""

import json
from contextlib import closing
from dataclasses import replace
from types import SimpleNamespace
from uuid import uuid4

import pytest
import urllib3
from pg8000.native import identifier
from polynya.runtime.errors import READ_ONLY, Misconfigured
from polynya_local.cli import app
from polynya_local.processes.postgres import Database
from polynya_local.processes.serving import serving
from polynya_local.writes import check_writes, everybody_may_write
from typer.testing import CliRunner

from tests.support import file_lakes

ROLES = ("lake owner", "lake_writer", "lake_reader", "lake_stranger")
OWNER, WRITER, READER, STRANGER = ROLES
# Column, type, whether it may be NULL.
COLUMNS = [
    ["table_uuid", "uuid", "NO"],
    ["client_snapshot_id", "bigint", "YES"],
    ["snapshot_id", "bigint", "NO"],
    ["position", "integer", "NO"],
    ["operation", "text", "YES"],
    ["summary", "text", "YES"],
    ["idempotency_key", "uuid", "YES"],
    ["principal", "text", "YES"],
    ["route", "text", "YES"],
    ["body_hash", "text", "YES"],
]


@pytest.fixture(scope="module")
def roles(postgres_server):
    """An owner of lakes, a member of it, a reader, and a role that only reads too."""
    run = postgres_server.maintenance.run
    for role in ROLES:
        run(f"CREATE ROLE {identifier(role)} LOGIN")
    run(f"GRANT {identifier(OWNER)} TO {WRITER}")
    yield
    for role in ROLES:
        run(f"DROP ROLE IF EXISTS {identifier(role)}")


IN_A_SCHEMA_OF_ITS_OWN, IN_PUBLIC = "40", "31"


@pytest.fixture
def owned(request, lake, roles):
    """A lake that belongs to OWNER, and that READER and STRANGER may read."""
    made = lake.fresh(getattr(request, "param", IN_A_SCHEMA_OF_ITS_OWN))
    schema = identifier(made.metadata_schema)
    with closing(made.database.connect()) as con:
        tables = con.run(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = :s",
            s=made.metadata_schema,
        )
        con.run(f"GRANT USAGE, CREATE ON SCHEMA {schema} TO {identifier(OWNER)}")
        con.run(f"GRANT USAGE ON SCHEMA {schema} TO {READER}, {STRANGER}")
        for (table,) in tables:
            con.run(f"ALTER TABLE {schema}.{identifier(table)} OWNER TO {identifier(OWNER)}")
            con.run(f"GRANT SELECT ON {schema}.{identifier(table)} TO {READER}, {STRANGER}")
    yield made
    made.database.run(f"DROP OWNED BY {', '.join(map(identifier, ROLES))}")
    made.database.run(f"REVOKE {identifier(OWNER)} FROM {STRANGER}")


def as_role(lake, role: str) -> Database:
    return replace(lake.database, user=role)


def writes(lake, role: str, *words: str) -> SimpleNamespace:
    where = ["--database", as_role(lake, role).url, "--metadata-schema", lake.metadata_schema]
    done = CliRunner().invoke(app, ["writes", *where, *words])
    return SimpleNamespace(code=done.exit_code, said=done.stderr, printed=done.stdout)


def table(lake) -> str:
    return f"{identifier(lake.metadata_schema)}.polynya_commits"


def columns(lake) -> list[list[str]]:
    return lake.database.run(
        "SELECT column_name, data_type, is_nullable FROM information_schema.columns "
        "WHERE table_schema = :s AND table_name = 'polynya_commits' ORDER BY ordinal_position",
        s=lake.metadata_schema,
    )


def owner_and_indexes(lake) -> tuple[str, list[str]]:
    [[owner]] = lake.database.run(
        "SELECT tableowner FROM pg_tables WHERE schemaname = :s AND tablename = 'polynya_commits'",
        s=lake.metadata_schema,
    )
    indexes = lake.database.run(
        "SELECT substr(indexdef, position('USING' IN indexdef)) FROM pg_indexes "
        "WHERE schemaname = :s AND tablename = 'polynya_commits' ORDER BY 1",
        s=lake.metadata_schema,
    )
    # Of the index of sinks without the expression that finds them.
    return owner, [definition.partition("((")[0] for (definition,) in indexes]


INDEXES = [
    "USING btree (idempotency_key) WHERE (idempotency_key IS NOT NULL)",
    "USING btree (table_uuid, ",
    "USING btree (table_uuid, client_snapshot_id)",
    "USING btree (table_uuid, snapshot_id)",
]


@pytest.mark.parametrize("owned", [IN_A_SCHEMA_OF_ITS_OWN, IN_PUBLIC], indirect=True)
@pytest.mark.parametrize("role", [OWNER, WRITER, "postgres"])
def test_setup_creates_the_table_as_the_owner_of_ducklakes(owned, role):
    before = writes(owned, role)
    assert before.code == 1 and "run `polynya writes --setup`" in before.said
    done = writes(owned, role, "--setup")
    assert done.code == 0 and f"created the table polynya_commits, which belongs to {OWNER}" in (
        done.said
    )
    assert columns(owned) == COLUMNS
    assert owner_and_indexes(owned) == (OWNER, INDEXES)
    assert as_role(owned, READER).run(f"SELECT count(*) FROM {table(owned)}") == [[0]]
    # As an earlier release left it.
    schema = identifier(owned.metadata_schema)
    owned.database.run(f"DROP INDEX {schema}.polynya_commits_of_sink")
    assert writes(owned, role, "--setup").code == 0
    assert owner_and_indexes(owned) == (OWNER, INDEXES)


def missing_indexes(lake) -> list[str]:
    where = ["--database", as_role(lake, OWNER).url, "--metadata-schema", lake.metadata_schema]
    return CliRunner().invoke(app, ["indexes", *where]).stdout.splitlines()


@pytest.mark.parametrize("role", [OWNER, WRITER])
def test_setup_creates_the_indexes(owned, role):
    missing = missing_indexes(owned)
    assert missing
    assert writes(owned, role, "--setup", "--no-indexes").code == 0
    assert missing_indexes(owned) == missing
    done = writes(owned, role, "--setup")
    assert done.code == 0
    assert missing_indexes(owned) == []


def test_setup_without_the_indexes_says_why(owned):
    """Commits are right without them."""
    schema = identifier(owned.metadata_schema)
    owned.database.run(f"ALTER TABLE {schema}.ducklake_file_column_stats OWNER TO postgres")
    done = writes(owned, WRITER, "--setup")
    assert done.code == 0 and "indexes are missing: CREATE INDEX" in done.said
    assert "only the owner of DuckLake's tables may create an index" in done.said


def test_setup_changes_nothing_the_second_time(owned):
    assert writes(owned, WRITER, "--setup").code == 0
    insert = f"INSERT INTO {table(owned)} (table_uuid, snapshot_id, position) VALUES "
    owned.database.run(insert + "(gen_random_uuid(), 1, 0)")
    again = writes(owned, WRITER, "--setup")
    assert again.code == 0 and "was there already" in again.said and "granted" not in again.said
    assert owned.database.run(f"SELECT count(*) FROM {table(owned)}") == [[1]]
    assert writes(owned, WRITER).said == (
        f"polynya: Iceberg clients can write with the role {WRITER}\n"
    )


def test_the_printed_sql_is_what_setup_runs(owned):
    script = writes(owned, WRITER, "--print")
    assert script.code == 0 and columns(owned) == []
    with closing(as_role(owned, WRITER).connect()) as con:
        for statement in script.printed.split(";"):
            if statement.strip():
                con.run(statement)
    assert columns(owned) == COLUMNS
    assert owner_and_indexes(owned) == (OWNER, INDEXES)
    assert missing_indexes(owned) == []
    assert writes(owned, WRITER).code == 0


def test_a_snapshot_id_of_a_client_is_recorded_once(owned):
    assert writes(owned, WRITER, "--setup").code == 0
    insert = (
        f"INSERT INTO {table(owned)} (table_uuid, client_snapshot_id, snapshot_id, position) "
        "VALUES ('01a1fb09-8760-7336-b677-0e4f6c1fb6b5', :client_id, :snapshot_id, 0)"
    )
    owned.database.run(insert, client_id=7, snapshot_id=1)
    for number in (2, 3):
        owned.database.run(insert, client_id=None, snapshot_id=number)
    with pytest.raises(Exception, match="23505"):
        owned.database.run(insert, client_id=7, snapshot_id=4)


def test_a_role_that_is_no_member_of_the_owner_may_not_set_up(owned):
    done = writes(owned, STRANGER, "--setup")
    assert done.code == 1 and f"must be {OWNER} or a member of it" in done.said
    assert columns(owned) == []


# A role, statements that spoil a lake that is set up, and the remedy that `polynya writes` names.
SPOILED = [
    (STRANGER, [], f'GRANT "{OWNER}" TO "{STRANGER}"'),
    (WRITER, ["ALTER TABLE {table} OWNER TO postgres"], 'ALTER TABLE {table} OWNER TO "{owner}"'),
    (
        WRITER,
        ['REVOKE SELECT ON {table} FROM "lake_reader"'],
        'GRANT SELECT ON {table} TO "lake_reader"',
    ),
]


@pytest.mark.parametrize(("role", "spoil", "remedy"), SPOILED)
def test_a_missing_grant_is_named_with_its_remedy(owned, role, spoil, remedy):
    assert writes(owned, WRITER, "--setup").code == 0
    names = {"table": table(owned), "owner": OWNER}
    for statement in spoil:
        owned.database.run(statement.format(**names))
    done = writes(owned, role)
    remedy = remedy.format(**names)
    assert done.code == 1 and done.said.endswith(f": {remedy}\n"), done.said
    owned.database.run(remedy)
    assert writes(owned, role).code == 0


# What makes a lake that nobody can write, and the words of the refusal.
CANNOT_BE_WRITTEN = [
    ("0.3", "has version 0.3, and only "),
    ("7.5", "7.5"),
]


@pytest.mark.parametrize(("version", "words"), CANNOT_BE_WRITTEN)
def test_setup_changes_nothing_where_the_version_is_refused(version, words, owned):
    schema = identifier(owned.metadata_schema)
    owned.database.run(
        f"UPDATE {schema}.ducklake_metadata SET value = '{version}' WHERE key = 'version'"
    )
    for option in ((), ("--setup",)):
        done = writes(owned, WRITER, *option)
        assert done.code == 1 and words in done.said, done.said
    assert owned.database.run(f"SELECT to_regclass('{schema}.polynya_commits')") == [[None]]


def test_a_database_that_does_not_answer_is_named(lake):
    nowhere = replace(lake("01"), database=replace(lake("01").database, port=1))
    done = writes(nowhere, "postgres")
    assert done.code == 1 and "127.0.0.1:1 cannot be reached: connection refused" in done.said


# `polynya writes` and `polynya serve --writes` ask the same questions.
UNWRITABLE = [
    ("data_path", "/somewhere/", "the lake's data is in /somewhere/, not in S3"),
    ("encrypted", "true", "this DuckLake is encrypted"),
    ("version", "0.4", "has version 0.4, and only 1.0, 1.1-dev1 and 1.1 can be written"),
]


@pytest.mark.parametrize(("key", "value", "words"), UNWRITABLE)
def test_serve_refuses_what_writes_does(key, value, words, lake):
    made = lake.fresh("01")
    assert writes(made, "postgres", "--setup").code == 0
    made.database.run(
        "INSERT INTO ducklake_metadata (key, value) SELECT 'encrypted', 'false' WHERE NOT EXISTS "
        "(SELECT FROM ducklake_metadata WHERE key = 'encrypted')"
    )
    made.database.run("UPDATE ducklake_metadata SET value = :v WHERE key = :k", v=value, k=key)
    checked = writes(made, "postgres")
    served = CliRunner().invoke(app, ["serve", made.database.url, "--writes", "--port", "0"])
    assert (checked.code, served.exit_code) == (1, 1)
    assert words in checked.said
    problems = checked.said.removeprefix("polynya: ")
    assert served.stderr == f"polynya: Iceberg clients cannot write: {problems}"


# polynya serve --writes


def served(lake, role: str, moto: str, **settings: str):
    how = {"metadata_schema": lake.metadata_schema, "settings": settings, "writes": True}
    return serving(as_role(lake, role).url, moto, **how)


def test_serve_starts_the_function_that_writes(owned, moto):
    assert writes(owned, WRITER, "--setup").code == 0
    with served(owned, WRITER, moto) as bridge:
        assert bridge.writes is True
        answer = urllib3.request("POST", f"{bridge.catalog_uri}/v1/lake/namespaces", json={})
        assert answer.json()["error"]["message"] != READ_ONLY
        # What no commit names may be removed; the role is a member of the owner, not the owner.
        of_table = f"{owned.data_path.removeprefix('s3://').rstrip('/')}/main/t/{uuid4()}"
        uploaded = f"{bridge.s3_endpoint}/{of_table}/a.parquet"
        statuses = [urllib3.request(method, uploaded).status for method in ("PUT", "DELETE", "GET")]
        assert statuses == [200, 204, 404]


def test_serve_is_read_only_without_the_option(owned, moto):
    url = as_role(owned, READER).url
    with serving(url, moto, metadata_schema=owned.metadata_schema) as bridge:
        assert bridge.writes is False
        answer = urllib3.request("POST", f"{bridge.catalog_uri}/v1/lake/namespaces", json={})
        error = answer.json()["error"]
        assert (answer.status, error["type"]) == (403, "ForbiddenException")
        assert "--writes" in error["message"]


def test_serve_says_what_writes_lack_and_ends(owned, moto):
    with pytest.raises(RuntimeError) as failure, served(owned, STRANGER, moto):
        pass
    said = str(failure.value)
    assert "polynya: Iceberg clients cannot write: " in said
    assert "run `polynya writes --setup`" in said
    assert f'GRANT "{OWNER}" TO "{STRANGER}"' in said
    assert not owned.database.run("SELECT 1 FROM pg_class WHERE relname = 'polynya_commits'")


def test_what_serve_checks_creates_what_writes_lack(owned, capfd):
    """One command is enough where the role may; `polynya writes` finds nothing to do then."""
    check_writes(as_role(owned, WRITER).url, owned.metadata_schema, None, is_for_everybody=False)
    assert "created the table polynya_commits" in capfd.readouterr().err
    assert writes(owned, WRITER).code == 0
    check_writes(as_role(owned, WRITER).url, owned.metadata_schema, None, is_for_everybody=False)
    assert capfd.readouterr().err == ""


def test_what_serve_checks_creates_what_a_lake_of_an_earlier_version_lacks(owned):
    assert writes(owned, WRITER, "--setup").code == 0
    name = f"{identifier(owned.metadata_schema)}.polynya_changed_uploads"
    owned.database.run(f"DROP TABLE {name}")
    for _ in range(2):
        check_writes(
            as_role(owned, WRITER).url, owned.metadata_schema, None, is_for_everybody=False
        )
        assert as_role(owned, OWNER).run(f"SELECT count(*) FROM {name}") == [[0]]


def test_what_serve_checks_says_why_it_cannot_create_it(owned):
    """The owner may create nothing in the schema, in whose tables it may write."""
    schema = identifier(owned.metadata_schema)
    owned.database.run(f"REVOKE CREATE ON SCHEMA {schema} FROM {identifier(OWNER)}, PUBLIC")
    with pytest.raises(Misconfigured, match="must be allowed to create tables in the schema"):
        check_writes(
            as_role(owned, WRITER).url, owned.metadata_schema, None, is_for_everybody=False
        )


def test_a_lake_in_a_file_lacks_nothing(tmp_path):
    lake = file_lakes.empty("duckdb", tmp_path)
    for command in ("writes", "indexes"):
        done = CliRunner().invoke(app, [command, lake.address])
        assert (done.exit_code, done.stdout) == (0, ""), command
        assert "the catalog is in a file" in done.stderr
        missing = CliRunner().invoke(app, [command, str(tmp_path / "none.ducklake")])
        assert missing.exit_code == 1 and "none.ducklake" in missing.stderr


def test_without_a_policy_everybody_may_write_to_everything():
    [rule] = json.loads(everybody_may_write())["rules"]
    everything = {"*": ["*"]}
    assert rule == {
        "principals": ["*"],
        "tables": everything,
        "write": everything,
        "add_files": [],
    }
    # Only the lake's own data path, and only if the policy can name it.
    for path, places in {
        "s3://b/": ["s3://b/"],
        "s3://b/a/": ["s3://b/a/"],
        "s3://b//a/": [],
    }.items():
        [rule] = json.loads(everybody_may_write(path))["rules"]
        assert rule["add_files"] == places
