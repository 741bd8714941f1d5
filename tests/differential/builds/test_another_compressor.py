"""After an upgrade with another compressor, or another DuckDB, old names give their old bytes or
none."""

import zlib
from contextlib import closing

import pytest
from polynya.ducklake.connection.database import Database
from polynya.iceberg.avro import container
from polynya.iceberg.sandbox import writer_of
from polynya.runtime.errors import NoSuchKey
from polynya.virtual_files import names

from tests.support.servers.avro_files import AvroServer, empty_cache

pytestmark = pytest.mark.usefixtures("s3")

TABLES = {"09": "d", "14": "fl", "62": "pe", "82": "by_day"}
"""By the lake: tables with stored deletes, flushed rows, partitions, and inlined rows."""


UPGRADES = ("compressor", "duckdb")
# CI has each upgrade on one of the lakes.
CASES = [
    pytest.param(number, name, marks=[pytest.mark.slow] * (place != 2 * UPGRADES.index(name)))
    for place, number in enumerate(TABLES)
    for name in UPGRADES
]


@pytest.fixture
def upgrade(request, monkeypatch):
    """Replaces the compressor by zlib, or the release of DuckDB that writes Parquet."""

    def replace() -> None:
        if request.param == "duckdb":
            monkeypatch.setattr(names, "WRITER", writer_of("2.0.0"))
            return
        codecs = {"deflate": lambda block: zlib.compress(block, 9, wbits=-15)}
        monkeypatch.setattr(container, "CODECS", codecs)
        monkeypatch.setattr("polynya.iceberg.avro.container.CODECS", codecs)
        monkeypatch.setattr(names, "COMPRESSOR", "zlib")

    return replace


@pytest.mark.parametrize(("number", "upgrade"), CASES, indirect=["upgrade"])
def test_old_names_give_old_bytes_or_none(number, lake, upgrade):
    one, table, cache = lake(number), TABLES[number], empty_cache()
    with closing(Database(one.database.url, one.metadata_schema)) as database:
        before = AvroServer(one, database, cache).avro_files(table, snapshots=3)
        assert before
        upgrade()
        after = AvroServer(one, database, empty_cache()).avro_files(table, snapshots=3)
        assert not before.keys() & after.keys()
        assert set(after.values()) - set(before.values())
        assert {key: AvroServer(one, database, cache).read(key) for key in before} == before
        for key in before:
            with pytest.raises(NoSuchKey):
                AvroServer(one, database, empty_cache()).read(key)
