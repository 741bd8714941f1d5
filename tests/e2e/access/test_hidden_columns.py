"""Columns that a caller may not see: three clients read the others, and a thief gets no byte.

Native DuckLake judges what the clients read. Each value of a hidden column has a text that nothing
else has, in files without compression: it must be in nothing that the restricted caller can get.
"""

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import pyarrow.parquet as pq
import pytest
import requests
from botocore.exceptions import ClientError
from polynya_local.access.token_file import new_line
from polynya_local.clients.duckdb import ICEBERG, connect, literal
from polynya_local.processes.serving import serving
from pyiceberg.exceptions import BadRequestError, NoSuchTableError
from pyiceberg.schema import Schema
from pyiceberg.types import IntegerType, NestedField

from tests.e2e.access.test_callers_of_serve import Team
from tests.support import file_lakes
from tests.support.writes.writable import judging, set_up_writes

MARKER = "Xq7Zw"
"""In each value of a hidden column."""

LAKE = Path(__file__).with_name("hidden_columns.sql")

TABLES = (
    *("files", "parts", "added", "hive", "nested", "late", "renamed", "again"),
    *("inlined", "inlined_parts"),
)
OTHERS = ("first_name", "without_it", "owned", "archive")
"""Tables that the tests below rename, or refuse."""
IN_CI = ("parts", "inlined")
CASES = [pytest.param(name, marks=() if name in IN_CI else pytest.mark.slow) for name in TABLES]

HIDING = {"hidden_columns": ["Secret"]}
"""DuckLake compares names without letter case, and so does the policy."""
POLICY = {
    "rules": [
        {
            "principals": ["token=reader"],
            "tables": {"main": [dict.fromkeys((*TABLES, *OTHERS), HIDING)]},
        },
        {
            "principals": ["token=reader"],
            "tables": {"*": ["*"]},
            "write": {"*": ["*"]},
            "add_files": ["s3://somewhere/else/"],
        },
        {"principals": ["token=writer"], "tables": {"*": ["*"]}, "write": {"*": ["*"]}},
    ]
}


@pytest.fixture(scope="module")
def team(lake, moto, tmp_path_factory) -> Iterator[Team]:
    one = set_up_writes(lake.write("hidden_columns", LAKE.read_text()))
    folder = tmp_path_factory.mktemp("hidden_columns")
    with (
        callers_in(folder) as (options, reader, writer),
        judging(one, moto) as judge,
        serving(
            one.database.url,
            moto,
            delivery="object-lambda",
            metadata_schema=one.metadata_schema,
            writes=True,
            options=options,
        ) as bridge,
    ):
        yield Team(bridge, judge, reader, writer, folder / "tokens", folder / "audit.log")


@contextmanager
def callers_in(folder: Path) -> Iterator[tuple[tuple[str, ...], str, str]]:
    (reader, of_reader), (writer, of_writer) = new_line("reader"), new_line("writer")
    (folder / "tokens").write_text(f"{of_reader}\n{of_writer}\n")
    (folder / "policy.json").write_text(json.dumps(POLICY))
    named = {"--tokens": "tokens", "--policy": "policy.json", "--audit-log": "audit.log"}
    yield tuple(w for o, f in named.items() for w in (o, str(folder / f))), reader, writer


def visible(team: Team, name: str, at: int | None = None) -> list[str]:
    """The columns of a table that the reader sees."""
    source = f"lake.main.{name}" + (f" AT (VERSION => {at})" if at is not None else "")
    described = team.judge.query(f"SELECT column_name FROM (DESCRIBE FROM {source})")
    return [column for (column,) in described if column not in ("secret", "before")]


def native(team: Team, name: str, where: str = "true", at: int | None = None) -> list[Any]:
    source = f"lake.main.{name}" + (f" AT (VERSION => {at})" if at is not None else "")
    columns = ", ".join(visible(team, name, at))
    return team.judge.query(f"SELECT {columns} FROM {source} WHERE {where} ORDER BY id")


