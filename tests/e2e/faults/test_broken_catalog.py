"""With a broken row in DuckLake's catalog, a table has the same rows or is refused with a reason.

Clients never get an unexpected error or other rows; other tables keep working.
"""

import json
import re
import tempfile
from contextlib import closing, contextmanager
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import boto3
import duckdb
import fastavro
import pyarrow.parquet as pq
import pytest
from polynya.ducklake import queries
from polynya.ducklake.connection.database import Database
from polynya_local.clients import native, pyiceberg
from polynya_local.processes.serving import REGION
from polynya_local.queries.listed_files import file_batches

from tests.support.damage import Damage, DamagedLake, damaged, damages
from tests.support.servers.in_process import reset_functions, standing_in
from tests.support.servers.raw_http import send

NAMESPACE = "v"
LAKE = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
USE lake;
CREATE TABLE bystander(i INTEGER);
INSERT INTO bystander VALUES (1), (2);
CREATE SCHEMA v;
CREATE TABLE v.t(i INTEGER, p VARCHAR, s STRUCT(a INTEGER, b VARCHAR), l INTEGER[],
  m MAP(VARCHAR, INTEGER), c DECIMAL(9, 2));
ALTER TABLE v.t SET PARTITIONED BY (p, bucket(1, i));
ALTER TABLE v.t SET SORTED BY (i ASC NULLS LAST);
INSERT INTO v.t SELECT i, 'a', {a: i, b: 'b'}, [i, i], MAP {'k': i}, i FROM range(100) r(i);
INSERT INTO v.t SELECT i, 'b', NULL, [], NULL, NULL FROM range(100, 200) r(i);
DELETE FROM v.t WHERE i < 40;
DELETE FROM v.t WHERE i < 80;
ALTER TABLE v.t ADD COLUMN d INTEGER DEFAULT 7;
ALTER TABLE v.t RENAME COLUMN c TO e;
INSERT INTO v.t VALUES (1000, 'a', {a: 1, b: NULL}, [NULL], MAP {'x': 1}, 1.5, 8);
INSERT INTO v.t VALUES (1001, NULL, {a: 1, b: NULL}, [NULL], MAP {'x': 1}, 1.5, 8);
DELETE FROM v.t WHERE i IN (150, 1001);
COMMENT ON TABLE v.t IS 'commented';
COMMENT ON COLUMN v.t.i IS 'commented';
CREATE TABLE v.merged(i INTEGER);
INSERT INTO v.merged SELECT * FROM range(20);
INSERT INTO v.merged SELECT * FROM range(20, 40);
CALL ducklake_merge_adjacent_files('lake');
DELETE FROM v.merged WHERE i < 15;
CREATE TABLE v.ended(i INTEGER);
INSERT INTO v.ended SELECT * FROM range(60);
DELETE FROM v.ended WHERE i < 20;
DELETE FROM v.ended WHERE i < 40;
DELETE FROM v.ended;
INSERT INTO v.ended VALUES (1);
CREATE TABLE v.added(i INTEGER, s STRUCT(a INTEGER), n INTEGER);
COPY (SELECT i::INTEGER AS i, {a: i::INTEGER} AS s, i % 2 AS n FROM range(10) r(i))
  TO '{{DATA_PATH}}_ext/added' (FORMAT parquet, PARTITION_BY (n));
CALL ducklake_add_data_files('lake', 'added', '{{DATA_PATH}}_ext/added/**/*.parquet',
  schema => 'v', hive_partitioning => true);
