"""Files that other programs wrote, added by clients: all read the rows that the files have.

What the files have says PyArrow, and native DuckLake, which adds a copy of them to a twin.
"""

import io
import itertools
import json
import re
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from uuid import uuid4

import boto3
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyiceberg.exceptions import BadRequestError
from pyiceberg.transforms import IdentityTransform

from tests.support.writes import spark_s3a
from tests.support.writes.everywhere import MAINTENANCE, everywhere, plain

NUMBERS = itertools.count(1)
BUCKET, LANDING = "lakes", "landing/"
RULE = {
    "principals": ["*"],
    "tables": {"*": ["*"]},
    "write": {"*": ["*"]},
    "add_files": [f"s3://{BUCKET}/{LANDING}", "s3://other/"],
}
SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
CALL lake.set_option('data_inlining_row_limit', 0);
USE lake;
"""


@pytest.fixture(scope="module")
def lake_of(lake, moto):
    policy = json.dumps({"rules": [RULE]})
    with everywhere(lake, moto, "add_files", SCRIPT, AUTHORIZATION=policy) as one:
        yield one


@pytest.fixture
def put(moto):
    """Puts a file into S3; returns its location."""

    def put(table, key=None, body=None, **options):
        stream = io.BytesIO()
        if body is None:
            pq.write_table(table, stream, **options)
        key = key or f"{LANDING}{next(NUMBERS)}.parquet"
        s3 = boto3.client("s3", endpoint_url=moto, region_name="us-east-1")
        s3.put_object(Bucket=BUCKET, Key=key, Body=body or stream.getvalue())
        return f"s3://{BUCKET}/{key}"

    return put


def rows(*ids, **columns):
    table = pa.table({"id": pa.array(ids, pa.int64()), "s": [f"s{i}" for i in ids]})
    for name, values in columns.items():
        table = table.append_column(name, values)
    return table


def add(at, name, *locations):
    """PyIceberg adds files, as one snapshot."""
    with at.commits():
        before = at.newest()
        at.catalog.load_table(f"main.{name}").add_files([*locations])
        assert at.newest() == before + 1


NESTED = "STRUCT(a INTEGER, b VARCHAR)"
# Without NULL in lists and maps, which PyIceberg reads as empty ones.
TYPES = {
    "l": ("INTEGER[]", pa.list_(pa.int32()), [[1, 2], [], [3]]),
    "m": (
        "MAP(VARCHAR, INTEGER)",
        pa.map_(pa.string(), pa.int32()),
        [[("k", 1)], [("m", None)], [("l", 2)]],
    ),
    "st": (
        NESTED,
        pa.struct([("b", pa.string()), ("a", pa.int32())]),
        [{"a": 1, "b": "x"}, None, {"a": None, "b": "z"}],
    ),
    "ls": (
        f"{NESTED}[]",
        pa.list_(pa.struct([("a", pa.int32()), ("b", pa.string())])),
        [[{"a": 1, "b": "x"}], [], [{"a": 2, "b": None}]],
    ),
    "n": ("BIGINT", pa.int32(), [1, -2, None]),
    "d": ("DATE", pa.date32(), [date(2024, 2, 29), None, date(1969, 12, 31)]),
    "f": ("DOUBLE", pa.float64(), [float("-inf"), 0.5, None]),
    "e": ("DECIMAL(12, 2)", pa.decimal128(9, 2), [None, None, None]),
    "b": ("BOOLEAN", pa.bool_(), [True, None, False]),
    "x": ("BLOB", pa.binary(), [b"\x00\xff", b"", None]),
    "missing": ("VARCHAR", None, None),
}
INSERT = "INSERT INTO {{0}} (id, {}, l, m, ls) VALUES ({}, 'native', [7], MAP(['k'], [7]), [])"
OWN = INSERT.format("s", 100)
CHANGES = (
    INSERT.format("s", 20),
    "UPDATE {0} SET s = 'native' WHERE id = 2",
    "DELETE FROM {0} WHERE id = 1",
    "ALTER TABLE {0} RENAME COLUMN s TO t",
    INSERT.format("t", 21),
)


@pytest.mark.slow(but=["[element]"])
@pytest.mark.parametrize("compliant", [True, False], ids=["element", "item"])
def test_all_read_the_rows_of_added_files(lake_of, put, compliant):
    """Also after native changes of the table, a rename, merges and rewrites, and expiry."""
    at, name, twin = lake_of, lake_of.new("types"), lake_of.new("twin")
    columns = ", ".join(f"{column} {sql}" for column, (sql, _, _) in TYPES.items())
    values = {c: pa.array(v, t) for c, (_, t, v) in TYPES.items() if t is not None}
    files = [rows(i, i + 1, i + 2, **values) for i in (1, 4)]
    options = {"use_compliant_nested_type": compliant}
    for table in (name, twin):
        at.native(f"CREATE TABLE main.{table} (id BIGINT, s VARCHAR, {columns})")
        at.native(OWN.format(f"main.{table}"))
    if compliant:
        add(at, name, *(put(file, **options) for file in files))
    for file in files:
        if not compliant:  # PyIceberg's own add_files fails: KeyError 'l.list.item'
            location = put(file, **options)
            with at.commits():
                force(at, name, location, file, options=options)
        of_twin = f"'lake', '{twin}', '{put(file, **options)}', allow_missing => true"
        at.native(f"CALL ducklake_add_data_files({of_twin})")
    assert plain(at.check(name)) == plain(at.native(f"FROM main.{twin}"))
    same = "SELECT source_name, target_field_id, parent_column, is_partition FROM "
    named = f"{same} ducklake_name_mapping JOIN ducklake_column_mapping USING (mapping_id) "
    of = "WHERE table_id = (SELECT table_id FROM ducklake_table WHERE table_name = '{}') ORDER BY 2"
    both = [at.lake.database.run(named + of.format(table)) for table in (name, twin)]
    assert both[0] == both[1]
    ids = "SELECT count(*), count(DISTINCT mapping_id) FROM ducklake_column_mapping"
    [[mappings, different]] = at.lake.database.run(ids)
    assert mappings == different
    changes = [change.format(f"main.{name}") for change in CHANGES]
    at.native(*(change.replace(name, twin) for change in changes))
    at.native(*changes)
    at.check(name)
    at.native(*MAINTENANCE)
    at.check(name)
    at.expire()
    assert plain(at.check(name)) == plain(at.native(f"FROM main.{twin}"))


@pytest.mark.slow
def test_a_file_is_found_by_the_name_mapping_too(lake_of, put):
    """After a rename by PyIceberg, which keeps the old name in the mapping."""
    at, name = lake_of, lake_of.new("renamed")
    at.native(f"CREATE TABLE main.{name} (id BIGINT, s VARCHAR)")
    add(at, name, put(rows(1)))
    with at.commits(), at.catalog.load_table(f"main.{name}").update_schema() as update:
        update.rename_column("s", "t")
    # PyIceberg itself takes the names of now alone.
    add(at, name, put(rows(2).rename_columns(["id", "t"])))
    assert at.check(name) == [(1, "s1"), (2, "s2")]
    at.native(f"ALTER TABLE main.{name} ADD COLUMN s VARCHAR")
    with pytest.raises(BadRequestError, match="the name s is that of one column now"):
        add(at, name, put(rows(3)))
    assert at.check(name) == [(1, "s1", None), (2, "s2", None)]


PARTITIONED = "ALTER TABLE main.{} SET PARTITIONED BY (p)"


@pytest.mark.slow
def test_partition_values_are_those_of_the_footers(lake_of, put):
    """One value for a file, several, and none at all."""
    at, name = lake_of, lake_of.new("partitioned")
    at.native(f"CREATE TABLE main.{name} (id BIGINT, s VARCHAR, p INTEGER)")
    at.native(PARTITIONED.format(name), f"INSERT INTO main.{name} VALUES (100, 'own', 7)")
    for ids, values in (((1, 2), [5, 5]), ((3, 4), [None, None])):
        add(at, name, put(rows(*ids, p=pa.array(values, pa.int32()))))
    expected = [(1, "s1", 5), (100, "own", 7), (2, "s2", 5), (3, "s3", None), (4, "s4", None)]
    assert at.check(name) == expected
    for where, ids in {"p = 5": {1, 2}, "p > 5": {100}, "p IS NULL": {3, 4}}.items():
        table = at.catalog.load_table(f"main.{name}")
        read = table.scan(where.replace("IS NULL", "is null")).to_arrow()["id"].to_pylist()
        native = at.native(f"SELECT id FROM main.{name} WHERE {where}")
        duckdb = at.duckdb(f"SELECT id FROM ice.main.{name} WHERE {where}")
        assert {*read} == {i for (i,) in native} == {i for (i,) in duckdb} == ids
    values = at.lake.database.run(
        "SELECT partition_value FROM ducklake_file_partition_value WHERE partition_key_index = 0 "
        "ORDER BY data_file_id"
    )
    assert values[-3:] == [["7"], ["5"], [None]]


SOURCE = "id BIGINT, s VARCHAR"
OF_TYPE = pa.array([1], pa.int64())
TIME = pa.array([0], pa.timestamp("us"))
WITH_ID = pa.schema([pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})])
ELSEWHERE = "a data file is not below"

# The columns of the table, the file or where it is, and a part of the answer.
REFUSED = {
    "a column that the table has not": (SOURCE, rows(1, q=OF_TYPE), "has no column q"),
    "a field of a struct that it has not": (
        f"{SOURCE}, st STRUCT(a INTEGER)",
        rows(1, st=pa.array([{"a": 1, "z": 2}], pa.struct([("a", pa.int32()), ("z", pa.int32())]))),
        "has no column st.z",
    ),
    "another letter case": (SOURCE, rows(1).rename_columns(["ID", "s"]), "has no column ID"),
    "a wider type": (f"{SOURCE}, n INTEGER", rows(1, n=OF_TYPE), "n is BIGINT in it"),
    "another type": (f"{SOURCE}, n VARCHAR", rows(1, n=OF_TYPE), "n is BIGINT in it"),
    "a finer time": (
        f"{SOURCE}, n TIMESTAMP",
        rows(1, n=pa.array([1], pa.timestamp("ns"))),
        "n is TIMESTAMP_NS in it",
    ),
    "a time without a zone": (f"{SOURCE}, n TIMESTAMPTZ", rows(1, n=TIME), "n is TIMESTAMP in it"),
    "a time as INT96": (f"{SOURCE}, n TIMESTAMP", rows(1, n=TIME), "n has times as INT96"),
    "NULL where it may not be": (
        f"{SOURCE}, n BIGINT NOT NULL",
        rows(1, n=pa.array([None], pa.int64())),
        "n is NOT NULL and the file has NULL",
    ),
    "a missing column that is NOT NULL": (f"{SOURCE}, n BIGINT NOT NULL", rows(1), "lacks the col"),
    "a missing column that has a default": (f"{SOURCE}, n INT DEFAULT 7", rows(1), "lacks the col"),
    "field ids, in another place": (SOURCE, rows(1).select(["id"]).cast(WITH_ID), ELSEWHERE),
    "no Parquet file": (SOURCE, b"PAR1 no, not at all PAR1", "cannot be read"),
    "a footer that is cut": (SOURCE, b"PAR1\x00\x00\x00\xff\x00\x00PAR1", "cannot be read"),
    "a place that nobody permits": (SOURCE, "s3://lakes/elsewhere/1.parquet", ELSEWHERE),
    "another bucket": (SOURCE, "s3://strange/landing/1.parquet", ELSEWHERE),
    "a way out of the place": (SOURCE, "s3://lakes/landing/../elsewhere/1.parquet", ELSEWHERE),
    "an empty part": (SOURCE, "s3://lakes/landing//1.parquet", ELSEWHERE),
    "http": (SOURCE, "http://127.0.0.1/lakes/landing/1.parquet", ELSEWHERE),
    "a local file": (SOURCE, "file:///etc/passwd", ELSEWHERE),
    "a local path": (SOURCE, "/etc/passwd", ELSEWHERE),
    "the place itself": (SOURCE, "s3://lakes/landing/", ELSEWHERE),
    "a name that breaks clients": (SOURCE, "s3://lakes/landing/a?b.parquet", "has '?' in it"),
    "a file that is gone": (SOURCE, "s3://lakes/landing/gone.parquet", "does not exist in S3"),
    "a bucket that is gone": (SOURCE, "s3://other/1.parquet", "does not exist in S3"),
}


@pytest.mark.slow(but=["[a column that the table has not]", "[a place that nobody permits]"])
@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(lake_of, put, case):
    columns, file, words = REFUSED[case]
    at, name = lake_of, lake_of.new("refused")
    at.native(f"CREATE TABLE main.{name} ({columns})")
    location, options = file, {}
    if not isinstance(file, str):
        options = {"use_deprecated_int96_timestamps": True} if "INT96" in case else {}
        location = put(*([None, None, file] if isinstance(file, bytes) else [file]), **options)
    before = at.newest()
    with pytest.raises(BadRequestError, match=re.escape(words)):
        force(at, name, location, file, options=options)
    assert at.newest() == before
    assert at.native(f"FROM main.{name}") == []


def force(at, name, location, file=None, partition=None, records=None, options=None):
    """Add a file as a client would that checks nothing itself."""
    from pyiceberg.manifest import DataFile, DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    body = file if isinstance(file, bytes) else b""
    stream = io.BytesIO()
    if isinstance(file, pa.Table):
        pq.write_table(file, stream, **(options or {}))
        body = stream.getvalue()
    table = at.catalog.load_table(f"main.{name}")
    with table.transaction() as change, change.update_snapshot().fast_append() as append:
        append.append_data_file(
            DataFile.from_args(
                content=DataFileContent.DATA,
                file_path=location,
                file_format=FileFormat.PARQUET,
                partition=partition or Record(),
                record_count=records or getattr(file, "num_rows", 1),
                file_size_in_bytes=len(body) or 1000,
                spec_id=table.spec().spec_id,
            )
        )


def test_files_that_are_in_a_table_or_are_not_the_lakes_to_add(lake_of, put):
    """Its own, another table's, in other spellings; virtual files; in a directory of another."""
    at, name, other = lake_of, lake_of.new("own"), lake_of.new("other")
    for table in (name, other):
        at.native(f"CREATE TABLE main.{table} (id BIGINT, s VARCHAR)")
        at.native(f"INSERT INTO main.{table} VALUES (100, 'own')")
    own, of_other = put(rows(1)), put(rows(2))
    add(at, name, own)
    add(at, other, of_other)
    path = at.lake.data_path.rstrip("/") + f"/main/{name}/"
    in_other = put(rows(3), f"{path.removeprefix('s3://lakes/')}3.parquet".replace(name, other))
    inside = put(rows(4), f"{path.removeprefix('s3://lakes/')}4.parquet")
    table = at.catalog.load_table(f"main.{name}")
    virtual = table.metadata_location
    for location, words in {
        own: "is in the catalog already",
        own.replace("s3://", "s3a://"): "is in the catalog already",
        of_other: "is in the catalog already",
        in_other: ELSEWHERE,
        virtual: ELSEWHERE,
        table.properties["write.metadata.path"] + "/1.parquet": ELSEWHERE,
    }.items():
        with pytest.raises(BadRequestError, match=words):
            force(at, name, location, rows(1))
    # In the table's own directory, under the names of a file that DuckLake removed since.
    add(at, name, inside)
    assert at.check(name) == [(1, "s1"), (100, "own"), (4, "s4")]
    at.native(f"DELETE FROM main.{name} WHERE id = 1")
    at.expire()
    with pytest.raises(BadRequestError, match="is in the catalog already"):
        force(at, name, own, rows(1))
    # From then on the file is the lake's: DuckLake removes it.
    at.native("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")
    with pytest.raises(BadRequestError, match="does not exist in S3"):
        force(at, name, own, rows(1))
    assert at.check(name) == [(100, "own"), (4, "s4")]


