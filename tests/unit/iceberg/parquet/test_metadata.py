"""What footers say, of files with the same and with other columns in one batch."""

import io

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polynya.iceberg.parquet import metadata as module
from polynya.iceberg.parquet.footer import NotParquet, schema_prefix
from polynya.iceberg.parquet.metadata import Footer, footer_length, metadata


def field(name, type_, id_):
    return pa.field(name, type_, metadata={"PARQUET:field_id": str(id_)})


SCHEMAS = (
    pa.schema([field("a", pa.int64(), 1), field("b", pa.int64(), 2)]),
    pa.schema([field("a", pa.int64(), 1), field("b", pa.int64(), 3)]),
    pa.schema([field("a", pa.int64(), 1)]),
    pa.schema([field("a", pa.int64(), 1), field("c", pa.int64(), 2)]),
)


def written(schema: pa.Schema, first: int) -> bytes:
    """A file of two row groups."""
    stream = io.BytesIO()
    columns = [pa.array(range(first, first + 6), pa.int64()) for _ in schema]
    pq.write_table(pa.table(columns, schema=schema), stream, row_group_size=3)
    return stream.getvalue()


FILES = [written(schema, number) for number in range(5) for schema in SCHEMAS]


def said_by_arrow(file: bytes) -> tuple:
    """Row count, and by column its name, its field id and its bounds in each row group."""
    opened = pq.ParquetFile(io.BytesIO(file))
    columns = []
    for place, one in enumerate(opened.schema_arrow):
        groups = [opened.metadata.row_group(n).column(place).statistics for n in range(2)]
        bounds = [(str(group.min), str(group.max), group.null_count) for group in groups]
        columns.append((one.name, int(one.metadata[b"PARQUET:field_id"]), bounds))
    return opened.metadata.num_rows, columns


def said_by_us(footers: list[Footer]) -> list[tuple]:
    found = []
    for one in metadata(footers):
        columns = [
            (leaf.name, *leaf.ids, [(g.min_value, g.max_value, g.null_count) for g in groups])
            for leaf, groups in zip(one.leaves, one.row_groups, strict=True)
        ]
        found.append((one.num_rows, columns))
    return found


@pytest.mark.parametrize("most", [module.MOST_PREFIXES, 2, 0])
def test_a_footer_says_what_arrow_reads(monkeypatch, most):
    """However many different schemas are looked for among the files."""
    monkeypatch.setattr(module, "MOST_PREFIXES", most)
    footers = [Footer(len(file), file[-footer_length(file) :]) for file in FILES]
    assert said_by_us(footers) == [said_by_arrow(file) for file in FILES]


def test_a_file_that_says_two_numbers_of_rows_is_refused():
    file = FILES[0]
    start = len(file) - footer_length(file)
    place = start + len(schema_prefix(file[start:])) + 1
    assert file[place] == 6 << 1  # zigzag
    lying = file[:place] + bytes([5 << 1]) + file[place + 1 :]
    with pytest.raises(NotParquet, match="differs from that of its row groups"):
        metadata([Footer(len(file), file[start:]), Footer(len(lying), lying[start:])])


def test_geometries_of_several_types_in_some_of_several_files(tmp_path):
    """A file without a box is read in one batch with one that has it."""
    path = tmp_path / "geometries.parquet"
    with duckdb.connect() as con:
        con.execute(
            "COPY (SELECT unnest(['POINT (1 2)', 'LINESTRING (0 0, 5 6)'])::GEOMETRY AS g) "
            f"TO '{path}' (GEOPARQUET_VERSION 'V2')"
        )
    files = [FILES[0], path.read_bytes(), FILES[1]]
    said = metadata([Footer(len(file), file[-footer_length(file) :]) for file in files])
    assert [len(file.leaves) for file in said] == [2, 1, 2]
    [[group]] = said[1].row_groups
    assert group.geometry_types == ["point", "linestring"]
    bounds = [group.bbox[name] for name in ("xmin", "xmax", "ymin", "ymax")]
    assert bounds == [0, 5, 0, 6]
    assert {g.geometry_types for file in (said[0], said[2]) for [g, _] in file.row_groups} == {None}
