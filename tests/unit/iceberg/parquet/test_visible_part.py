"""The part of a file without some columns: readers find all others, and no byte of these."""

import io
import random

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.parquet.encryption as pe
import pytest
from polynya.iceberg.parquet.footer import TAIL, NotParquet, footer_start
from polynya.iceberg.parquet.new_footer import (
    COLUMNS,
    COMPRESSED_SIZE,
    DATA_PAGE_OFFSET,
    DICTIONARY_PAGE_OFFSET,
    META_DATA,
    ROW_GROUPS,
    FooterChanges,
    Named,
    new_tail,
)
from polynya.iceberg.parquet.thrift import BINARY, Reader, Value, i64, written
from polynya.iceberg.parquet.visible_part import OTHER_FILE, visible_part
from polynya.virtual_files.adapted_data_files import FileEnd

from tests.unit.iceberg.parquet.test_new_footer import with_ids
from tests.unit.iceberg.parquet.test_random_footers import a_file, ids_of

MARKER = "Xq7Zw"
SEEDS = [3, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(100, 140))]


def shown_file(file: bytes, ids: list[int], names=None) -> FileEnd:
    """The file that a caller gets who sees the columns with these ids."""
    start = footer_start(file)
    footer, ranges = visible_part(file[start:-TAIL], start, ids, names)
    tail = new_tail(footer, start, FooterChanges(names=names), len(file) - start + 200)
    return FileEnd("", start, tail, ranges)


def read(file: bytes, end: FileEnd, first: int = 0, last: int | None = None) -> bytes:
    last = end.size - 1 if last is None else last
    return b"".join(end.pieces(first, last, lambda _, first, end: file[first:end]))


def test_two_columns_with_the_same_id_are_refused():
    """One of them may be hidden."""
    columns = [("id", "1", 1), ("name", "2", "a"), ("other", "2", MARKER)]
    fields = [(name, id_, pa.array([value])) for name, id_, value in columns]
    types = [
        pa.field(name, values.type, metadata={"PARQUET:field_id": id_})
        for name, id_, values in fields
    ]
    file = io.BytesIO()
    pq.write_table(pa.table([values for *_, values in fields], schema=pa.schema(types)), file)
    assert shown_file(file.getvalue(), [1])
    with pytest.raises(NotParquet, match="same field id"):
        shown_file(file.getvalue(), [1, 2])


@pytest.fixture(scope="module")
def con():
    with duckdb.connect() as con:
        con.execute("SET threads = 1; SET TimeZone = 'UTC'")
        yield con


@pytest.mark.parametrize("seed", SEEDS)
def test_random_files_keep_the_columns_that_are_shown(seed, con, tmp_path):
    """By two readers, whichever program wrote the file, and by any range."""
    rng, path = random.Random(seed), tmp_path / "file.parquet"
    for _ in range(10):
        try:
            file = a_file(rng, con, path)
        except duckdb.SerializationException:
            continue  # of DuckDB 1.5.5, which writes some files of geometries so
        schema = pq.read_schema(io.BytesIO(file))
        ids = ids_of(schema)
        names = rng.sample(sorted(ids), rng.randint(1, len(ids)))
        end = shown_file(file, [ids[name] for name in names])
        whole = read(file, end)
        shown = [name for name in schema.names if name in names]
        table = pq.read_table(io.BytesIO(whole), use_threads=False)
        assert table.column_names == shown
        expected = pq.read_table(io.BytesIO(file), columns=shown, use_threads=False)
        assert table.to_pydict() == expected.to_pydict()
        path.write_bytes(file)
        columns = ", ".join(shown)
        rows = con.sql(f"SELECT {columns} FROM '{path}'").fetchall()
        path.write_bytes(whole)
        assert con.sql(f"SELECT {columns} FROM '{path}'").fetchall() == rows
        for _ in range(20):
            first = rng.randrange(len(whole))
            last = rng.randrange(first, len(whole))
            assert read(file, end, first, last) == whole[first : last + 1]
            if not end.shows(first, last):
                assert not any(whole[first : last + 1])
        hidden = other_bytes(file, shown)
        assert not any(whole[place] for place in hidden)


