"""Lakes that DuckLake's own extension wrote in version 1.1-dev1, its state of 2026-08-20.

No package has that extension, so each lake is here as an archive: the catalog in SQLite, the files,
and in `expected.json` what the same DuckDB read in every table at every snapshot. Their scripts are
those of tests/lakes as of that day; `life` has nested columns, evolution, inlining and merges.

The release of 2026-10-21 has more than these catalogs: `raised` adds it. Where a lake has delete
files, `with_vectors` makes of them what `write_deletion_vectors` writes in 1.1.
"""

import hashlib
import json
import shutil
import sqlite3
import tarfile
import zlib
from contextlib import closing
from dataclasses import dataclass
from itertools import accumulate, count
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
from polynya_local.clients.canonical import Canonical, canonical, columns_of, difference
from polynya_local.clients.duckdb import connect, identifier
from polynya_local.clients.native import Lake
from polynya_local.lakes.catalogs import SQLiteCatalog
from polynya_local.lakes.mirror import Mirror
from polynya_local.processes.postgres import Server
from pyroaring import BitMap64

from tests.support.catalog_versions import ADDED_COLUMNS, BUCKET, RENAMED, SET_VERSION
from tests.support.file_lakes import FileLake, NativeFile

ARCHIVES = Path(__file__).parents[1] / "lakes" / "1.1"
NAMES = sorted(path.name.removesuffix(".tar.xz") for path in ARCHIVES.iterdir())
NUMBERS = count(1)

SNAPSHOT_OF_ROW = "_ducklake_internal_snapshot_id"


