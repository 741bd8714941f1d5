"""The files of a small commit are read from S3 while PostgreSQL reads the table."""

from contextlib import closing
from threading import Event

import pyarrow as pa
import pytest
from polynya.catalog.writer import WritableCatalog
from polynya.commits.plan import early_reads
from polynya.runtime.errors import ServiceUnavailable
from polynya.storage.direct_s3 import RangeReader
from polynya_local.clients.pyiceberg import s3_properties
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.io.pyarrow import _dataframe_to_data_files

from tests.support.servers.in_process import bridge
from tests.support.writes.writable import EMPTY, set_up_writes

DATA = pa.table({"id": pa.array(range(100), pa.int64())})
KINDS = ["list", "manifest", "footer"]


@pytest.fixture(scope="module")
def table(lake, moto):
    one = set_up_writes(lake.write("early_reads", EMPTY))
    with (
        bridge(one, moto, writes=True) as served,
        closing(
            RestCatalog(
                "c",
                uri=served.catalog_uri,
                warehouse=served.warehouse,
                **s3_properties(served.s3_endpoint),
            )
        ) as catalog,
    ):
        yield catalog.create_table("main.t", DATA.schema)


def kind(key: str) -> str:
    name = key.rpartition("/")[2]
    if name.endswith(".parquet"):
        return "footer"
    return "list" if name.startswith("snap-") else "manifest"


class Reads:
    """What a commit reads of S3, in order."""

    def __init__(self) -> None:
        self.kinds: list[str] = []
        self.fails_next = False
        self.is_over = Event()
        """The footer was read."""

    def of(self, key: str) -> None:
        self.kinds.append(kind(key))
        if self.fails_next:
            self.fails_next = False
            raise ServiceUnavailable("S3 does not answer")
        if self.kinds[-1] == "footer":
            self.is_over.set()


@pytest.fixture
def reads(monkeypatch):
    found, fetch = Reads(), RangeReader.fetch

    def recorded(self, bucket, key, first, end):
        found.of(key)
        return fetch(self, bucket, key, first, end)

    monkeypatch.setattr(RangeReader, "fetch", recorded)
    return found


@pytest.fixture
def slow_table(monkeypatch, reads):
    """The table is read only when the files have been."""
    state = WritableCatalog._state

    def waiting(self, opened):
        assert reads.is_over.wait(30)
        return state(self, opened)

    monkeypatch.setattr(WritableCatalog, "_state", waiting)


def appended(table, times: int = 1) -> int:
    """The rows that one commit of so many files adds, as the table has them after it."""
    before = table.refresh().scan().count()
    with table.transaction() as transaction, transaction.update_snapshot().fast_append() as update:
        for _ in range(times):
            update.append_data_file(written(table, transaction))
    return table.refresh().scan().count() - before


def written(table, transaction):
    [file] = _dataframe_to_data_files(transaction.table_metadata, DATA, table.io)
    return file


@pytest.mark.usefixtures("slow_table")
def test_each_file_is_read_once_before_the_table(table, reads):
    assert appended(table) == len(DATA)
    assert reads.kinds == KINDS


def test_data_files_of_a_larger_commit_are_read_after_the_table(table, reads):
    files = early_reads.MOST + 1
    assert appended(table, files) == files * len(DATA)
    assert reads.kinds == ["list", "manifest", *["footer"] * files]


def test_long_manifests_are_read_after_the_table(table, reads, monkeypatch):
    monkeypatch.setattr(early_reads, "MOST_BYTES", 10)
    assert appended(table) == len(DATA)
    assert reads.kinds == KINDS


def test_what_fails_early_is_read_again(table, reads):
    reads.fails_next = True
    assert appended(table) == len(DATA)
    assert reads.kinds == ["list", *KINDS]