def other_bytes(file: bytes, shown: list[str]) -> set[int]:
    """The places of all bytes before the footer that are of no chunk of these columns."""
    metadata = pq.read_metadata(io.BytesIO(file))
    others = set(range(4, footer_start(file)))
    for group in range(metadata.num_row_groups):
        for number in range(metadata.num_columns):
            column = metadata.row_group(group).column(number)
            if column.path_in_schema.split(".")[0] in shown:
                places = [column.data_page_offset]
                if column.has_dictionary_page:
                    places.append(column.dictionary_page_offset)
                # Without a value there may be a dictionary alone; a page that is not there is at 0.
                first = min(filter(None, places), default=4)
                others -= set(range(first, first + column.total_compressed_size))
    return others


def marked(path, options: str) -> bytes:
    """A file with a column of texts that nothing else has, in statistics and Bloom filters too."""
    with duckdb.connect() as con:
        query = f"SELECT i AS a, '{MARKER}' || i % 9 AS s, i % 5 AS b FROM range(4000) AS r(i)"
        con.execute(
            f"COPY ({query}) TO '{path}' (FORMAT parquet, FIELD_IDS {{a: 1, s: 2, b: 3}}, "
            f"COMPRESSION uncompressed, KV_METADATA {{note: '{MARKER}'}}, {options})"
        )
    return path.read_bytes()


@pytest.mark.parametrize("options", ["ROW_GROUP_SIZE 2048", "PARQUET_VERSION v2"])
def test_no_text_of_a_hidden_column_is_left(options, tmp_path):
    file = marked(tmp_path / "file.parquet", options)
    assert file.count(MARKER.encode()) > 5
    assert MARKER.encode() in read(file, shown_file(file, [1, 2, 3]))
    whole = read(file, shown_file(file, [1, 3]))
    assert MARKER.encode() not in whole
    assert pq.read_schema(io.BytesIO(whole)).names == ["a", "b"]
    assert pq.read_table(io.BytesIO(whole))["b"].to_pylist()[:6] == [0, 1, 2, 3, 4, 0]


def test_page_indexes_and_texts_of_arrow_are_left_out(tmp_path):
    table = pa.table({"a": [1, 2, 3], "s": [f"{MARKER}{n}" for n in range(3)]})
    stream = io.BytesIO()
    pq.write_table(
        with_ids(table), stream, compression="none", write_page_index=True, use_dictionary=False
    )
    file = stream.getvalue()
    end = shown_file(file, [ids_of(pq.read_schema(io.BytesIO(file)))["a"]])
    whole = read(file, end)
    assert MARKER.encode() not in whole
    metadata = pq.read_metadata(io.BytesIO(whole))
    assert metadata.metadata is None and metadata.num_columns == 1
    assert pq.read_table(io.BytesIO(whole)).to_pydict() == {"a": [1, 2, 3]}


def test_a_file_without_ids_has_the_columns_of_the_mapping(tmp_path):
    stream = io.BytesIO()
    table = pa.table({"a": [1, 2], "s": [MARKER, MARKER], "t": ["x", "y"]})
    pq.write_table(table, stream, compression="none")
    file = stream.getvalue()
    names = {("a",): Named(7, "first"), ("t",): Named(9, "third")}
    whole = read(file, shown_file(file, [7, 9], names))
    assert MARKER.encode() not in whole
    assert pq.read_table(io.BytesIO(whole)).to_pydict() == {"first": [1, 2], "third": ["x", "y"]}
    assert pq.read_table(io.BytesIO(read(file, shown_file(file, [7], names)))).num_columns == 1
    # Without the mapping no column is known.
    assert pq.read_table(io.BytesIO(read(file, shown_file(file, [7, 9])))).column_names == ["_"]


def footer_with(file: bytes, change) -> bytes:
    metadata = Reader(file[footer_start(file) : -TAIL]).fields()
    change(metadata[ROW_GROUPS].value.items[0][COLUMNS].value.items)
    return written(metadata)


