"""One commit of very many files with 20 columns, whose footers the function reads."""

import resource
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from unittest.mock import patch

import boto3
import pyarrow as pa
from polynya.storage.direct_s3 import RangeReader
from pyiceberg.catalog import Catalog
from pyiceberg.manifest import DataFile
from pyiceberg.table import Table as IcebergTable

from ...report import Row, Table, kb, ms
from ..lakes import BUCKET, NAMESPACE
from ..workshop import FEW, Workshop, say
from .writable import Served, served
from .writers import open_pyiceberg

COUNTS = (1_000, 10_000)
COLUMNS = {
    **{f"long_{n}": pa.int64() for n in range(8)},
    **{f"double_{n}": pa.float64() for n in range(4)},
    **{f"text_{n}": pa.string() for n in range(4)},
    **{f"moment_{n}": pa.timestamp("us") for n in range(2)},
    "day": pa.date32(),
    "flag": pa.bool_(),
}
ROWS = 50
DIFFERENT = 8
"""Files that are really written; the others are copies under names of their own."""


def table(shop: Workshop) -> Table:
    """Measure commits of so many files."""
    lake = shop.lake(FEW, FEW)
    rows: list[Row] = []
    with served(lake, shop.s3_endpoint) as ours:
        catalog = open_pyiceberg(ours.uri, shop.s3_endpoint)
        written = catalog.create_table((NAMESPACE, "many"), _rows(0).schema)
        for number in range(DIFFERENT):
            written.append(_rows(number))
        files = [task.file for task in written.refresh().scan().plan_files()]
        bodies = {file.file_path: _read(shop, file) for file in files}
        for count in COUNTS:
            say(f"writes: one commit of {count:,} files ...")
            names = _copies(shop.s3_endpoint, files, count)
            rows.append(_row(ours, written, names, count, "in S3"))
            with _serve_from_memory(bodies, files):
                names = [
                    (file, _path(file, f"memory-{count}-{n}")) for n, file in _many(files, count)
                ]
                rows.append(_row(ours, written, names, count, "in memory"))
    return Table(
        f"One commit of many files with {len(COLUMNS)} columns (milliseconds)",
        rows,
        (
            "CPU: of the function; in memory: S3 answers at once, and costs nothing",
            "peak MB: of the whole process, the client and its files included",
        ),
    )


def commit(catalog: Catalog, name: tuple[str, str], count: int, s3_endpoint: str) -> None:
    """Create a table, and commit so many files to it at once."""
    table = catalog.create_table(name, _rows(0).schema)
    table.append(_rows(0))
    [task] = table.refresh().scan().plan_files()
    _append(table, _copies(s3_endpoint, [task.file], count))


def _rows(number: int) -> pa.Table:
    numbers = pa.array(range(number * ROWS, (number + 1) * ROWS), pa.int64())
    made = {
        pa.string(): numbers.cast(pa.string()),
        pa.date32(): numbers.cast(pa.int32()).cast(pa.date32()),
        pa.bool_(): pa.array([n % 2 == 0 for n in range(ROWS)]),
    }
    columns = {name: made.get(type_) for name, type_ in COLUMNS.items()}
    return pa.table(
        {name: numbers.cast(COLUMNS[name]) if c is None else c for name, c in columns.items()}
    )


def _many(files: list[DataFile], count: int) -> Iterator[tuple[int, DataFile]]:
    return ((number, files[number % len(files)]) for number in range(count))


def _path(file: DataFile, name: str) -> str:
    return f"{file.file_path.removesuffix('.parquet')}-{name}.parquet"


def _read(shop: Workshop, file: DataFile) -> bytes:
    client = boto3.client("s3", endpoint_url=shop.s3_endpoint)
    key = file.file_path.removeprefix(f"s3://{BUCKET}/")
    body: bytes = client.get_object(Bucket=BUCKET, Key=key)["Body"].read()
    return body


def _copies(s3_endpoint: str, files: list[DataFile], count: int) -> list[tuple[DataFile, str]]:
    """Files that exist under names of their own."""
    client = boto3.client("s3", endpoint_url=s3_endpoint)

    def copied(numbered: tuple[int, DataFile]) -> tuple[DataFile, str]:
        number, file = numbered
        path = _path(file, f"{count}-{number}")
        key, source = (one.removeprefix(f"s3://{BUCKET}/") for one in (path, file.file_path))
        client.copy_object(Bucket=BUCKET, Key=key, CopySource={"Bucket": BUCKET, "Key": source})
        return file, path

    with ThreadPoolExecutor(8) as pool:
        return list(pool.map(copied, _many(files, count)))


@contextmanager
def _serve_from_memory(bodies: dict[str, bytes], files: list[DataFile]) -> Iterator[None]:
    """Answer for names that do not exist in S3."""
    known = [
        (file.file_path.partition(f"{BUCKET}/")[2].removesuffix(".parquet"), bodies[file.file_path])
        for file in files
    ]
    original = RangeReader.fetch

    def fetch(self: RangeReader, bucket: str, key: str, first: int, end: int) -> bytes | None:
        if "-memory-" not in key:
            return original(self, bucket, key, first, end)
        return next(body for path, body in known if key.startswith(path))[first:end]

    with patch.object(RangeReader, "fetch", fetch):
        yield


def _row(
    ours: Served, written: IcebergTable, names: list[tuple[DataFile, str]], count: int, where: str
) -> Row:
    _append(written, names)
    commit = ours.commits[-1]
    return {
        "files": count,
        "footers": where,
        "CPU": ms(commit.cost.cpu),
        "wall": ms(commit.cost.wall),
        "CPU of a file": ms(commit.cost.cpu / count),
        "statements": commit.statements,
        "peak MB": kb(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss),
    }


def _append(table: IcebergTable, names: list[tuple[DataFile, str]]) -> None:
    transaction = table.refresh().transaction()
    with transaction.update_snapshot().fast_append() as update:
        for file, path in names:
            update.append_data_file(_renamed(file, path))
    transaction.commit_transaction()


def _renamed(file: DataFile, path: str) -> DataFile:
    one = copy(file)
    one._data = [path if value == file.file_path else value for value in file._data]
    return one
