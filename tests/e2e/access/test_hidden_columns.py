"""Columns that a caller may not see: three clients read the others, and a thief gets no byte.

Native DuckLake judges what the clients read. Each value of a hidden column has a text that nothing
else has, in files without compression: it must be in nothing that the restricted caller can get.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from io import BytesIO
from pathlib import Path
from typing import Any

import fastavro
import pyarrow.parquet as pq
import pytest
import requests
from botocore.exceptions import ClientError
from polynya_local.access.token_file import new_line
from polynya_local.processes.serving import serving

from tests.e2e.access.test_callers_of_serve import Team
from tests.support.writes.writable import judging, set_up_writes

MARKER = "Xq7Zw"
"""In each value of a hidden column."""

LAKE = Path(__file__).with_name("hidden_columns.sql")

TABLES = (
    *("files", "parts", "added", "nested", "late", "renamed", "again"),
    *("inlined", "inlined_parts"),
)
HIDING = {"hidden_columns": ["Secret"]}
"""DuckLake compares names without letter case, and so does the policy."""
POLICY = {
    "rules": [
        {
            "principals": ["token=reader"],
            "tables": {"main": [dict.fromkeys((*TABLES, "first_name", "without_it"), HIDING)]},
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
    "inlined": ["n = 7", "id > 9"],
}


@pytest.mark.parametrize("name", TABLES)
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


@pytest.mark.parametrize("name", TABLES)
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
    assert {"json", "avro", "parquet"} <= kinds


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


@pytest.mark.parametrize("name", ["files", "nested", "late", "renamed", "again", "added"])
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


@pytest.mark.parametrize("name", TABLES)
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
