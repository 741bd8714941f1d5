"""Deletes by key, as Flink, Debezium and RisingWave send them. SQL in a twin is the judge."""

from dataclasses import replace

import pyarrow as pa
import pytest
from polynya.commits.plan.equality_deletes import EqualityDeletes
from polynya.commits.plan.existing_table import Planner

from tests.support.writes.hand_made import HandMade, equality_deletes, parquet
from tests.support.writes.limited_searches import LimitedSearches
from tests.support.writes.starts import DO_NOT_INLINE, INLINE, STARTS

STRING = pa.string()


@pytest.fixture
def client(served, moto):
    return HandMade(served[1], moto)


def rows(*triples, **options):
    """A data file with the columns id, s and p."""
    columns = list(zip(*triples, strict=True))
    types = pa.int64(), STRING, pa.int32()
    arrays = [pa.array(column, type_) for column, type_ in zip(columns, types, strict=True)]
    return parquet(dict(zip((("id", 1), ("s", 2), ("p", 3)), arrays, strict=True)), **options)


def keys(*ids, name="id", **options):
    return equality_deletes({(name, 1): pa.array(ids, pa.int64())}, [1], **options)


def sql(*triples):
    values = ", ".join(
        f"({', '.join('NULL' if v is None else repr(v) for v in row)})" for row in triples
    )
    return f"INSERT INTO {{t}} (id, s, p) VALUES {values}"


NEW = (3, "new", 0), (8, None, 2), (30, "new", 0)
DELETED = "DELETE FROM {t} WHERE id IN (3, 8, 30)"


def change(twin, client, statements, *snapshots, **options):
    """One commit of these snapshots, and the statements in the twin."""

    def commit():
        assert client.commit_snapshots(twin.name, *snapshots, **options) == (200, "")

    twin.changes(statements, commit)
    twin.check()


@pytest.mark.parametrize("start", [name for name in STARTS if "partitions" not in name])
def test_upsert(twin, client, start):
    twin.native(DO_NOT_INLINE, *STARTS[start])
    change(twin, client, f"{DELETED}; {sql(*NEW)}", [rows(*NEW), keys(3, 8, 30)])


@pytest.mark.parametrize("start", [name for name in STARTS if "partitions" in name])
def test_upsert_in_partitions(twin, client, start):
    """The key lacks the partition column: rows of other partitions stay."""
    twin.native(DO_NOT_INLINE, *STARTS[start])
    entries, deletes = [], ""
    for new in NEW:
        partition = ((3, "identity", new[2]),)
        entries += [rows(new, partition=partition), keys(new[0], partition=partition)]
        deletes += f"DELETE FROM {{t}} WHERE id = {new[0]} AND p = {new[2]};"
    change(twin, client, deletes + sql(*NEW), entries)


def test_the_snapshot_says_what_happened(twin, client):
    """Whatever the client says: clients look for deletes in snapshots that are no `append`."""
    twin.native(DO_NOT_INLINE, *STARTS["files"])
    for ids, operation in (((1,), "overwrite"), ((1,), "append")):
        change(
            twin,
            client,
            f"DELETE FROM {{t}} WHERE id = 1 AND s <> 'new'; {sql((2, 'new', 1))}",
            [rows((2, "new", 1)), keys(*ids)],
        )
        summary = twin.table().current_snapshot().summary
        assert summary.operation.value == operation
        assert not [key for key in summary.additional_properties if "added-equality" in key]


def test_rows_of_the_same_snapshot_stay_and_those_of_one_before_go(twin, client):
    twin.native(DO_NOT_INLINE, *STARTS["files"])
    first = [rows((3, "first", 0), (40, "first", 1)), keys(3)]
    second = [keys(40, 4), rows((40, "second", 1), (41, "second", 1))]
    change(
        twin,
        client,
        f"DELETE FROM {{t}} WHERE id IN (3, 4); {sql((3, 'first', 0), *[(40, 'second', 1)])};"
        + sql((41, "second", 1)),
        first,
        second,
    )


def test_a_file_with_an_older_sequence_number_of_its_own_loses_rows(twin, client):
    twin.native(DO_NOT_INLINE, *STARTS["files"])
    old = rows((50, "old", 1), (51, "old", 1), sequence_number=1)
    change(twin, client, sql((51, "old", 1)), [old, keys(50)])


def test_a_file_without_keys_deletes_nothing(twin, client):
    twin.native(DO_NOT_INLINE, *STARTS["files"])
    change(twin, client, sql((90, "new", 1)), [rows((90, "new", 1)), keys()])


