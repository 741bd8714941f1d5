"""Other field ids in a footer: the file is as long, and everything else is the same."""

import io

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from polynya.iceberg.parquet.footer import columns_of, footer_start
from polynya.iceberg.parquet.generated_files import replace_field_ids

IDS = {2147483540: 2147483446, 2147483539: 2147483445}


def file_of(**ids):
    """A Parquet file with these columns, by their field ids."""
    fields = [
        pa.field(name, pa.int64(), metadata={"PARQUET:field_id": str(id_)})
        for name, id_ in ids.items()
    ]
    rows = [dict.fromkeys(ids, n) for n in range(5)]
    stream = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows, pa.schema(fields)), stream)
    return stream.getvalue()


def changed(file, ids):
    start = footer_start(file)
    footer = replace_field_ids(file[start:], ids)
    return None if footer is None else file[:start] + footer


def test_only_the_ids_differ(tmp_path):
    stored = file_of(id=1, _row_id=2147483540, _last_updated=2147483539, v=2)
    copy = changed(stored, IDS)
    assert len(copy) == len(stored)
    found = [(one.path, one.field_id) for one in columns_of(lambda a, b: copy[a:b], len(copy))]
    assert found == [
        (("id",), 1),
        (("_row_id",), 2147483446),
        (("_last_updated",), 2147483445),
        (("v",), 2),
    ]
    assert (
        pq.read_table(io.BytesIO(copy)).to_pylist() == pq.read_table(io.BytesIO(stored)).to_pylist()
    )
    path = tmp_path / "copy.parquet"
    path.write_bytes(copy)
    with duckdb.connect() as con:
        ids = con.execute(f"SELECT field_id FROM parquet_schema('{path}')").fetchall()
    assert ids[1:] == [(1,), (2147483446,), (2147483445,), (2,)]


@pytest.mark.parametrize(
    "ids", [{"id": 1}, {"_row_id": 2147483540}, {"a": 2147483540, "b": 2147483540}]
)
def test_an_id_that_is_not_there_once_is_not_changed(ids):
    assert changed(file_of(**ids), IDS) is None