def unpacked(name: str, folder: Path) -> FileLake:
    """A copy of a lake as it is."""
    with tarfile.open(ARCHIVES / f"{name}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return FileLake(name, "sqlite", folder / name)


def raised(lake: FileLake) -> None:
    """Give a catalog what the release has, as its migration does."""
    with closing(sqlite3.connect(lake.file)) as con, con:
        for table, column, type in ADDED_COLUMNS:
            columns = {row[1] for row in con.execute(f"PRAGMA table_info({table})")}
            if column not in columns:
                con.execute(f"ALTER TABLE {table} ADD COLUMN {column} {type}")
        con.execute(SET_VERSION, {"version": "1.1"})


def read_as_1_0(lake: FileLake, folder: Path) -> NativeFile:
    """DuckDB 1.5.5 on a copy of the catalog that is taken back to 1.0.

    Args:
        folder: an empty one, for the copy.
    """
    copy = FileLake(lake.name, lake.kind, folder)
    shutil.copyfile(lake.file, copy.file)
    with closing(sqlite3.connect(copy.file)) as con, con:
        for (table,) in con.execute("SELECT table_name FROM ducklake_inlined_data_tables"):
            for name in RENAMED:
                con.execute(f'ALTER TABLE "{table}" RENAME COLUMN _ducklake_{name} TO {name}')
        for table, column, _ in ADDED_COLUMNS:
            columns = {row[1] for row in con.execute(f"PRAGMA table_info({table})")}
            if column in columns:
                con.execute(f"ALTER TABLE {table} DROP COLUMN {column}")
        con.execute("DROP TABLE ducklake_view_column_tag")
        con.execute(SET_VERSION, {"version": "1.0"})
        data_path = (f"{lake.data}/",)
        con.execute("UPDATE ducklake_metadata SET value = ? WHERE key = 'data_path'", data_path)
    return NativeFile(copy)


def with_vectors(lake: FileLake, *, dated: bool = True) -> int:
    """Turn all delete files into deletion vectors; how many files have several.

    Args:
        dated: False: `partial_max` is NULL, as after a flush.
    """
    several = 0
    with closing(sqlite3.connect(lake.file)) as con, con:
        for delete_file_id, path in con.execute(
            "SELECT delete_file_id, path FROM ducklake_delete_file"
        ).fetchall():
            (file,) = lake.data.rglob(Path(path).name)
            vector, footer_size = _vectors(pq.read_table(file))
            file.with_suffix(".puffin").write_bytes(vector)
            file.unlink()
            several += footer_size > 0
            con.execute(
                """UPDATE ducklake_delete_file SET format = 'puffin', path = ?, footer_size = ?,
                file_size_bytes = ?, row_group_count = NULL,
                partial_max = CASE WHEN ? THEN partial_max END WHERE delete_file_id = ?""",
                (
                    str(Path(path).with_suffix(".puffin")),
                    *(footer_size, len(vector), dated, delete_file_id),
                ),
            )
    return several


def _vectors(deletes: pa.Table) -> tuple[bytes, int]:
    """A bare vector; of several snapshots a Puffin file with one for each, and its footer's size.

    Each vector has the deletes of all snapshots up to its own.
    """
    positions = deletes["pos"].to_pylist()
    if SNAPSHOT_OF_ROW not in deletes.column_names:
        return _vector(positions), 0
    by_snapshot: dict[int, list[int]] = {}
    for position, snapshot_id in zip(positions, deletes[SNAPSHOT_OF_ROW].to_pylist(), strict=True):
        by_snapshot.setdefault(snapshot_id, []).append(position)
    if len(by_snapshot) == 1:
        return _vector(positions), 0
    snapshot_ids = sorted(by_snapshot)
    cumulative = list(accumulate(by_snapshot[snapshot_id] for snapshot_id in snapshot_ids))
    blobs = [_vector(deleted) for deleted in cumulative]
    offsets = accumulate(map(len, blobs), initial=4)
    footer: dict[str, Any] = {
        "blobs": [
            {
                "type": "deletion-vector-v1",
                "fields": [],
                "snapshot-id": -1,
                "sequence-number": -1,
                "offset": offset,
                "length": len(blob),
                "properties": {
                    "referenced-data-file": deletes["file_path"][0].as_py(),
                    "cardinality": str(len(deleted)),
                    "ducklake-snapshot-id": str(snapshot_id),
                },
            }
            for snapshot_id, deleted, blob, offset in zip(
                snapshot_ids, cumulative, blobs, offsets, strict=False
            )
        ]
    }
    payload = json.dumps(footer).encode()
    end = b"PFA1" + payload + len(payload).to_bytes(4, "little") + bytes(4) + b"PFA1"
    return b"".join([b"PFA1", *blobs, end]), len(end)


def _vector(positions: list[int]) -> bytes:
    data = bytes.fromhex("D1D33964") + BitMap64(positions).serialize()
    return len(data).to_bytes(4, "big") + data + zlib.crc32(data).to_bytes(4, "big")


def in_postgresql(lake: FileLake, server: Server, s3_endpoint: str) -> Lake:
    """The lake with its catalog in PostgreSQL and its files in S3."""
    name = f"{lake.name}_1_1_{next(NUMBERS)}"
    location = f"s3://{BUCKET}/{name}"
    s3 = boto3.client("s3", endpoint_url=s3_endpoint)
    for file in filter(Path.is_file, lake.data.rglob("*")):
        key = f"{name}/{file.relative_to(lake.data)}"
        s3.put_object(Bucket=BUCKET, Key=key, Body=file.read_bytes())
    database = server.create_database(name)
    with closing(Mirror(SQLiteCatalog(lake.file), "main", database, None)) as mirror:
        mirror.refresh()
    database.run(f"UPDATE ducklake_metadata SET value = '{location}/' WHERE key = 'data_path'")
    return Lake(name, database, location)


@dataclass(frozen=True, slots=True)
class Recorded:
    """A table at a snapshot, as DuckDB read it."""

    columns: list[tuple[str, str]]
    count: int
    digest: str
    rows: list[list[str | None]] | None
    """None: there are too many to keep."""

    def differences(self, client: pa.Table, hidden: frozenset[str]) -> list[str]:
        """How a client's rows differ, in lines."""
        columns = [(name, type) for name, type in self.columns if name not in hidden]
        with closing(connect()) as con:
            con.register("client", client)
            if self.rows is None:
                return self._different_digest(con, columns)
            texts = [dict(zip(map(first, self.columns), row, strict=True)) for row in self.rows]
            arrays = [pa.array([row[name] for row in texts], pa.string()) for name, _ in columns]
            con.register("texts", pa.table(arrays, [f"c{n}" for n in range(len(arrays))]))
            values = ", ".join(
                f"CAST(c{n} AS {type}) AS {identifier(name)}"
                for n, (name, type) in enumerate(columns)
            )
            source = f"(SELECT {values} FROM texts)"
            types = columns_of(con, source)
            truth = canonical(con, source, types, hidden)
            found: Canonical = canonical(con, "client", types, hidden)
        return difference(truth, found)

    def _different_digest(self, con, columns: list[tuple[str, str]]) -> list[str]:
        texts = ", ".join(
            f"CAST(CAST({identifier(name)} AS {type}) AS VARCHAR)" for name, type in columns
        )
        rows = sorted(map(list, con.execute(f"SELECT {texts} FROM client").fetchall()))
        digest = hashlib.sha256(json.dumps(rows).encode()).hexdigest()
        same = (len(rows), digest) == (self.count, self.digest)
        return [] if same else [f"{len(rows)} rows, not the {self.count} that were recorded"]


def first(pair: tuple[str, str]) -> str:
    return pair[0]


def expected(lake: FileLake) -> dict[tuple[str, str], dict[int | None, Recorded]]:
    """By table and snapshot; None: the newest."""
    document = json.loads((lake.folder / "expected.json").read_text())
    return {
        tuple(table.split(".")): {
            None if snapshot == "now" else int(snapshot): _recorded(then)
            for snapshot, then in snapshots.items()
        }
        for table, snapshots in document.items()
    }


def _recorded(then: dict[str, Any]) -> Recorded:
    columns = [(name, type) for name, type in then["columns"]]
    return Recorded(columns, then["count"], then["digest"], then.get("rows"))