CONDITIONS = {
    "files": ["country = 'DE'", "country = 'FR'", "name IS NULL", "n >= 29000 AND id < 3005"],
    "parts": ["day = '2026-01-01'", "id > 6"],
    "added": ["name = 'n3'", "id >= 20"],
    "hive": ["day = '2026-01-02'", "id > 3"],
    "inlined": ["n = 7", "id > 9"],
}


@pytest.mark.parametrize("name", CASES)
def test_pyiceberg_reads_all_other_columns(team, name):
    table = team.pyiceberg(team.reader).load_table(f"main.{name}")
    assert [field.name for field in table.schema().fields] == visible(team, name)
    for where in ["true", *CONDITIONS.get(name, [])]:
        assert pyiceberg_rows(table, where) == native(team, name, where), where
    for snapshot in table.snapshots():
        at = snapshot.sequence_number
        rows = pyiceberg_rows(table, "true", snapshot_id=snapshot.snapshot_id)
        assert rows == native(team, name, at=at), at


def pyiceberg_rows(table: Any, where: str, **options: Any) -> list[Any]:
    scan = table.scan(where, **options) if where != "true" else table.scan(**options)
    found = scan.to_arrow()
    columns = [found[name].to_pylist() for name in found.column_names]
    return sorted((tuple(map(plain, row)) for row in zip(*columns, strict=True)), key=by_id(found))


def by_id(found: Any) -> Any:
    place = found.column_names.index("id")
    return lambda row: row[place]


def plain(value: Any) -> Any:
    """A map as DuckDB gives it."""
    is_map = isinstance(value, list) and value and isinstance(value[0], tuple)
    return dict(value) if is_map else value


# What a thief gets


@dataclass(frozen=True)
class Thief:
    """Fetches all that a table of the reader leads to, and looks for what is hidden."""

    team: Team
    name: str

    def answers(self) -> Iterator[tuple[str, Any]]:
        """All answers of the catalog about the table."""
        yield "table", self._get("")
        yield "refs", self._get("?snapshots=refs")
        yield "credentials", self._get("/credentials")
        metadata = self._get("")["metadata"]
        ids = [None, *(snapshot["snapshot-id"] for snapshot in metadata["snapshots"])]
        for snapshot_id in ids:
            planned = self.post("/plan", {"snapshot-id": snapshot_id} if snapshot_id else {})
            if planned.status_code == 200:
                yield f"plan of {snapshot_id}", planned.json()
            else:  # values of a visible column in paths
                assert "planned by the client" in planned.json()["error"]["message"]

    def files(self) -> Iterator[tuple[str, bytes]]:
        """The location and the bytes of all files to which the answers lead."""
        coming = {text for _, answer in self.answers() for text in texts_in(answer)}
        s3, seen = self.s3(), set[str]()
        while coming:
            location = coming.pop()
            if location in seen or not location.startswith("s3://") or location.endswith("/"):
                continue
            seen.add(location)
            try:
                body = s3.get_object(**place(location))["Body"].read()
            except ClientError:
                continue  # the location of the table, and of what the reader may not read
            yield location, body
            if location.endswith(".json"):
                coming.update(texts_in(json.loads(body)))
            if location.endswith(".avro"):
                coming.update(text for record in avro(body) for text in texts_in(record))

    def s3(self) -> Any:
        return self.team.s3(self.team.keys(self.name, self.team.reader))

    def _get(self, more: str) -> Any:
        path = f"/v1/lake/namespaces/main/tables/{self.name}{more}"
        delegation = {"X-Iceberg-Access-Delegation": "vended-credentials"}
        answer = self.team.asked(path, self.team.reader, **delegation)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def post(self, more: str, body: Any) -> requests.Response:
        uri = f"{self.team.bridge.catalog_uri}/v1/lake/namespaces/main/tables/{self.name}{more}"
        token = {"Authorization": f"Bearer {self.team.reader}"}
        return requests.post(uri, json=body, headers=token, timeout=60)


def texts_in(thing: Any) -> Iterator[str]:
    """All texts of a document, names of fields included."""
    if isinstance(thing, dict):
        for key, value in thing.items():
            yield from texts_in(key)
            yield from texts_in(value)
    elif isinstance(thing, list | tuple):
        for item in thing:
            yield from texts_in(item)
    elif isinstance(thing, bytes):
        yield thing.decode("latin-1")
    else:
        yield str(thing)