CREATE VIEW v.view AS SELECT 1 AS i;
COMMENT ON VIEW v.view IS 'commented';
"""
HUGE = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE t(i BIGINT);
ALTER TABLE t SET PARTITIONED BY (i);
INSERT INTO t FROM range(2);
"""
# (table of the catalog, its row, the tables of the lake that depend on it). `{t}` is the table's
# id, `{inlined}` the table of its inlined rows.
ROWS = [
    ("ducklake_table", "table_id = {t}", ("t",)),
    ("ducklake_schema", "schema_name = 'v'", ("t",)),
    ("ducklake_view", "true", ()),
    ("ducklake_tag", "object_id = {t}", ("t",)),
    ("ducklake_tag", "object_id <> {t}", ()),
    ("ducklake_column_tag", "table_id = {t}", ("t",)),
    ("ducklake_snapshot", "snapshot_id = 9", ("t",)),
    ("ducklake_snapshot_changes", "snapshot_id = 9", ("t",)),
    ("ducklake_schema_versions", "table_id = {t}", ("t",)),
    ("ducklake_column", "table_id = {t} AND column_name = 'i'", ("t",)),
    ("ducklake_column", "table_id = {t} AND column_name = 'element'", ("t",)),
    ("ducklake_column", "table_id = {t} AND column_name = 'd'", ("t",)),
    ("ducklake_data_file", "table_id = {t}", ("t",)),
    ("ducklake_data_file", "table_id = {merged}", ("merged",)),
    ("ducklake_data_file", "table_id = {ended}", ("ended",)),
    ("ducklake_data_file", "table_id = {added}", ("added",)),
    ("ducklake_file_column_stats", "table_id = {t} AND column_id = 1", ("t",)),
    ("ducklake_delete_file", "table_id = {ended}", ("ended",)),
    ("ducklake_delete_file", "table_id = {t}", ("t",)),
    ("ducklake_inlined_delete_{t}", "true", ("t",)),
    ("ducklake_inlined_data_tables", "table_id = {t} AND schema_version >= 5", ("t",)),
    ("{inlined}", "true", ("t",)),
    ("ducklake_partition_info", "table_id = {t}", ("t",)),
    ("ducklake_partition_column", "partition_key_index = 0", ("t",)),
    ("ducklake_partition_column", "partition_key_index = 1", ("t",)),
    ("ducklake_file_partition_value", "table_id = {t}", ("t",)),
    ("ducklake_sort_info", "table_id = {t}", ("t",)),
    ("ducklake_sort_expression", "true", ("t",)),
    ("ducklake_column_mapping", "table_id = {added}", ("added",)),
    ("ducklake_name_mapping", "parent_column IS NULL", ("added",)),
    ("ducklake_name_mapping", "parent_column IS NOT NULL", ("added",)),
]


GONE = "either it is gone, or"
"""Without the right to list a bucket, S3 answers 403 for a missing object. A path to nothing looks
like a missing right, so the answer is 500 and names both reasons."""

NOT_SEEN = {
    ("ducklake_data_file", "table_id = {added}", "mapping_id = NULL"),
    *(("ducklake_delete_file", "table_id = {ended}", f"partial_max = {n}") for n in ("NULL", -1)),
}
"""Such rows look like those of other files of DuckLake: only the file itself shows the difference,
that is the names of an added file's columns, and the snapshots of a delete file's rows."""


class Served(NamedTuple):
    """What clients get of a table: equal values mean equal rows."""

    schemas: list[dict]
    current_schema_id: int
    files: dict[int, list[str]]
    """Data files by path and virtual files by content, for each snapshot."""
    hidden: frozenset[str] = frozenset()


class Refused(NamedTuple):
    status: int
    message: str