@pytest.mark.slow
def test_of_two_that_add_a_file_at_once_one_is_refused(lake_of, put):
    at, location = lake_of, put(rows(1))
    names = [at.new("racing") for _ in range(2)]
    for name in names:
        at.native(f"CREATE TABLE main.{name} (id BIGINT, s VARCHAR)")

    def add_one(name):
        try:
            force(at, name, location, rows(1))
        except BadRequestError as error:
            return str(error)
        return ""

    with at.commits(), ThreadPoolExecutor(2) as pool:
        answers = [*pool.map(add_one, names)]
    assert sorted(map(bool, answers)) == [False, True]
    assert "is in the catalog already" in max(answers)
    assert sorted(at.native(f"FROM main.{names[0]} UNION ALL FROM main.{names[1]}")) == [(1, "s1")]


@pytest.mark.slow
def test_more_rows_than_the_footer_says(lake_of, put):
    at, name = lake_of, lake_of.new("counted")
    at.native(f"CREATE TABLE main.{name} (id BIGINT, s VARCHAR)")
    with pytest.raises(BadRequestError, match="has 7 rows; it has 1"):
        force(at, name, put(rows(1)), rows(1), records=7)


def test_values_in_paths(lake_of, put):
    """PyIceberg reads none, and would read NULL: the commit says so, and is refused."""
    at, name = lake_of, lake_of.new("paths")
    at.native(f"CREATE TABLE main.{name} (id BIGINT, s VARCHAR, p INTEGER)")
    location = put(rows(1), f"{LANDING}{name}/p=5/1.parquet")
    with pytest.raises(BadRequestError, match="does not say that it is the value of the rows"):
        add(at, name, location)
    table = at.catalog.load_table(f"main.{name}")
    with at.commits(), table.update_spec() as update:
        update.add_field("p", IdentityTransform(), "p")
    with pytest.raises(BadRequestError, match="another value of p than the commit gives"):
        add(at, name, location)
    from pyiceberg.typedef import Record

    for value in (4, None):
        with pytest.raises(BadRequestError, match="another value of p than the commit gives"):
            force(at, name, location, rows(1), Record(value))
    with at.commits():
        force(at, name, location, rows(1), Record(5))
    empty = put(rows(2), f"{LANDING}{name}/p=__HIVE_DEFAULT_PARTITION__/2.parquet")
    with at.commits():
        force(at, name, empty, rows(2), Record(None))
    assert at.check(name) == [(1, "s1", 5), (2, "s2", None)]
    at.maintain(name, "INSERT INTO main.{0} VALUES (9, 'n', 5)")
    assert at.check(name) == [(1, "s1", 5), (2, "s2", None), (9, "n", 5)]


