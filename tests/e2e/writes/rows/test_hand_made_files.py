"""Files that no client of today writes: refused if native DuckLake would read other rows of them.

Each was accepted before, with lost or wrong rows or an error in native DuckLake, as said.
"""

import datetime
import itertools
from contextlib import nullcontext
from dataclasses import replace

import boto3
import duckdb
import pyarrow as pa
import pytest
from polynya.storage.s3_locations import bucket_and_key

from tests.support.writes.hand_made import HandMade, dv, parquet
from tests.support.writes.writable import EMPTY, judging

NUMBERS = itertools.count(1)
TWO = pa.array([1, 2])
SOME = parquet({("id", 1): TWO, ("v", 2): pa.array([5, 6])})
NAN = float("nan")
WITHIN = {"PARQUET:field_id": "3"}
STRUCT = pa.struct([pa.field("a", pa.int64(), metadata=WITHIN)])
LIST = pa.list_(pa.field("element", pa.int64(), metadata=WITHIN))


def column(values, **options):
    """A file with the column v."""
    return parquet({("id", 1): TWO, ("v", 2): values}, **options)


def bucket(value):
    return replace(SOME, partition=((1, "bucket[8]", value),))


BUCKETS = "BIGINT, PARTITIONED BY (bucket(8, id))"
MIDNIGHT = [datetime.time(), datetime.time(1)]

UNREMOVABLE = "&<\x01\ufffe"
"""With these in a name, DuckDB cannot remove a file from S3."""

REMOVABLE = "!\"$'()+,-.:;=>@[]^_`{|}~ é日😀\xa0\u2028"


def compressed_as(codec):
    """A file whose footer says that its data have another compression, LZ4_RAW."""
    file = parquet({("id", 1): TWO, ("v", 2): TWO}, compression="LZ4")
    footer = file.body.rindex(b"v\x15\x0e")  # in Thrift: the codec, 7 in zigzag, after the path
    body = file.body.replace(b"id\x15\x0e", b"id\x15" + bytes([2 * codec]))
    assert footer and body != file.body
    return replace(file, body=body)


# By the numbers of parquet.thrift's CompressionCodec.
UNREADABLE = {"LZ4": compressed_as(5), "LZO": compressed_as(3)}

# The type of v and what else the table has, the file, and a part of the answer.
REFUSED = {
    "a field id twice, and filters find other values": (
        "BIGINT",
        parquet({("id", 1): TWO, ("v", 2): TWO, ("w", 2): pa.array([7, 8])}),
        "field id 2 twice",
    ),
    "a bucket that the smallest value is not in": (BUCKETS, bucket(0), "no certain partition"),
    "a bucket that does not exist": (BUCKETS, bucket(99), "no certain partition"),
    "? begins parameters in DuckDB": ("BIGINT", replace(SOME, name="a?b.parquet"), "has '?' in it"),
    "the name of a copy": (
        "BIGINT",
        replace(SOME, name="/polynya-a.parquet"),
        "begins with polynya",
    ),
    "# in PyIceberg": ("BIGINT", replace(SOME, name="a#b.parquet"), "has '#' in it"),
    **{
        f"{character!r} in the name": (
            "BIGINT",
            replace(SOME, name=f"/p=1/a{character}b.parquet"),
            f"has {character!r} in it",
        )
        for character in UNREMOVABLE + "\\\t\r\x7f\x85"
    },
    **{
        f"compressed with {codec}": ("BIGINT", file, f"it is compressed with {codec}, and DuckDB")
        for codec, file in UNREADABLE.items()
    },
    "bytes of another length in UUID": (
        "UUID",
        column(pa.array([b"abcd", b"efgh"], pa.binary(4))),
        "v is FIXED",
    ),
    "bytes of any length in UUID": ("UUID", column(pa.array([b"a" * 16] * 2)), "v is BLOB"),
    "fixed in BLOB, which clients do not read": (
        "BLOB",
        column(pa.array([b"abcd", b"efgh"], pa.binary(4))),
        "v is FIXED",
    ),
    "nanoseconds": ("TIME", column(pa.array(MIDNIGHT, pa.time64("ns"))), "other units"),
    "milliseconds": ("TIME", column(pa.array(MIDNIGHT, pa.time32("ms"))), "other units"),
    "long in INTEGER, which clients do not read": ("INTEGER", SOME, "v is BIGINT"),
    "no JSON": ("JSON", column(pa.array(["{", "1"])), "has a text that is not JSON"),
}