class ServedLake(DamagedLake):
    """A lake, the catalog that serves it, and what clients got before any damage."""

    def __init__(self, lake, moto, stand_in) -> None:
        super().__init__(lake)
        self._moto, self._stand_in = moto, stand_in
        self.s3 = boto3.client("s3", endpoint_url=moto, region_name=REGION)
        self.intact = {name: self.served(name) for name in ("t", "merged", "ended", "added")}
        self._rows = {name: self._native(name, seen.files) for name, seen in self.intact.items()}
        for name, rows in self._rows.items():
            assert self._iceberg(name, rows) == rows

    def listings(self) -> dict[str, int]:
        """Statuses of the paths that must work with any damage."""
        targets = ["", "/v/tables", "/v/views", "/v/views/view", "/main/tables/bystander"]
        answers = {target: self._get(f"/v1/lake/namespaces{target}") for target in targets}
        return {target: answer.status for target, answer in answers.items()}

    def served(self, table: str) -> Served | Refused:
        answer = self._get(f"/v1/lake/namespaces/v/tables/{table}")
        if answer.status != 200:
            return Refused(answer.status, json.loads(answer.body)["error"]["message"])
        document = json.loads(answer.body)["metadata"]
        hidden = json.loads(document["properties"].get("polynya.hidden-columns", "[]"))
        lists = {s["snapshot-id"]: s["manifest-list"] for s in document["snapshots"]}
        files = {}
        for at in [max(lists)] if table == "t" else lists:
            found = self._files(lists[at])
            if isinstance(found, Refused):
                return found
            files[at] = sorted(found)
        return Served(document["schemas"], document["current-schema-id"], files, frozenset(hidden))

    def _files(self, location: str) -> list[str] | Refused:
        manifests = self._file(location)
        if manifests.status != 200:
            return Refused(manifests.status, manifests.text)
        files = []
        for manifest in fastavro.reader(BytesIO(manifests.body)):
            entries = fastavro.reader(BytesIO(self._file(manifest["manifest_path"]).body))
            for file in (entry["data_file"] for entry in entries if entry["status"] != 2):
                path = file["file_path"]
                if "/polynya/" in path:
                    body = self._file(path).body
                    is_parquet = file["file_format"].upper() == "PARQUET"
                    path = str(pq.read_table(BytesIO(body)).to_pylist() if is_parquet else body)
                files.append(f"{path} {file['partition']}")
        return files

    def problem(self, table: str) -> str | None:
        """The problem of what clients get of a table, or None."""
        found = self.served(table)
        if isinstance(found, Refused):
            is_clear = 400 <= found.status < 500 and "unexpected" not in found.message
            is_clear |= GONE in found.message
            return None if is_clear else f"{found.status} {found.message}"
        if found == self.intact[table]:
            return None
        try:
            rows = self._iceberg(table, found.files)
        except OSError:
            return None  # a data file is missing: S3 itself answers so
        if rows == _without(self._rows[table], found.hidden, rows):
            return None
        try:
            theirs = self._native(table, rows)
        except Exception as error:
            return f"other rows, where DuckLake fails: {str(error)[:100]}"
        return None if rows == _without(theirs, found.hidden, rows) else "other rows"

    def _native(self, table: str, snapshot_ids) -> dict[int, list]:
        client = native.open(self.lake, self._moto)
        try:
            return {at: _rows(client, table, at) for at in snapshot_ids}
        finally:
            client.close()

    def _iceberg(self, table: str, snapshot_ids) -> dict[int, list]:
        client = pyiceberg.open(self._stand_in.api_uri, "lake", self._stand_in.s3_uri)
        try:
            return {at: _rows(client, table, at) for at in snapshot_ids}
        finally:
            client.close()

    def _get(self, target: str):
        return send(self._stand_in.api_uri, "GET", target)

    def _file(self, location: str):
        return send(self._stand_in.s3_uri, "GET", "/" + location.removeprefix("s3://"))


@pytest.fixture(scope="module")
def served_lake(lake, moto):
    served = lake.write("broken", LAKE)
    with standing_in(served, moto) as stand_in:
        yield ServedLake(served, moto, stand_in)


FIRST_ROWS = {table: (table, row) for table, row, _ in reversed(ROWS)}
# CI makes each column of every second table NULL in one row, and removes a row of the others.
IN_CI = {("gone", *one) for one in [*FIRST_ROWS.values()][1::2]}
IN_CI |= {("missing", *one) for one in [*FIRST_ROWS.values()][::2]}
CASES = [
    pytest.param(kind, *one, marks=[pytest.mark.slow] * ((kind, *one[:2]) not in IN_CI))
    for one in ROWS
    for kind in ("gone", "missing", "strange")
]


@pytest.mark.parametrize(("kind", "table", "row", "shown_by"), CASES)
def test_no_broken_value_causes_other_rows_or_an_unexpected_error(
    served_lake, kind, table, row, shown_by
):
    problems = {}
    for damage in damages(
        served_lake.con, served_lake.filled_in(table), served_lake.filled_in(row), kind
    ):
        with damaged(served_lake.con, damage) as is_damaged:
            if not is_damaged:
                continue
            reset_functions()
            statuses = served_lake.listings()
            found = [
                f"{name}: {problem}" for name in shown_by if (problem := served_lake.problem(name))
            ]
            if max(statuses.values()) >= 500 or statuses["/main/tables/bystander"] != 200:
                found.append(str(statuses))
        if found and (table, row, damage.what) not in NOT_SEEN:
            problems[damage.what] = found
    assert not problems


def _rows(client, table: str, snapshot_id: int) -> list:
    return sorted(client.rows(NAMESPACE, table, snapshot_id).to_pylist(), key=repr)