ADD = (
    "CALL {{c}}.system.add_files(table => 'main.{}', source_table => '`parquet`.`s3a://lakes/{}`')"
)
WRITE = (
    "PYTHON spark.sql(\"SELECT CAST(id AS BIGINT) AS id, concat('s', id) AS s, "
    "CAST(id % 2 AS INT) AS p, CASE WHEN id < 4 THEN DATE'2024-02-29' END AS day, 'a b/%' AS t "
    "FROM range(1, 6)\").write.partitionBy('p', 'day', 't').parquet('s3a://lakes/{}')"
)
AGAIN = "DELETE FROM {{c}}.main.{} WHERE id IN (2, 3)"


@pytest.mark.slow
@pytest.mark.spark
def test_spark_adds_a_directory_and_one_with_values_in_its_paths(lake_of, put, moto):
    at, plain_name, hive = lake_of, lake_of.new("spark"), lake_of.new("hive")
    at.native(
        f"CREATE TABLE main.{plain_name} (id BIGINT, s VARCHAR)",
        f"INSERT INTO main.{plain_name} VALUES (100, 'own')",
        f"CREATE TABLE main.{hive} (id BIGINT, s VARCHAR, p INTEGER, day DATE, t VARCHAR)",
        f"ALTER TABLE main.{hive} SET PARTITIONED BY (p, day, t)",
    )
    for number in (1, 2):
        put(rows(number), f"{LANDING}{plain_name}/{number}.parquet")
    answers = spark_s3a.run(
        *(at.uri, at.s3_endpoint, moto),
        ADD.format(plain_name, f"{LANDING}{plain_name}"),
        f"SELECT * FROM {{c}}.main.{plain_name} ORDER BY id",
        WRITE.format(f"{LANDING}{hive}"),
        ADD.format(hive, f"{LANDING}{hive}"),
        f"SELECT id, s, p, day, t FROM {{c}}.main.{hive} ORDER BY id",
        f"SELECT id FROM {{c}}.main.{hive} WHERE p = 1 AND day IS NULL ORDER BY id",
        AGAIN.format(hive),
        AGAIN.format(plain_name),
    )
    assert answers[1] == [[1, "s1"], [2, "s2"], [100, "own"]], "\n".join(map(str, answers))
    in_order = [[i, f"s{i}", i % 2, "2024-02-29" if i < 4 else None, "a b/%"] for i in range(1, 6)]
    assert answers[4] == in_order, answers
    assert answers[5] == [[5]]
    assert at.check(plain_name) == [(1, "s1"), (100, "own")]
    assert [row[0] for row in at.check(hive)] == [1, 4, 5]
    for where, ids in {
        "p = 1": [1, 5],
        "day IS NULL": [4, 5],
        "t = 'a b/%' AND p = 0": [4],
    }.items():
        sql = f"SELECT id FROM {{}}main.{hive} WHERE {where} ORDER BY id"
        assert [i for (i,) in at.native(sql.format(""))] == ids
        assert [i for (i,) in at.duckdb(sql.format("ice."))] == ids
    at.maintain(hive, "INSERT INTO main.{0} VALUES (9, 'n', 1, NULL, 'a b/%')")
    again = spark_s3a.run(
        *(at.uri, at.s3_endpoint, moto),
        f"SELECT id FROM {{c}}.main.{hive} WHERE p = 1 ORDER BY id",
        ADD.format(plain_name, f"{LANDING}{plain_name}"),
    )
    assert again[0] == [[1], [5], [9]]
    assert "is in the catalog already" in again[1]


@pytest.mark.slow
def test_types_that_ducklake_itself_would_not_add(lake_of, put):
    """It reads texts as JSON, but refuses to add them; of UUIDs it adds those with their type."""
    at, name = lake_of, lake_of.new("json")
    at.native(f"CREATE TABLE main.{name} (id BIGINT, j JSON, u UUID)")
    values = [uuid4(), None]
    file = pa.table(
        {
            "id": [1, 2],
            "j": ['{"a": [1]}', None],
            "u": pa.array([u and u.bytes for u in values], pa.uuid()),
        }
    )
    location = put(file)
    with at.commits():
        force(at, name, location, file)
    assert at.check(name) == [(1, '{"a": [1]}', values[0]), (2, None, None)]
    assert at.native(f"SELECT j->>'$.a[0]' FROM main.{name} WHERE u = '{values[0]}'") == [("1",)]
    fixed = file.set_column(2, "u", pa.array([u and u.bytes for u in values], pa.binary(16)))
    location = put(fixed)
    with at.commits():
        force(at, name, location, fixed)
    assert len(at.check(name)) == 4