# The same, and what native DuckLake has in v.
ACCEPTED = {
    # As native INSERTs do: DuckLake does not check it.
    "NULL in a struct that is NOT NULL": (
        "STRUCT(a BIGINT) NOT NULL",
        column(pa.array([{"a": 1}, None], STRUCT)),
        ["{'a': 1}", None],
    ),
    "NULL in a list that is NOT NULL": (
        "BIGINT[] NOT NULL",
        column(pa.array([[None], None], LIST)),
        ["[NULL]", None],
    ),
    "NaN beside one other value": (
        "DOUBLE, PARTITIONED BY (v)",
        column(pa.array([5.0, NAN]), write_statistics=["id"]),
        ["5.0", "nan"],
    ),
    # Specification, Appendix B: the long 34 is hashed to 2017239379.
    "the bucket of the value": (
        BUCKETS,
        replace(
            parquet({("id", 1): pa.array([34]), ("v", 2): pa.array([5])}),
            partition=((1, "bucket[8]", 2017239379 % 8),),
        ),
        ["5"],
    ),
    "numbers that DuckLake takes for snapshots": (
        "BIGINT",
        parquet(
            {("id", 1): TWO, ("v", 2): TWO, ("_last_updated", 2147483539): pa.array([9, None])}
        ),
        ["1", "2"],
    ),
    "ids of some rows, all of which get new ones": (
        "BIGINT",
        parquet({("id", 1): TWO, ("v", 2): TWO, ("_row_id", 2147483540): pa.array([0, None])}),
        ["1", "2"],
    ),
    "ids that no row of the table has": (
        "BIGINT",
        parquet({("id", 1): TWO, ("v", 2): TWO, ("_row_id", 2147483540): pa.array([5, 6])}),
        ["1", "2"],
    ),
    "no rows": (
        "BIGINT",
        parquet({("id", 1): pa.array([], pa.int64()), ("v", 2): pa.array([], pa.int64())}),
        [],
    ),
    "JSON": ("JSON", column(pa.array(["[1]", "{}"])), ["[1]", "{}"]),
    "16 bytes": (
        "UUID",
        column(pa.array([bytes(15) + b"\1", bytes(15) + b"\2"], pa.binary(16))),
        [f"00000000-0000-0000-0000-00000000000{n}" for n in (1, 2)],
    ),
    "% in the name": ("BIGINT", replace(SOME, name="a%2Fb.parquet"), ["5", "6"]),
    "* in the name": ("BIGINT", replace(SOME, name="a*[b].parquet"), ["5", "6"]),
    "a partition of Spark": ("BIGINT", replace(SOME, name="/p=a%2Fb c/x.parquet"), ["5", "6"]),
    "other characters in the name": (
        "BIGINT",
        replace(SOME, name=f"/{REMOVABLE}.parquet"),
        ["5", "6"],
    ),
    **{
        f"compressed with {codec}": (
            "BIGINT",
            parquet({("id", 1): TWO, ("v", 2): TWO}, compression=codec),
            ["1", "2"],
        )
        for codec in ("NONE", "SNAPPY", "GZIP", "BROTLI", "ZSTD", "LZ4")  # pyarrow's is LZ4_RAW
    },
}


@pytest.fixture(scope="module")
def client_and_judge(served, moto):
    lake, servers, _ = served
    with judging(lake, moto) as judge:
        yield HandMade(servers, moto), judge


def new_table(judge, definition):
    """A table with the columns id and v."""
    name, (type_, *more) = f"hand_made{next(NUMBERS)}", definition.split(", ", 1)
    judge.query(f"CREATE TABLE lake.main.{name} (id BIGINT, v {type_})")
    for clause in more:
        judge.query(f"ALTER TABLE lake.main.{name} SET {clause}")
    return name


@pytest.mark.slow(but=["twice", "smallest value"])
@pytest.mark.parametrize("case", REFUSED)
def test_refused(client_and_judge, case):
    client, judge = client_and_judge
    definition, file, reason = REFUSED[case]
    name = new_table(judge, definition)
    status, message = client.commit(name, file)
    assert (status, reason in message) == (400, True), message
    assert judge.query(f"FROM lake.main.{name}") == []