def _without(rows: dict[int, list], hidden: frozenset[str], at) -> dict[int, list]:
    """The rows of some snapshots, without the hidden columns."""
    return {
        snapshot_id: sorted(
            [{name: row[name] for name in row if name not in hidden} for row in rows[snapshot_id]],
            key=repr,
        )
        for snapshot_id in at
        if snapshot_id in rows
    }


NEST = """INSERT INTO ducklake_column (column_id, begin_snapshot, table_id, column_order,
    column_name, column_type, parent_column)
  SELECT 1000 + n, 3, {t}, 1000 + n, 'n' || n, CASE WHEN n < 500 THEN 'struct' ELSE 'int32' END,
    CASE WHEN n > 1 THEN 999 + n END FROM generate_series(1, 500) AS n"""

# (statement, a part of the message to the client)
SENTENCES = [
    ("DELETE FROM ducklake_column WHERE column_name = 'element'", "the list 'l' has 0 children"),
    ("DELETE FROM ducklake_column WHERE column_name = 'key'", "the map 'm' has 1 children"),
    ("UPDATE ducklake_column SET column_type = NULL WHERE column_name = 'p'", "'p' has no type"),
    ("UPDATE ducklake_column SET column_name = 'p' WHERE column_name = 'i'", "the name 'p'"),
    ("UPDATE ducklake_column SET parent_column = column_id WHERE column_name = 's'", "each other"),
    (NEST, "deeper than 100 levels"),
    (
        "UPDATE ducklake_data_file SET data_file_id = 9223372036854775807 - data_file_id",
        "too large",
    ),
    ("UPDATE ducklake_data_file SET file_size_bytes = NULL", "a file_size_bytes is missing"),
    ("UPDATE ducklake_inlined_data_tables SET table_name = 'gone_' || table_name", "is not there"),
    (
        "INSERT INTO ducklake_inlined_data_tables SELECT * FROM ducklake_inlined_data_tables "
        "WHERE table_id = {t}",
        "twice",
    ),
]


@pytest.mark.parametrize(("sql", "sentence"), SENTENCES)
def test_a_refusal_names_the_fault_and_the_remedy(served_lake, sql, sentence):
    table = re.search(r"ducklake_\w+", sql)[0]
    only = f"{sql} {'AND' if 'WHERE' in sql else 'WHERE'} table_id = {{t}}"
    statement = served_lake.filled_in(only if sql.startswith(("UPDATE", "DELETE")) else sql)
    with damaged(served_lake.con, Damage(table, sentence, statement)):
        reset_functions()
        found = served_lake.served("t")
        assert isinstance(found, Refused) and found.status == 400
        assert sentence in found.message and "restore it from a backup" in found.message
        assert served_lake.listings() == dict.fromkeys(served_lake.listings(), 200)


# (statement, the table of the lake): DuckLake reads the same rows as before.
HARMLESS = [
    ("UPDATE ducklake_schema_versions SET begin_snapshot = 1000 WHERE table_id = {t}", "t"),
    ("UPDATE ducklake_delete_file SET begin_snapshot = 1 WHERE table_id = {merged}", "merged"),
    ("UPDATE ducklake_metadata SET value = rtrim(value, '/') WHERE key = 'data_path'", "merged"),
]


@pytest.mark.parametrize(("sql", "name"), HARMLESS)
def test_what_ducklake_reads_otherwise_or_not_changes_no_row(served_lake, sql, name):
    statement = served_lake.filled_in(sql)
    with damaged(served_lake.con, Damage(statement.split()[1], "harmless", statement)):
        reset_functions()
        assert not isinstance(served_lake.served(name), Refused)
        assert served_lake.problem(name) is None


def test_a_schema_with_two_rows_is_listed_once(served_lake):
    """As native DuckLake does; its tables are refused with the reason."""
    listed = served_lake._get("/v1/lake/namespaces").body
    served_lake.con.run("ALTER TABLE ducklake_schema DROP CONSTRAINT ducklake_schema_pkey")
    sql = "INSERT INTO ducklake_schema SELECT * FROM ducklake_schema WHERE schema_name = 'v'"
    try:
        with damaged(served_lake.con, Damage("ducklake_schema", "two rows", sql)):
            reset_functions()
            assert json.loads(served_lake._get("/v1/lake/namespaces").body) == json.loads(listed)
            assert "ducklake_schema has 2 rows" in served_lake.served("t").message
    finally:
        served_lake.con.run("ALTER TABLE ducklake_schema ADD PRIMARY KEY (schema_id)")