def test_null_is_a_key(twin, client):
    twin.native(DO_NOT_INLINE, *STARTS["delete files"], INLINE, sql((60, None, 1)))
    by_text = equality_deletes({("s", 2): pa.array([None, "s1"], STRING)}, [2])
    change(twin, client, "DELETE FROM {t} WHERE s IS NULL OR s = 's1'", [by_text])


def test_two_keys_of_which_only_the_named_columns_count(twin, client):
    twin.native(DO_NOT_INLINE, *STARTS["both deletes"])
    by_id = equality_deletes(
        {("other name", 1): pa.array([1, 9]), ("s", 2): pa.array(["wrong", None], STRING)}, [1]
    )
    by_both = equality_deletes(
        {("s", 2): pa.array(["s4", "s5"], STRING), ("p", 3): pa.array([1, 1], pa.int32())}, [2, 3]
    )
    change(twin, client, "DELETE FROM {t} WHERE id IN (1, 9) OR id = 4", [by_id, by_both])


def test_columns_that_were_renamed_widened_added_and_dropped(twin, client):
    twin.native(
        DO_NOT_INLINE,
        *STARTS["files"],
        "ALTER TABLE {t} RENAME COLUMN p TO part",
        "ALTER TABLE {t} ALTER COLUMN part TYPE BIGINT",
        "ALTER TABLE {t} ADD COLUMN n INTEGER DEFAULT 7",
        "INSERT INTO {t} VALUES (70, 'a', 1, 8), (71, 'b', 5, NULL)",
    )
    by_p = equality_deletes({("p", 3): pa.array([1, 2**40])}, [3])
    by_n = equality_deletes({("n", 4): pa.array([7], pa.int32())}, [4])
    change(twin, client, "DELETE FROM {t} WHERE part = 1", [by_p])
    change(twin, client, "DELETE FROM {t} WHERE n = 7", [by_n])


MICROS, YEAR_1, IN_2026 = pa.timestamp("us"), -62135596799999999, 1767225600001000
TYPES = {
    "BOOLEAN": ("true", pa.array([True])),
    "SMALLINT": ("-3", pa.array([-3], pa.int32())),
    "UINTEGER": ("4294967295", pa.array([4294967295])),
    "DECIMAL(9, 2)": ("1.25", pa.array(["1.25"]).cast(pa.decimal128(9, 2))),
    "DATE": ("DATE '1969-12-31'", pa.array([-1], pa.int32()).cast(pa.date32())),
    "TIME": ("TIME '23:59:59.999999'", pa.array([86399999999], pa.time64("us"))),
    "TIMESTAMP": ("TIMESTAMP '0001-01-01 00:00:00.000001'", pa.array([YEAR_1], MICROS)),
    "TIMESTAMP_MS": ("TIMESTAMP '2026-01-01 00:00:00.001'", pa.array([IN_2026], MICROS)),
    "TIMESTAMPTZ": (
        "TIMESTAMPTZ '2026-01-01 00:00:00.001+00'",
        pa.array([IN_2026], pa.timestamp("us", "UTC")),
    ),
    "VARCHAR": ("'é'", pa.array(["é"])),
    "BLOB": ("'\\x00a'::BLOB", pa.array([b"\0a"])),
    "UUID": (
        "'ffffffff-0000-0000-0000-000000000001'::UUID",
        pa.array([b"\xff" * 4 + b"\0" * 11 + b"\1"], pa.binary(16)),
    ),
    "JSON": ("'{{\"a\": 1}}'", pa.array(['{"a": 1}'])),
}
"""A value of each type in SQL, and as Iceberg clients write it."""


@pytest.mark.parametrize("is_inlined", [False, True])
@pytest.mark.parametrize("type_", TYPES)
def test_a_key_of_each_type(twin, client, type_, is_inlined):
    value, array = TYPES[type_]
    twin.native(
        INLINE if is_inlined else DO_NOT_INLINE,
        f"CREATE TABLE {{t}} (id BIGINT, s VARCHAR, v {type_})",
        f"INSERT INTO {{t}} VALUES (1, 'a', {value}), (2, 'b', NULL)",
        f"INSERT INTO {{t}} SELECT 3, 'c', {value}",
    )
    deletes = equality_deletes({("v", 3): array}, [3])
    change(twin, client, "DELETE FROM {t} WHERE v IS NOT NULL", [deletes])