def share_bytes(chunks) -> None:
    """The first column says that it is where the second one is."""
    place = chunks[1][META_DATA].value[DATA_PAGE_OFFSET].value
    meta = chunks[0][META_DATA].value
    meta.pop(DICTIONARY_PAGE_OFFSET, None)
    meta |= {DATA_PAGE_OFFSET: i64(place), COMPRESSED_SIZE: i64(1)}


def be_elsewhere(chunks) -> None:
    chunks[0][OTHER_FILE] = Value(BINARY, b"other.parquet")
    chunks[0] |= dict(sorted(chunks[0].items()))


def reach_further(chunks) -> None:
    """The size of the first column is that of the file."""
    chunks[0][META_DATA].value[COMPRESSED_SIZE] = i64(10**9)


def cover_the_next(chunks) -> None:
    meta = chunks[0][META_DATA].value
    meta[COMPRESSED_SIZE] = i64(meta[COMPRESSED_SIZE].value + 1)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (share_bytes, "share bytes"),
        (be_elsewhere, "another file"),
        (reach_further, "outside"),
        (cover_the_next, "share bytes"),
        (lambda chunks: chunks.pop(), "broken"),
    ],
)
def test_what_is_not_understood_is_refused(change, words, tmp_path):
    file = marked(tmp_path / "file.parquet", "PARQUET_VERSION v1")
    start = footer_start(file)
    with pytest.raises(NotParquet, match=words):
        visible_part(footer_with(file, change), start, [1, 3])


def test_an_encrypted_file_is_refused():
    class Kms(pe.KmsClient):
        def __init__(self, _):
            super().__init__()

        def wrap_key(self, key, _):
            return key.hex()

        def unwrap_key(self, key, _):
            return bytes.fromhex(key)

    factory, stream = pe.CryptoFactory(Kms), io.BytesIO()
    settings = pe.EncryptionConfiguration(
        footer_key="f", column_keys={"c": ["s"]}, plaintext_footer=True
    )
    table = pa.table({"a": [1, 2], "s": [MARKER, MARKER]})
    properties = factory.file_encryption_properties(pe.KmsConnectionConfig(), settings)
    pq.write_table(with_ids(table), stream, encryption_properties=properties)
    file = stream.getvalue()
    start = footer_start(file)
    with pytest.raises(NotParquet, match="encrypted"):
        visible_part(file[start:-TAIL], start, [50])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_damaged_footer_shows_nothing_hidden(seed, tmp_path):
    """Unless it says that another column is the hidden one."""
    file = marked(tmp_path / "file.parquet", "ROW_GROUP_SIZE 2048")
    rng, start = random.Random(seed), footer_start(file)
    footer, refused = file[start:-TAIL], 0
    places = [match for match in range(len(file)) if file.startswith(MARKER.encode(), match)]
    schema = schema_of(footer)
    for _ in range(300):
        damaged = bytearray(footer)
        for _ in range(rng.choice([1, 1, 2])):
            damaged[rng.randrange(len(footer))] = rng.randrange(256)
        try:
            part = visible_part(bytes(damaged), start, [1, 3])
        except NotParquet:
            refused += 1
            continue
        if schema_of(bytes(damaged)) != schema:
            continue
        assert MARKER.encode() not in part.footer
        before = [place for place in places if place < start]
        assert not any(f <= place < end for place in before for f, end in part.ranges)
    assert refused > 20


def schema_of(footer: bytes) -> object:
    """The numbers and ids of all columns."""
    elements = Reader(footer).fields()[2].value.items
    return [[element.get(key) for key in (3, 4, 5, 9)] for element in elements]


def test_what_is_kept_says_which_bytes_are_shown():
    end = FileEnd("s3://b/ü", 100, b"tail", ((0, 4), (10, 20)))
    assert FileEnd.decoded(end.encoded()) == end
    assert FileEnd.decoded(FileEnd("s3://b/ü", 100, b"tail").encoded()).visible is None
    places = [(4, 9, False), (4, 10, True), (20, 99, False), (19, 19, True), (50, 100, True)]
    assert [end.shows(first, last) for first, last, _ in places] == [p[2] for p in places]
    own = bytes(range(1, 101))
    shown = own[:4] + bytes(6) + own[10:20] + bytes(80) + b"tail"
    assert read(own, end) == shown