def test_a_catalog_without_a_version_is_refused_as_one_of_an_unknown_version(served_lake):
    sql = "DELETE FROM ducklake_metadata WHERE key = 'version'"
    with damaged(served_lake.con, Damage("ducklake_metadata", "no version", sql)):
        reset_functions()
        refused = served_lake.served("t")
        assert isinstance(refused, Refused) and refused.status == 400
        assert "DuckLake catalog version '' is not served" in refused.message


def test_a_column_of_added_files_without_a_type_is_named(served_lake):
    sql = "UPDATE ducklake_column SET column_type = NULL WHERE table_id = {added}"
    with damaged(served_lake.con, Damage("ducklake_column", "type", served_lake.filled_in(sql))):
        reset_functions()
        refused = served_lake.served("added")
        assert isinstance(refused, Refused) and refused.status == 400
        assert "has no type" in refused.message


def _without_pos(body: bytes) -> bytes:
    out = BytesIO()
    pq.write_table(pq.read_table(BytesIO(body)).drop_columns(["pos"]), out)
    return out.getvalue()


def _far_away(body: bytes) -> bytes:
    """Positions that no data file has. DuckDB writes the file, because its files are copied."""
    with duckdb.connect() as con, tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "before").write_bytes(body)
        ids = "{file_path: 2147483646, pos: 2147483645}"
        con.execute(
            f"COPY (SELECT file_path, pos + 1000000 AS pos FROM read_parquet('{folder}/before')) "
            f"TO '{folder}/after' (FORMAT parquet, FIELD_IDS {ids})"
        )
        return (Path(folder) / "after").read_bytes()


BODIES = {
    "missing": lambda body: None,
    "empty": lambda body: b"",
    "no Parquet": lambda body: b"x" * len(body),
    "truncated": lambda body: body[: len(body) // 2],
    "without its footer": lambda body: body[:-100] + bytes(100),
    "another table": _without_pos,
}


@contextmanager
def damaged_delete_file(served_lake, damage):
    """Replaces the bytes of a delete file of t and yields its key; None removes the file."""
    [[path]] = served_lake.con.run(
        served_lake.filled_in("SELECT path FROM ducklake_delete_file WHERE table_id = {t} LIMIT 1")
    )
    key = f"{served_lake.lake.data_path}/v/t/{path}".removeprefix("s3://lakes/")
    body = served_lake.s3.get_object(Bucket="lakes", Key=key)["Body"].read()
    try:
        if (other := damage(body)) is None:
            served_lake.s3.delete_object(Bucket="lakes", Key=key)
        else:
            served_lake.s3.put_object(Bucket="lakes", Key=key, Body=other)
        reset_functions()
        yield key
    finally:
        served_lake.s3.put_object(Bucket="lakes", Key=key, Body=body)


@pytest.mark.parametrize("what", BODIES)
def test_a_damaged_delete_file_refuses_its_table(served_lake, what):
    with damaged_delete_file(served_lake, BODIES[what]) as key:
        found = served_lake.served("t")
        assert isinstance(found, Refused)
        if what == "missing":
            assert found.status == 500 and GONE in found.message
        else:
            assert found.status == 400
            assert f"the delete file s3://lakes/{key} is" in found.message, found
        assert served_lake.served("merged") == served_lake.intact["merged"]


def test_a_delete_of_missing_rows_is_refused(served_lake):
    with damaged_delete_file(served_lake, _far_away):
        found = served_lake.served("t")
        assert isinstance(found, Refused) and found.status == 400
        assert "names a row that it does not have" in found.message


def test_sizes_that_add_up_to_more_than_64_bits_are_summed_up(lake):
    """The page and `doctor` group files with this statement."""
    written = lake.write("huge", HUGE)
    written.database.run("UPDATE ducklake_data_file SET file_size_bytes = 9000000000000000000")
    database = Database(written.database.url, written.metadata_schema)
    with closing(database), database.transaction() as con:
        catalog = queries.lake().run(con)
        [batch] = file_batches(catalog, 1, catalog.snapshot_id, ()).run(con)
    assert (batch.files, batch.bytes) == (2, 0)