def place(location: str) -> dict[str, str]:
    bucket, _, key = location.removeprefix("s3://").partition("/")
    return {"Bucket": bucket, "Key": key}


def avro(body: bytes) -> list[Any]:
    """The records of an Avro file, and the texts in its header."""
    reader = fastavro.reader(BytesIO(body))
    return [*reader, reader.metadata]


@pytest.mark.parametrize("name", CASES)
def test_nothing_that_the_reader_can_get_has_a_hidden_value(team, name):
    thief, kinds = Thief(team, name), set[str]()
    for what, answer in thief.answers():
        found = [text for text in texts_in(answer) if is_hidden(text)]
        assert found == [], what
    for location, body in thief.files():
        kinds.add(location.rpartition(".")[2])
        assert not is_hidden(location)
        assert MARKER.encode() not in body, location
        if location.endswith(".avro"):
            assert [t for t in texts_in(avro(body)) if is_hidden(t)] == [], location
        if location.endswith(".parquet"):
            metadata = pq.read_metadata(BytesIO(body))
            assert not metadata.metadata, "texts of the writer"
            names = [metadata.schema.column(n).path for n in range(metadata.num_columns)]
            assert [path for path in names if is_hidden(path)] == []
    # `files` has version 3, because of a default.
    assert {"json", "avro", "parquet", *(["puffin"] if name == "files" else [])} <= kinds


def is_hidden(text: str) -> bool:
    return MARKER in text or ("secret" in text.lower() and text != "s3.secret-access-key")


@dataclass(frozen=True)
class OwnFile:
    """A data file of the lake, and what the reader gets in its place."""

    own: bytes
    location: str
    shown: bytes


def own_files(team: Team, name: str) -> Iterator[OwnFile]:
    """The data files of a table, each with that of the reader that begins as it does."""
    s3 = team.s3(team.keys(name, team.writer))
    shown = [pair for pair in Thief(team, name).files() if "/data-file-" in pair[0]]
    assert shown
    for path in data_paths(team, name):
        own = s3.get_object(**place(path))["Body"].read()
        start = footer_start(own)
        kept = next(iter(ranges(own, name, is_shown=True)), (4, 4))
        for location, body in shown:
            first, end = kept
            if len(body) > start and body[first:end] == own[first:end]:
                yield OwnFile(own, location, body)
                break
        else:
            raise AssertionError(f"no file of the reader is that of {path}")


def data_paths(team: Team, name: str) -> list[str]:
    """Where the lake has the data files of a table, as its owner reads them."""
    files = team.judge.query(f"FROM ducklake_list_files('lake', '{name}')")
    return sorted({path for path, *_ in files})


def ranges(own: bytes, name: str, *, is_shown: bool) -> Iterator[tuple[int, int]]:
    """The bytes of the columns that the reader sees, or of the others with their Bloom filters."""
    metadata = pq.read_metadata(BytesIO(own))
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            column = metadata.row_group(group).column(number)
            if (column.path_in_schema.split(".")[0] in ("secret", "before")) is is_shown:
                continue
            first = column.dictionary_page_offset or column.data_page_offset
            yield first, first + column.total_compressed_size


