"""A preview reads through the Iceberg endpoints what native DuckLake has, within its limits."""

import json
from contextlib import closing
from dataclasses import replace

import pytest
from polynya.ducklake import queries
from polynya.runtime.errors import BadRequest
from polynya.storage.aws import AwsSettings
from polynya_local.clients import native
from polynya_local.reports import preview_worker as reader_module
from polynya_local.reports.generator import Generator, tables_of
from polynya_local.reports.opened_table import TableRef, open_at
from polynya_local.reports.preview import Endpoints, Limits, Lines, Preparation, preparation
from polynya_local.reports.preview_worker import PreviewReader

from tests.support.databases import copy_database
from tests.support.lakes import number_of
from tests.support.servers.in_process import bridge
from tests.support.servers.slow_servers import silent

SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE all_types(i INTEGER, i8 TINYINT, f DOUBLE, r FLOAT, d DECIMAL(9,2), s VARCHAR,
  j JSON, b BLOB, u UUID, o BOOLEAN, dt DATE, t TIME, ts TIMESTAMP, ms TIMESTAMP_MS,
  tz TIMESTAMPTZ, st STRUCT(a INTEGER, b VARCHAR), l INTEGER[], hu UHUGEINT, "a""b'c" INTEGER);
INSERT INTO all_types VALUES (1, -1, 1.5, 0.1, 1.25, 'one', '{"a": 1}', '\\x00\\xFF'::BLOB,
  '00000000-0000-0000-0000-000000000001', true, '2024-02-29', '01:02:03', '2024-02-29 01:02:03.5',
  '2024-02-29 01:02:03.5', '2024-02-29 01:02:03+02', {'a': 1, 'b': 'x'}, [1, NULL], 1, 1);
INSERT INTO all_types VALUES (2, 2, 'nan', 'nan', 2.5, 'NULL', 'null', '', NULL, false, 'infinity',
  '24:00:00', 'infinity', NULL, '-infinity', NULL, [], NULL, 2);
INSERT INTO all_types SELECT range, 3, 'inf', 7, -1, repeat('ä', 300), NULL, repeat('x', 500)::BLOB,
  NULL, NULL, '0044-03-15 (BC)', NULL, NULL, NULL, NULL, {'a': NULL, 'b': repeat('y', 500)}, NULL,
  NULL, 3 FROM range(3, 200);