@pytest.mark.slow(but=["in a list", "DuckLake takes"])
@pytest.mark.parametrize("case", ACCEPTED)
def test_accepted(client_and_judge, case):
    client, judge = client_and_judge
    definition, file, expected = ACCEPTED[case]
    name = new_table(judge, definition)
    assert client.commit(name, file) == (200, "")
    source = f"lake.main.{name}"
    found = judge.query(f"SELECT id, CAST(v AS VARCHAR) FROM {source} ORDER BY id")
    assert [value for _, value in found] == expected
    ids = judge.query(f"SELECT rowid FROM {source} ORDER BY rowid")
    assert ids == [(number,) for number in range(len(expected))]
    for id_, value in found:
        conditions = [f"id = {id_}"]
        if "NOT NULL" not in definition:
            conditions.append(f"v = CAST('{value}' AS {definition.split(',')[0]})")
        for condition in conditions:
            assert judge.query(f"SELECT id FROM {source} WHERE {condition}") == [(id_,)]


@pytest.mark.slow
def test_a_nested_column_that_native_ducklake_calls_not_null_may_be_null(client_and_judge):
    client, judge = client_and_judge
    name = new_table(judge, "STRUCT(a BIGINT)")
    judge.query(f"ALTER TABLE lake.main.{name} ADD COLUMN v.z BIGINT")
    with_z = pa.field("z", pa.int64(), metadata={"PARQUET:field_id": "4"})
    values = pa.array([{"a": 1, "z": None}, None], pa.struct([*STRUCT, with_z]))
    assert client.commit(name, column(values)) == (200, "")
    assert judge.query(f"FROM lake.main.{name}") == [(1, {"a": 1, "z": None}), (2, None)]


def test_the_count_of_a_deletion_vector(client_and_judge):
    client, judge = client_and_judge
    name = new_table(judge, "BIGINT")
    assert client.commit(name, SOME) == (200, "")
    # Such a table has format version 3.
    judge.query(f"ALTER TABLE lake.main.{name} ADD COLUMN more BIGINT DEFAULT 7")
    [[file]] = judge.query(f"SELECT data_file FROM ducklake_list_files('lake', '{name}')")
    wrong = dv([0], file, record_count=2)
    status, message = client.commit(name, wrong, operation="delete")
    assert (status, "has 1 positions" in message) == (400, True)
    assert client.commit(name, dv([0], file), operation="delete") == (200, "")
    assert judge.query(f"FROM lake.main.{name}") == [(2, 6, 7)]


@pytest.mark.slow
@pytest.mark.parametrize("codec", UNREADABLE)
def test_native_ducklake_cannot_read_a_compression_that_is_refused(
    client_and_judge, tmp_path, codec
):
    _, judge = client_and_judge
    path = tmp_path / "file.parquet"
    path.write_bytes(UNREADABLE[codec].body)
    with pytest.raises(duckdb.Error, match="Unsupported compression codec"):
        judge.query(f"FROM '{path}'")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "is_removed"),
    [(f"a{one}b", False) for one in UNREMOVABLE] + [(REMOVABLE.replace("[", ""), True)],
)
def test_native_ducklake_removes_files_of_other_names_only(lake, moto, name, is_removed):
    """A file that it cannot remove stops ducklake_cleanup_old_files for the whole lake."""
    one = lake.write("names", EMPTY)
    bucket, prefix = bucket_and_key(one.data_path)
    s3, key = boto3.client("s3", endpoint_url=moto), f"{prefix}/main/t/{name}.parquet"
    s3.put_object(Bucket=bucket, Key=key, Body=SOME.body)
    with judging(one, moto) as judge:
        judge.query("CREATE TABLE lake.main.t (id BIGINT, v BIGINT)")
        location = f"s3://{bucket}/{key}"
        judge.con.execute("CALL ducklake_add_data_files('lake', 't', ?)", [location])
        judge.query("DROP TABLE lake.main.t")
        judge.query("CALL ducklake_expire_snapshots('lake', older_than => now())")
        with nullcontext() if is_removed else pytest.raises(duckdb.Error, match="HTTP"):
            judge.query("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")
    assert ("Contents" in s3.list_objects_v2(Bucket=bucket, Prefix=prefix)) is not is_removed
