"""Hostile and unusual footers: the hostile ones are refused before they cost anything."""

import io
import re

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from polynya.iceberg.parquet import footer_limits
from polynya.iceberg.parquet.footer import TAIL, NotParquet
from polynya.iceberg.parquet.footer_limits import check_footers
from polynya.iceberg.parquet.metadata import Footer, footer_length, metadata

from tests.support.writes.hostile_parquet import HOSTILE, LONG, deep, in_limits, mutants


def test_hostile_footers_are_refused_without_taking_time_or_memory():
    """Each is a 400; the process with its limits lives."""
    assert in_limits() == {"NotParquet": len(HOSTILE)}


@pytest.mark.slow
def test_footers_of_as_many_values_as_fit_are_refused_too():
    assert in_limits("long") == {"NotParquet": len(LONG)}


def test_the_deepest_columns_that_are_read():
    file = deep(200)
    [said] = metadata([Footer(len(file), file[-footer_length(file) :])])
    assert [len(leaf.path) for leaf in said.leaves] == [200]


def footer_of(file: bytes) -> bytes:
    return file[-footer_length(file) : -TAIL]


def written(table: pa.Table, **options) -> bytes:
    stream = io.BytesIO()
    pq.write_table(table, stream, **options)
    return stream.getvalue()


ROWS = {"i": [1, 2, 3, None], "s": ["a", "b" * 300, None, "c"], "f": [1.5, None, 2.0, 0.0]}
TABLE = pa.table(ROWS)
NESTED = pa.Table.from_pylist(
    [{"l": [{"x": 1, "m": [("a", [1, 2])]}]}, {"l": None}],
    pa.schema(
        [
            (
                "l",
                pa.list_(
                    pa.struct([("x", pa.int8()), ("m", pa.map_("string", pa.list_(pa.int64())))])
                ),
            )
        ]
    ),
)


class Keys(pe.KmsClient):
    """Wraps keys in nothing."""

    def wrap_key(self, key_bytes, master_key_identifier):
        return key_bytes.hex()

    def unwrap_key(self, wrapped_key, master_key_identifier):
        return bytes.fromhex(wrapped_key)


def with_encrypted_columns() -> bytes:
    """The footer is plain, as older readers need it."""
    config = pe.EncryptionConfiguration(
        footer_key="k", column_keys={"k": ["i"]}, plaintext_footer=True, double_wrapping=False
    )
    keys = pe.CryptoFactory(lambda _: Keys())
    properties = keys.file_encryption_properties(pe.KmsConnectionConfig(), config)
    return written(TABLE, encryption_properties=properties)


UNUSUAL = {
    "5,000 columns": lambda: written(pa.table({f"column_{n}": [n] for n in range(5000)})),
    "400 row groups": lambda: written(pa.table({"i": range(400)}), row_group_size=1),
    "page indexes": lambda: written(TABLE, write_page_index=True, data_page_size=1),
    "sorted": lambda: written(TABLE, sorting_columns=[pq.SortingColumn(0, descending=True)]),
    "nested": lambda: written(NESTED, write_page_index=True),
    "no statistics": lambda: written(TABLE, write_statistics=False),
    "metadata of 100 KB": lambda: written(
        TABLE.replace_schema_metadata({f"k{n}": "v" * 1000 for n in range(100)})
    ),
    "no row": lambda: written(TABLE.slice(0, 0)),
    "encrypted columns": with_encrypted_columns,
}


def of_duckdb(path) -> bytes:
    """With a variant."""
    with duckdb.connect() as con:
        con.execute(
            "COPY (SELECT i, {'a': i}::VARIANT v, 'x'::BLOB b FROM range(5000) t(i)) "
            f"TO '{path}' (FORMAT parquet, ROW_GROUP_SIZE 2048, FIELD_IDS {{i: 1}})"
        )
    return path.read_bytes()


NOTHING = re.compile(b"(?!)")


def verdict(footer: bytes) -> str:
    try:
        check_footers([footer])
    except NotParquet as error:
        return str(error)
    return ""


@pytest.mark.parametrize("name", UNUSUAL)
def test_unusual_footers_pass(monkeypatch, name):
    """Also if each value is walked through."""
    footer = footer_of(UNUSUAL[name]())
    assert verdict(footer) == ""
    monkeypatch.setattr(footer_limits, "_common_chunk", lambda: NOTHING)
    assert verdict(footer) == ""


def test_the_pattern_of_common_columns_decides_nothing(monkeypatch):
    """It only is faster than the walk: of any footer both say the same."""
    bodies = [UNUSUAL[name]() for name in ("page indexes", "nested", "sorted", "encrypted columns")]
    footers = [footer_of(body) for body in mutants(bodies, seed=5, inputs=3000)]
    with_pattern = [verdict(footer) for footer in footers]
    monkeypatch.setattr(footer_limits, "_common_chunk", lambda: NOTHING)
    assert [verdict(footer) for footer in footers] == with_pattern
    assert 500 < sum(said == "" for said in with_pattern) < 2500


@pytest.fixture
def seeds(tmp_path):
    """Files of which chance makes others."""
    for number, name in enumerate(("page indexes", "nested", "no statistics")):
        (tmp_path / f"data-{number}.parquet").write_bytes(UNUSUAL[name]())
    of_duckdb(tmp_path / "data-duckdb.parquet")
    deletes = pa.table({"file_path": ["s3://b/a", "s3://b/c"] * 5, "pos": range(10)})
    (tmp_path / "deletes-0.parquet").write_bytes(written(deletes, row_group_size=4))
    return tmp_path


@pytest.mark.parametrize("inputs", [100, pytest.param(5000, marks=pytest.mark.slow)])
def test_no_chance_costs_the_process(seeds, inputs):
    """Whatever bytes a footer has, it is read or refused, in little time and memory."""
    counts = in_limits(str(seeds), "7", str(inputs), seconds=600)
    assert sum(counts.values()) == 2 * inputs
    assert counts["read"] > inputs / 10
    assert counts["NotParquet"] > inputs / 10