@pytest.mark.parametrize("name", [case for case in CASES if "inlined" not in case.values[0]])
def test_bytes_of_hidden_columns_are_zeros_and_ranges_of_them_are_refused(team, name):
    s3, hidden_bytes = Thief(team, name).s3(), 0
    for file in own_files(team, name):
        start = footer_start(file.own)
        mask = bytearray(start)
        mask[:4] = b"\1" * 4
        for first, end in ranges(file.own, name, is_shown=True):
            mask[first:end] = b"\1" * (end - first)
        expected = bytes(b if seen else 0 for b, seen in zip(file.own[:start], mask, strict=True))
        assert file.shown[:start] == expected
        for first, end in ranges(file.own, name, is_shown=False):
            hidden_bytes += end - first
            for part in ((first, end - 1), (first, first), ((first + end) // 2, end - 1)):
                assert refusal(s3, file.location, *part) == "AccessDenied"
            # A client that joins ranges gets the visible part of it.
            got = s3.get_object(**place(file.location), Range=f"bytes=0-{end - 1}")
            assert got["Body"].read() == file.shown[:end]
    assert hidden_bytes


def footer_start(own: bytes) -> int:
    return len(own) - 8 - int.from_bytes(own[-8:-4], "little")


def refusal(s3: Any, location: str, first: int, last: int) -> str:
    with pytest.raises(ClientError) as failed:
        s3.get_object(**place(location), Range=f"bytes={first}-{last}")["Body"].read()
    return str(failed.value.response["Error"]["Code"])


@pytest.mark.parametrize("name", CASES)
def test_no_file_of_others_is_readable_with_the_readers_keys(team, name):
    """All that the owner's answers and files lead to, and the lake's own files."""
    own = {location for location, _ in Thief(team, name).files()}
    everything = {location for location, _ in Thief(owner(team), name).files()}
    everything |= {*data_paths(team, name)}
    assert len(everything) > 3 and not own & everything
    s3 = Thief(team, name).s3()
    for location in sorted(everything):
        for call in (s3.get_object, s3.head_object):
            with pytest.raises(ClientError) as failed:
                call(**place(location))
            status = failed.value.response["ResponseMetadata"]["HTTPStatusCode"]
            assert status in (403, 404), location
    for call in (s3.list_objects_v2, s3.list_objects):
        with pytest.raises(ClientError, match="AccessDenied"):
            call(Bucket=place(data_paths(team, "files")[0])["Bucket"])
    # Nor is one of its own with the keys of another table.
    other = Thief(team, "late" if name != "late" else "files").s3()
    for location in sorted(own):
        with pytest.raises(ClientError, match="NoSuchKey"):
            other.get_object(**place(location))


def owner(team: Team) -> Team:
    return replace(team, reader=team.writer)


def test_the_owner_sees_everything(team):
    """Otherwise the searches above would find nothing in any lake."""
    thief = Thief(owner(team), "parts")
    assert any(MARKER in text for _, answer in thief.answers() for text in texts_in(answer))
    found = [body for location, body in thief.files() if location.endswith(".parquet")]
    assert any(MARKER.encode() in body for body in found)
    entries = [
        r for location, body in thief.files() if location.endswith(".avro") for r in avro(body)
    ]
    assert any(MARKER in text for text in texts_in(entries))


def test_a_filter_cannot_name_a_hidden_column(team):
    thief = Thief(team, "files")
    for value in (f"{MARKER}-1", "x"):
        filter_ = {"type": "eq", "term": "secret", "value": value}
        answer = thief.post("/plan", {"filter": filter_})
        assert answer.status_code == 400
        missing = thief.post("/plan", {"filter": {**filter_, "term": "nothing"}})
        assert answer.json()["error"]["message"] == missing.json()["error"]["message"].replace(
            "nothing", "secret"
        )
    # A plan task of the owner is none of the reader.
    assert thief.post("/plan", {"filter": {"type": "eq", "term": "id", "value": 1}}).ok


@pytest.mark.slow
def test_other_warehouses_hide_the_same(team):
    """A snapshot, other clients, and both."""
    newest = team.judge.query("SELECT max(snapshot_id) FROM ducklake_snapshots('lake')")[0][0]
    middle = newest // 2
    for name in ("files", "renamed", "again"):
        for warehouse in (f"lake@{newest}", f"lake@{middle}", "lake+none", "lake+spark", "lake+v3"):
            other = replace(team, warehouse=warehouse)
            try:
                table = other.pyiceberg(team.reader).load_table(f"main.{name}")
            except NoSuchTableError:
                assert warehouse == f"lake@{middle}"
                continue
            at = table.current_snapshot().sequence_number
            assert pyiceberg_rows(table, "true") == native(team, name, at=at)


def test_a_table_without_the_column_is_refused(team):
    catalog = team.pyiceberg(team.reader)
    with pytest.raises(BadRequestError, match="hides a column that this table does not have"):
        catalog.load_table("main.without_it")
    keys = team.keys("files", team.reader)
    for path in data_paths(team, "without_it"):
        with pytest.raises(ClientError, match="AccessDenied"):
            team.s3(keys).get_object(**place(path))


def test_a_renamed_table_has_the_same_columns(team):
    table = team.pyiceberg(team.reader).load_table("main.second_name")
    assert [field.name for field in table.schema().fields] == ["id"]


@pytest.mark.slow
def test_a_renamed_column_is_not_shown(team):
    """Not even if another column gets its name."""
    team.judge.con.execute("CALL lake.set_option('data_inlining_row_limit', 0)")
    team.judge.con.execute("CREATE TABLE lake.main.owned AS SELECT 1 AS id, 'x' AS secret")
    catalog = team.pyiceberg(team.reader)
    table = catalog.load_table("main.owned")
    assert [field.name for field in table.schema().fields] == ["id"]
    team.judge.con.execute("ALTER TABLE lake.main.owned RENAME COLUMN secret TO open")
    with pytest.raises(BadRequestError, match="hides a column that this table does not have"):
        catalog.load_table("main.owned")
    team.judge.con.execute("ALTER TABLE lake.main.owned ADD COLUMN secret VARCHAR")
    table = catalog.load_table("main.owned")
    assert [field.name for field in table.schema().fields] == ["id"]
    team.judge.con.execute("ALTER TABLE lake.main.owned DROP COLUMN secret")
    with pytest.raises(BadRequestError, match="hides a column that this table does not have"):
        catalog.load_table("main.owned")


def test_events_have_no_texts_of_people(team):
    """They may speak of any value."""
    path = "/v1/lake/events?since=1&limit=1000"
    answers = {token: team.asked(path, token).text for token in (team.reader, team.writer)}
    assert all(text in answers[team.writer] for text in ("Xq7Zw-author", "Xq7Zw-message"))
    assert not is_hidden(answers[team.reader]) and '"files"' in answers[team.reader]


def test_ids_of_rows_that_were_moved_are_shown(team):
    """DuckLake's own files have them in a column that the schema does not have."""
    names = {pq.read_schema(BytesIO(file.own)).names[-1] for file in own_files(team, "parts")}
    assert "_ducklake_internal_row_id" in names
    for file in own_files(team, "parts"):
        own, shown = (pq.read_schema(BytesIO(body)).names for body in (file.own, file.shown))
        assert shown == [name for name in own if name != "secret"]


def test_keys_of_a_new_table_do_not_reach_one_that_has_had_another_name(team):
    """It may have hidden columns because of that name, and the same directory."""
    con, name = team.judge.con, "lake.main.bounce"
    con.execute("CALL lake.set_option('data_inlining_row_limit', 0)")
    con.execute(f"CREATE TABLE {name} AS SELECT 1 AS id, 'Xq7Zw-bounce' AS secret")
    con.execute(f"ALTER TABLE {name} RENAME TO archive")
    con.execute("ALTER TABLE lake.main.archive RENAME TO bounce")
    [path] = data_paths(team, "bounce")
    con.execute(f"DROP TABLE {name}")
    catalog = team.pyiceberg(team.reader)
    catalog.create_table("main.bounce", Schema(NestedField(1, "id", IntegerType())))
    s3 = team.s3(team.keys("bounce", team.reader))
    with pytest.raises(ClientError, match="AccessDenied"):
        s3.get_object(**place(path))


def test_the_reader_writes_no_table_with_hidden_columns(team):
    """By no operation; the reader may write all others."""
    uri = f"{team.bridge.catalog_uri}/v1/lake"
    token = {"Authorization": f"Bearer {team.reader}"}
    before = team.judge.query("SELECT max(snapshot_id) FROM ducklake_snapshots('lake')")
    commit = {"requirements": [], "updates": [{"action": "set-properties", "updates": {"a": "b"}}]}
    of_files = {"identifier": {"namespace": ["main"], "name": "files"}, **commit}
    of_open = {"identifier": {"namespace": ["main"], "name": "open"}, **commit}
    names = {
        "source": {"namespace": ["main"], "name": "files"},
        "destination": {"namespace": ["main"], "name": "other"},
    }
    schema = {
        "type": "struct",
        "fields": [{"id": 1, "name": "a", "type": "int", "required": False}],
    }
    for method, path, body in (
        ("POST", "/namespaces/main/tables/files", commit),
        ("POST", "/namespaces/main/tables/second_name", commit),
        ("POST", "/transactions/commit", {"table-changes": [of_open, of_files]}),
        ("DELETE", "/namespaces/main/tables/files", None),
        ("DELETE", "/namespaces/main/tables/second_name", None),
        ("POST", "/tables/rename", names),
        (
            "POST",
            "/tables/rename",
            {**names, "source": {"namespace": ["main"], "name": "second_name"}},
        ),
        (
            "POST",
            "/tables/rename",
            {"source": of_open["identifier"], "destination": names["source"]},
        ),
        ("POST", "/namespaces/main/tables", {"name": "first_name", "schema": schema}),
    ):
        answer = requests.request(method, uri + path, json=body, headers=token, timeout=60)
        assert answer.status_code == 403, (path, answer.text)
        assert "hides columns of it from you" in answer.json()["error"]["message"]
    assert before == team.judge.query("SELECT max(snapshot_id) FROM ducklake_snapshots('lake')")
    s3, files = Thief(team, "files").s3(), data_paths(team, "files")
    key = {**place(files[0]), "Key": place(files[0])["Key"] + ".x"}
    with pytest.raises(ClientError, match="AccessDenied"):
        s3.put_object(**key, Body=b"x")
    answer = requests.post(
        uri + "/namespaces/main/tables/open", json=commit, headers=token, timeout=60
    )
    assert answer.status_code == 200, answer.text


@pytest.mark.slow
def test_the_page_does_not_show_the_tables(team):
    """Nor do events and metrics."""
    snapshot = team.judge.query("SELECT max(snapshot_id) FROM ducklake_snapshots('lake')")[0][0]
    of_tables = ("", "/files", "/difference?to=9", "/rows", "/profile?read=1", "/read", "/iceberg")
    paths = [f"/tables/main/{name}{page}" for name in ("files", "parts") for page in of_tables]
    sql = requests.utils.quote("SELECT * FROM main.files LIMIT 5")
    paths += ["/", "/changes", f"/?snapshot={snapshot}", f"/sql?query={sql}", "/metrics", "/health"]
    paths += ["/v1/lake/events?since=1&limit=1000", "/v1/lake/namespaces/main/tables"]
    paths += ["/v1/lake/namespaces", "/v1/config?warehouse=lake"]
    for path in paths:
        answer = team.asked(f"{path}{'&' if '?' in path else '?'}format=json", team.reader)
        assert answer.status_code < 500
        assert not is_hidden(answer.text.replace("secret-access-key", "")), path
        if path.startswith("/tables/"):
            assert answer.status_code == 404, path


@pytest.mark.slow
def test_conditions_of_requests_tell_nothing(team):
    """The tags of the answers and of the files are those of the reader alone."""
    path = "/v1/lake/namespaces/main/tables/files"
    tags = [team.asked(path, token).headers["ETag"] for token in (team.reader, team.writer)]
    assert tags[0] != tags[1]
    assert team.asked(path, team.reader, **{"If-None-Match": tags[0]}).status_code == 304
    assert team.asked(path, team.reader, **{"If-None-Match": tags[1]}).status_code == 200
    s3 = Thief(team, "files").s3()
    for location, body in Thief(team, "files").files():
        head = s3.head_object(**place(location))
        assert head["ContentLength"] == len(body)
        again = s3.get_object(**place(location), IfMatch=head["ETag"])
        assert (again["ETag"], again["Body"].read()) == (head["ETag"], body)


# Other clients


@pytest.mark.slow
def test_duckdb_reads_all_other_columns(team):
    with closing(connect(ICEBERG)) as con:
        uri = team.bridge.catalog_uri
        con.execute(f"CREATE SECRET token (TYPE iceberg, TOKEN {literal(team.reader)})")
        con.execute(
            f"ATTACH 'lake' AS ice (TYPE iceberg, ENDPOINT {literal(uri)}, SECRET token, "
            "DEFAULT_SCHEMA 'main')"
        )
        for name in TABLES:
            columns = ", ".join(visible(team, name))
            for where in ["true", *CONDITIONS.get(name, [])]:
                sql = f"SELECT {columns} FROM ice.main.{name} WHERE {where} ORDER BY id"
                assert con.execute(sql).fetchall() == native(team, name, where), (name, where)
            for at in listed(team, name):
                columns = ", ".join(visible(team, name, at))
                sql = f"SELECT {columns} FROM ice.main.{name} AT (VERSION => {at}) ORDER BY id"
                assert con.execute(sql).fetchall() == native(team, name, at=at), (name, at)
            with pytest.raises(duckdb.Error, match="secret"):
                con.execute(f"SELECT secret FROM ice.main.{name}")


def listed(team: Team, name: str) -> list[int]:
    """DuckLake's snapshots of a table."""
    table = team.pyiceberg(team.reader).load_table(f"main.{name}")
    return [snapshot.sequence_number for snapshot in table.snapshots()]


@pytest.mark.slow
@pytest.mark.spark
def test_spark_reads_all_other_columns(team):
    session = team.spark("hidden_columns", f"reader:{team.reader}")

    def rows(sql: str) -> list[Any]:
        return [tuple(map(of_spark, row)) for row in session.sql(sql).collect()]

    for name in TABLES:
        source = f"hidden_columns.main.{name}"
        columns = ", ".join(visible(team, name))
        for where in ["true", *CONDITIONS.get(name, [])]:
            sql = f"SELECT {columns} FROM {source} WHERE {where} ORDER BY id"
            assert rows(sql) == native(team, name, where), (name, where)
        ids = {s.sequence_number: s.snapshot_id for s in snapshots(team, name)}
        for at, id_ in ids.items():
            columns = ", ".join(visible(team, name, at))
            sql = f"SELECT {columns} FROM {source} VERSION AS OF {id_} ORDER BY id"
            assert rows(sql) == native(team, name, at=at), (name, at)


def snapshots(team: Team, name: str) -> list[Any]:
    return list(team.pyiceberg(team.reader).load_table(f"main.{name}").snapshots())


def of_spark(value: Any) -> Any:
    """A struct as DuckDB gives it."""
    return value.asDict() if hasattr(value, "asDict") else value


@pytest.mark.slow
@pytest.mark.parametrize("kind", file_lakes.KINDS)
def test_lakes_in_files_hide_the_same(kind, tmp_path):
    """Their data is in a folder, which the server itself reads."""
    one = file_lakes.empty(kind, tmp_path / "lake")
    with file_lakes.writing(one) as con:
        con.execute("CALL lake.set_option('parquet_compression', 'uncompressed')")
        for name, most in (("files", 0), ("inlined", 100)):
            con.execute(f"CALL lake.set_option('data_inlining_row_limit', {most})")
            con.execute(f"CREATE TABLE {name} (id INTEGER, secret VARCHAR, name VARCHAR)")
            rows = f"SELECT i, '{MARKER}-' || i, 'n' || i FROM range(50) AS r(i)"
            con.execute(f"INSERT INTO {name} {rows}")
    with (
        callers_in(tmp_path) as (options, reader, writer),
        serving(one.address, None, delivery="object-lambda", options=options) as bridge,
    ):
        team = Team(bridge, None, reader, writer, tmp_path / "tokens", tmp_path / "audit.log")
        for name in ("files", "inlined"):
            table = team.pyiceberg(reader).load_table(f"main.{name}")
            assert pyiceberg_rows(table, "true") == [(n, f"n{n}") for n in range(50)]
            bodies = dict(Thief(team, name).files())
            assert len(bodies) >= 4 and not any(MARKER.encode() in b for b in bodies.values())
            s3 = Thief(team, name).s3()
            for location, _ in Thief(owner(team), name).files():
                with pytest.raises(ClientError, match=r"AccessDenied|NoSuchKey"):
                    s3.get_object(**place(location))