def test_many_keys_in_many_files(twin, client, monkeypatch):
    """Files without a key are not read; of those that are read only some at a time."""
    twin.native(DO_NOT_INLINE, "CREATE TABLE {t} (id BIGINT, s VARCHAR)")
    for start in range(0, 4000, 500):
        twin.native(
            f"INSERT INTO {{t}} SELECT i, 'x' || i FROM range({start}, {start + 500}) AS r(i)"
        )
    ids = [*range(100, 400), *range(1600, 1900), 3999]
    deletes = equality_deletes({("id", 1): pa.array(ids)}, [1])
    listed = ", ".join(map(str, ids))
    change(twin, client, f"DELETE FROM {{t}} WHERE id IN ({listed})", [deletes])


REFUSED = {
    "no ids": (equality_deletes({("id", 1): pa.array([1])}, []), "no equality_ids"),
    "an older one": (keys(1, sequence_number=1), "is older than rows of the table"),
    "an unknown column": (equality_deletes({("x", 9): pa.array([1])}, [9]), "no column"),
    "a column that the file lacks": (
        equality_deletes({("id", 1): pa.array([1])}, [1, 2]),
        "lacks the column s",
    ),
    "a float": (equality_deletes({("f", 4): pa.array([1.0])}, [4]), "no keys of this type"),
    "a nested column": (equality_deletes({("a", 6): pa.array([1])}, [6]), "nested"),
    "another type": (equality_deletes({("id", 1): pa.array(["1"])}, [1]), "VARCHAR where"),
    "Avro": (keys(1, file_format="AVRO"), "write.delete.format.default=parquet"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(twin, client, case):
    entry, words = REFUSED[case]
    twin.native(
        DO_NOT_INLINE,
        "CREATE TABLE {t} (id BIGINT, s VARCHAR, p INTEGER, f DOUBLE, n STRUCT(a INTEGER))",
        "INSERT INTO {t} VALUES (1, 'a', 1, 1, {{'a': 1}})",
    )
    before = twin.newest()
    status, message = client.commit(twin.name, entry)
    assert (status, words in message) == (400, True), message
    assert twin.newest() == before


def added(twin, folder, select, *more):
    """A file without field ids, which native DuckLake adds."""
    path = f"{twin.lake.data_path}/{folder}/{twin.name}.parquet"
    twin.con.execute(f"COPY ({select}) TO '{path}'")
    options = "".join(f", {option}" for option in more)
    twin.native(f"CALL ducklake_add_data_files('lake', '{twin.name}', '{path}'{options})")
    columns = "id, s, p" if "p=" not in folder else "id, s, 1"
    twin.con.execute(f"INSERT INTO {twin.memory} (id, s, p) SELECT {columns} FROM ({select})")
    twin.past[twin.newest()] = twin._rows(twin.con, twin.memory)


def test_added_files_are_searched_by_the_names_of_their_columns(twin, client):
    twin.native(DO_NOT_INLINE, *STARTS["files"])
    rows_ = "SELECT i::BIGINT AS id, 'added' AS s, 1::INTEGER AS p FROM range(5) AS r(i)"
    added(twin, "added", rows_)
    change(twin, client, "DELETE FROM {t} WHERE id IN (2, 8)", [keys(2, 8)])


def test_a_key_in_the_path_of_an_added_file_is_refused(twin, client):
    twin.native(DO_NOT_INLINE, *STARTS["files"])
    added(twin, "added/p=1", "SELECT 80::BIGINT AS id, 'a' AS s", "hive_partitioning => true")
    by_p = equality_deletes({("p", 3): pa.array([1], pa.int32())}, [3])
    status, message = client.commit(twin.name, by_p)
    assert (status, "in the paths of added files" in message) == (400, True)
    change(twin, client, "DELETE FROM {t} WHERE id IN (2, 80)", [keys(2, 80)])


def test_a_row_that_another_writer_adds_meanwhile_is_found_by_the_next_try(
    twin, client, monkeypatch
):
    twin.native(DO_NOT_INLINE, *STARTS["files"])
    positions = EqualityDeletes.positions
    meanwhile = [lambda: twin.native("INSERT INTO {t} VALUES (3, 'meanwhile', 1)")]

    def then_another_writer(*arguments):
        result = positions(*arguments)
        if meanwhile:
            meanwhile.pop()()
        return result

    monkeypatch.setattr(EqualityDeletes, "positions", then_another_writer)
    status, message = client.commit(twin.name, keys(3))
    assert (status, "the table is at" in message) == (409, True), message
    change(twin, client, "DELETE FROM {t} WHERE id = 3", [keys(3)])


@pytest.fixture
def limited(twin, monkeypatch, tmp_path):
    """A table of five files."""
    twin.native(DO_NOT_INLINE, "CREATE TABLE {t} (id BIGINT, s VARCHAR)")
    for number in range(5):
        twin.native(f"INSERT INTO {{t}} SELECT i, '{number}' FROM range(9) AS r(i)")
    return LimitedSearches(monkeypatch, tmp_path)


GOES_ON = "{} of 5 data files have been searched; send it again to continue"


def test_a_long_search_goes_on_when_the_request_comes_again(twin, client, limited):
    before = twin.newest()
    answers = client.commit(twin.name, keys(1, 7)), client.post_again()
    for searched, (status, message) in zip((2, 4), answers, strict=True):
        assert (status, GOES_ON.format(searched) in message) == (503, True), message
    assert twin.newest() == before
    twin.changes("DELETE FROM {t} WHERE id IN (1, 7)", client.post_again)
    twin.check()
    assert limited.searched == 5


def test_a_long_search_goes_on_after_a_change_of_the_table(twin, client, limited):
    """The client writes another snapshot then, with the same delete files."""
    deletes = keys(1, 7)
    assert client.commit(twin.name, deletes)[0] == 503
    twin.native("INSERT INTO {t} VALUES (7, 'meanwhile')")
    status, message = client.post_again()
    assert (status, "the table is at" in message) == (409, True)
    assert client.commit(twin.name, deletes)[0] == 503
    twin.changes("DELETE FROM {t} WHERE id IN (1, 7)", client.post_again)
    twin.check()
    assert limited.searched == 6
    # Other keys are searched for by themselves.
    assert client.commit(twin.name, keys(2))[0] == 503


def test_what_a_long_search_has_found_holds_for_another_try(twin, client, limited, monkeypatch):
    limited.at_a_time = 5
    positions = EqualityDeletes.positions
    meanwhile = [lambda: twin.native("INSERT INTO {t} VALUES (3, 'meanwhile')")]

    def then_another_writer(*arguments):
        found = positions(*arguments)
        if meanwhile:
            meanwhile.pop()()
        return found

    monkeypatch.setattr(EqualityDeletes, "positions", then_another_writer)
    deletes = keys(3)
    assert client.commit(twin.name, deletes)[0] == 409
    change(twin, client, "DELETE FROM {t} WHERE id = 3", [deletes])
    assert limited.searched == 6


def test_a_search_that_cannot_begin_in_time_is_refused_with_what_to_do(twin, client, limited):
    limited.at_a_time = 0
    before = twin.newest()
    status, message = client.commit(twin.name, keys(3))
    assert status == 400
    assert "needs more time than one request has: commit more often, or partition" in message
    assert twin.newest() == before


def test_a_search_of_few_files_that_gets_no_time_may_be_tried_again(
    twin, client, limited, monkeypatch
):
    """Iceberg's Java deletes what it has uploaded for a commit that is refused with 400."""
    limited.at_a_time = 0
    monkeypatch.setattr("polynya.commits.plan.equality_deletes.FILES_AT_A_TIME", 5)
    before = twin.newest()
    status, message = client.commit(twin.name, keys(3))
    assert (status, "did not answer in time; try again" in message) == (409, True), message
    assert twin.newest() == before
    limited.at_a_time = 5
    twin.changes("DELETE FROM {t} WHERE id = 3", client.post_again)
    twin.check()


@pytest.mark.parametrize(
    ("limit", "what"),
    [
        ("keys", "needs more than 1 keys: commit more often, or partition or sort the table by id, "
                 "or raise EQUALITY_DELETE_KEYS"),
        ("files", "may be in more than 1 data files: partition or sort the table by them, or raise "
                  "EQUALITY_DELETE_FILES"),
        ("gigabytes", "needs more than 0 GB: commit more often, or partition or sort the table by "
                      "id, or raise EQUALITY_DELETE_GB"),
    ],
)  # fmt: skip
def test_limits_are_settings(twin, client, monkeypatch, limit, what):
    twin.native(DO_NOT_INLINE, *STARTS["files"])
    plan = Planner.plan

    def plan_with_limit(planner, *arguments):
        least = 0 if limit == "gigabytes" else 1
        limits = planner.equality_deletes._replace(**{limit: least})
        return plan(replace(planner, equality_deletes=limits), *arguments)

    monkeypatch.setattr(Planner, "plan", plan_with_limit)
    before = twin.newest()
    status, message = client.commit(twin.name, keys(3, 7))
    assert (status, what in message) == (400, True), message
    assert twin.newest() == before