DELETE FROM all_types WHERE i = 150;
CALL lake.set_option('data_inlining_row_limit', 10, table_name => 'all_types');
INSERT INTO all_types(i, s) VALUES (500, 'inlined');
CREATE TABLE nothing(i INTEGER);
"""
# A filter, and the condition in SQL of native DuckLake; NaN meets none.
FILTERS = [
    (("i", "=", "1"), "i = 1"),
    (("i", "≠", "1"), "i <> 1"),
    (("i", "≥", "199"), "i >= 199"),
    (("i", ">", "2147483647"), "false"),
    (("i8", "<", "0"), "i8 < 0"),
    (("f", ">", "1"), "f > 1 AND NOT isnan(f)"),
    (("f", "=", "inf"), "f = 'inf'"),
    (("f", "≠", "1.5"), "f <> 1.5 AND NOT isnan(f)"),
    (("r", "=", "0.1"), "r = 0.1::FLOAT"),
    (("d", "≤", "1.250"), "d <= 1.25"),
    (("s", "=", "NULL"), "s = 'NULL'"),
    (("s", "starts with", "o"), "starts_with(s, 'o')"),
    (("s", "starts with", "%"), "false"),
    (("s", "=", "' OR 1=1 --"), "false"),
    (("s", "is null", ""), "s IS NULL"),
    (("j", "=", '{"a": 1}'), "CAST(j AS VARCHAR) = '{\"a\": 1}'"),
    (("b", "=", "00ff"), "b = '\\x00\\xFF'::BLOB"),
    (("b", "=", ""), "b = ''::BLOB"),
    (("u", "=", "00000000-0000-0000-0000-000000000001"), "u IS NOT NULL"),
    (("o", "=", "true"), "o"),
    (("dt", ">", "2024-01-01"), "dt > '2024-01-01'"),
    (("dt", "<", "0001-01-01"), "dt < '0001-01-01'"),
    (("dt", "=", "infinity"), "dt = 'infinity'"),
    (("t", "=", "24:00:00"), "t = '24:00:00'"),
    (("ts", "≤", "2024-02-29 01:02:03.5"), "ts <= '2024-02-29 01:02:03.5'"),
    (("ms", "=", "2024-02-29 01:02:03.5"), "ms IS NOT NULL"),
    (("tz", "=", "2024-02-28 23:02:03"), "tz = '2024-02-29 01:02:03+02'"),
    (("tz", "<", "2024-01-01"), "tz < '2024-01-01'"),
    (("st", "is not null", ""), "st IS NOT NULL"),
    (("l", "is null", ""), "l IS NULL"),
    (("a\"b'c", "=", "1"), '"a""b\'c" = 1'),
]
IN_CI = {"i", "f", "s", "b", "tz"}
NO_VALUES = [
    (("dt", "=", "2024-02-30"), "is a DATE: 2024-02-30 is not one"),
    (("d", "=", "1.255"), r"is a DECIMAL\(9,2\): 1.255 is not one"),
    (("d", "=", "1; DROP TABLE t"), "is not one"),
    (("i8", "=", "300"), "is a TINYINT: 300 is not one"),
    (("u", "=", "x"), "is a UUID: x is not one"),
    (("o", "=", "perhaps"), "is a BOOLEAN: perhaps is not one"),
]
SKIPPED_BY_DUCKLAKE = ("s", "=", "NULL")
"""DuckLake takes a bound that reads NULL for none."""


def filters():
    """The filters as cases; CI has the first of some columns."""
    seen = set()
    for line, sql in FILTERS:
        is_in_ci = line[0] in IN_CI - seen or line == SKIPPED_BY_DUCKLAKE
        seen.add(line[0])
        marks = [] if is_in_ci else [pytest.mark.slow]
        yield pytest.param(line, sql, id=" ".join(line), marks=marks)


def cases(lakes, delivery):
    """One case for each lake that is served."""
    names = [name for name in lakes if number_of(name) != "29"]
    return "lake_name", [pytest.param(name, marks=pytest.mark.slow) for name in names]


PATIENT = Limits(seconds=60)
"""Of a busy machine."""


class Served:
    """A lake behind Iceberg endpoints, and the reader of its previews."""

    def __init__(self, lake, s3_endpoint) -> None:
        self._bridge = bridge(lake, s3_endpoint, delivery="object-lambda")
        self._lake, self._s3_endpoint = lake, s3_endpoint

    def __enter__(self):
        found = self._bridge.__enter__()
        lake, endpoint = self._lake, self._s3_endpoint
        self.endpoints = Endpoints(
            found.catalog_uri,
            found.warehouse,
            found.s3_endpoint,
            lake.database.url,
            lake.metadata_schema,
            AwsSettings.from_s3_endpoint(endpoint),
        )
        self.reader = PreviewReader(self.endpoints)
        self.reader.limits = PATIENT
        self.generator = Generator(
            lake.database.url, lake.metadata_schema, AwsSettings.from_s3_endpoint(endpoint)
        )
        self.judge = native.open(lake, endpoint)
        return self

    def __exit__(self, *error):
        self.reader.close()
        self.judge.close()
        self.generator.database.close()
        self._bridge.__exit__(*error)

    def prepared(self, table, line=None, at=None, namespace="main") -> Preparation | None:
        """The question of one line of a form."""
        lines = Lines(*([part] for part in line)) if line else Lines()
        wanted = TableRef(namespace, table, at)
        return self.generator.read(
            lambda con: preparation(*open_at(self.generator, con, wanted, limit=1), lines)
        )

    def answer(self, table, line=None, at=None):
        return self.reader.answer(self.prepared(table, line, at).question)


@pytest.fixture(scope="module")
def typed(lake):
    return lake.write("preview", SCRIPT)


@pytest.fixture(scope="module")
def served(typed, moto):
    with Served(typed, moto) as served:
        yield served


@pytest.mark.slow("[f > 1]", "[b = 00ff]")
@pytest.mark.parametrize(("line", "sql"), [*filters()])
def test_a_filter_finds_the_rows_of_native_ducklake(served, line, sql):
    answer = served.answer("all_types", line)
    [[expected]] = served.judge.query(f"SELECT count(*) FILTER (WHERE {sql}) FROM lake.all_types")
    assert (answer.iceberg.rows, answer.native.rows) == (expected, expected)
    assert answer.agree is True
    assert len(answer.rows.rows) == min(100, expected)
    assert answer.notes.keys() <= {"planned"}
    assert (answer.native_skipping is not None) == (line == SKIPPED_BY_DUCKLAKE)


@pytest.mark.parametrize(("line", "words"), NO_VALUES)
def test_a_value_that_is_none_of_its_type_is_refused(served, line, words):
    with pytest.raises(BadRequest, match=words):
        served.answer("all_types", line)
    assert served.answer("nothing").agree  # and the reader goes on


def test_cells_are_texts_that_say_what_was_cut(served):
    rows = served.answer("all_types", ("i", "≤", "3")).rows
    cells = [dict(zip(rows.columns, row, strict=True)) for row in rows.rows]
    one, two, three = sorted(cells, key=lambda row: int(row["i"].text))
    assert "hu" not in rows.columns
    assert (one["b"].text, two["b"].text, two["s"].text, two["j"].text) == (
        "00ff",
        "",
        "NULL",
        "null",
    )
    assert (two["u"].text, two["f"].text, two["tz"].text) == (None, "nan", "-infinity")
    assert json.loads(one["st"].text) == {"a": 1, "b": "x"}
    assert (one["l"].text, one["tz"].text) == ("[1,null]", "2024-02-28 23:02:03+00")
    assert (three["s"].text, three["s"].length) == ("ä" * 200, 300)
    assert (three["b"].text, three["b"].length) == ("78" * 100, 500)
    assert (len(three["st"].text), three["st"].length) == (200, len('{"a":null,"b":""}') + 500)
    assert one["s"].length is None


def test_at_most_a_hundred_rows_are_shown(served):
    rows = served.answer("all_types").rows
    assert (len(rows.rows), rows.has_more) == (100, True)
    assert served.answer("nothing").rows.rows == ()


def test_the_files_that_a_filter_leaves_are_counted(served):
    files = served.judge.query(
        "SELECT data_file_size_bytes, delete_file IS NOT NULL "
        "FROM ducklake_list_files('lake', 'all_types')"
    )
    found = served.prepared("all_types", ("i", "≥", "3"))
    assert (found.files, found.question.bytes) == (3, sum(size for size, _ in files))
    planned = served.reader.answer(found.question).planned
    # One file has i >= 3, and it is the one with a delete; the inlined row has no statistics.
    assert (planned.files, planned.generated_files, planned.delete_files) == (1, 1, 1)
    assert [planned.bytes] == [size for size, has_deletes in files if has_deletes]


def test_a_past_snapshot_is_shown_as_it_was(served, typed):
    [[then]] = served.judge.query(
        "SELECT min(snapshot_id) FROM lake.snapshots() WHERE "
        "changes['tables_inserted_into'] IS NOT NULL"
    )
    answer = served.answer("all_types", at=then)
    assert (answer.iceberg.rows, answer.agree) == (1, True)


def test_another_checksum_means_other_rows(served, typed, lake):
    copy = copy_database(lake._server, typed.database, "preview_damaged")
    with closing(copy.connect()) as con:
        con.run("UPDATE ducklake_data_file SET end_snapshot = 5 WHERE data_file_id = 0")
    elsewhere = replace(served.endpoints, database=copy.url)
    with closing(PreviewReader(elsewhere)) as reader:
        answer = reader.answer(served.prepared("all_types").question)
    assert answer.agree is False
    assert answer.iceberg.rows == answer.native.rows + 1


LIMITED = [
    (Limits(seconds=0), ("rows", "iceberg", "native"), "took too long"),
    (Limits(compared_bytes=10), ("iceberg", "native"), "more than the 0 MB that are compared"),
    (Limits(memory="2MB"), ("rows", "iceberg", "native"), "more memory than a preview may have"),
]


@pytest.fixture
def limited(served):
    """Sets the limits of a question."""

    def limit(limits: Limits) -> Served:
        served.reader.limits = limits
        return served

    yield limit
    served.reader.limits = PATIENT


@pytest.mark.parametrize(("limits", "missing", "words"), LIMITED)
def test_what_exceeds_a_limit_is_missing_with_a_note(limited, limits, missing, words):
    answer = limited(limits).answer("all_types")
    assert {name for name in missing if words in answer.notes.get(name, "")} == set(missing)
    assert answer.agree is None


def test_the_bytes_and_columns_of_all_cells_are_limited(limited):
    rows = limited(Limits(bytes=3000, columns=7)).answer("all_types").rows
    assert (len(rows.columns), rows.columns_left_out) == (7, 11)
    size = sum(len((cell.text or "").encode()) for row in rows.rows for cell in row)
    assert 1 <= len(rows.rows) < 20 and size <= 3000 and rows.has_more


@pytest.mark.slow
def test_a_server_that_does_not_answer_ends_the_process_and_the_next_question_works(
    served, monkeypatch
):
    monkeypatch.setattr(reader_module, "GRACE_SECONDS", 0.3)
    with silent() as port:
        elsewhere = replace(served.endpoints, catalog_uri=f"http://127.0.0.1:{port}")
        with closing(PreviewReader(elsewhere, Limits(seconds=0.3))) as reader:
            answer = reader.answer(served.prepared("nothing").question)
            assert set(answer.notes.values()) == {reader_module.NOT_IN_TIME}
            assert reader._process is None
    assert served.answer("nothing").agree
    served.reader._process.kill()
    assert served.answer("nothing").agree or served.answer("nothing").agree


def test_rows_agree_in_every_table(lake, lake_name, moto):
    one = lake(lake_name)
    with Served(one, moto) as served:
        with served.generator.database.transaction() as con:
            tables = tables_of(con, queries.lake().run(con))
        for schema, table in tables:
            found = served.prepared(table.table_name, namespace=schema.full_name)
            if found is None:
                continue  # it is refused
            answer = served.reader.answer(found.question)
            if one.native:  # DuckDB cannot attach the catalog itself
                assert "this catalog has 1.1: the comparison" in answer.notes["rows"]
            else:
                assert answer.agree, (table.table_name, answer.iceberg, answer.native, answer.notes)
