"""Advice: each statement is run by native DuckLake, and saves what was promised; an undo undoes."""

import time
from collections import Counter
from contextlib import closing

import pytest
from polynya.ducklake import queries
from polynya.storage.aws import AwsSettings
from polynya_local.clients.duckdb import LAKE, connect, identifier
from polynya_local.clients.native import attach
from polynya_local.reports.advice import lake_advice, table_advice
from polynya_local.reports.difference import difference
from polynya_local.reports.generator import Generator
from polynya_local.reports.opened_table import TableRef, open_at

NAMESPACE, TABLE = "s'x", "t \"q'"
NAME = '"s\'x"."t ""q\'"'
SCRIPT = f"""
ATTACH 'ducklake:{{{{CATALOG}}}}' AS lake (DATA_PATH '{{{{DATA_PATH}}}}',
  DATA_INLINING_ROW_LIMIT 5);
CREATE SCHEMA lake."s'x";
CREATE TABLE lake.{NAME}(id BIGINT, day DATE, v VARCHAR);
-- @repeat 6
INSERT INTO lake.{NAME} SELECT {{{{i}}}} * 100 + i, '2026-10-01', 'c' || i FROM range(20) AS r(i);
ALTER TABLE lake.{NAME} SET PARTITIONED BY (day);
-- @repeat 3
INSERT INTO lake.{NAME} SELECT i, DATE '2026-10-01' + {{{{i}}}}, 'p' FROM range(40) AS r(i);
INSERT INTO lake.{NAME} SELECT i, DATE '2026-10-02', 'p' FROM range(40) AS r(i);
CREATE TABLE lake.other(i INT);
ALTER TABLE lake.{NAME} ADD COLUMN "a b" INTEGER;
INSERT INTO lake.{NAME} SELECT i, DATE '2026-10-02', 'p', i FROM range(40) AS r(i);
INSERT INTO lake.{NAME} SELECT i, DATE '2026-10-02', 'p', i FROM range(30) AS r(i);
DELETE FROM lake.{NAME} WHERE id BETWEEN 100 AND 115;
DELETE FROM lake.{NAME} WHERE id BETWEEN 202 AND 203;
INSERT INTO lake.{NAME} VALUES (1, NULL, 'inlined', 1), (2, DATE '2026-10-02', 'inlined', 2);
"""
LIVE = """SELECT count(*), coalesce(sum(file_size_bytes), 0)::BIGINT FROM (
  SELECT file_size_bytes FROM {m}.ducklake_data_file WHERE end_snapshot IS NULL
  UNION ALL SELECT d.file_size_bytes FROM {m}.ducklake_delete_file AS d
  JOIN {m}.ducklake_data_file AS f USING (data_file_id)
  WHERE d.end_snapshot IS NULL AND f.end_snapshot IS NULL)"""


class Owner:
    """A lake, what the page advises about it, and native DuckLake to run that."""

    def __init__(self, lake, s3_endpoint) -> None:
        self.con = connect(LAKE, s3_endpoint)
        attach(self.con, lake, read_only=False)
        self.generator = Generator(
            lake.database.url, lake.metadata_schema, AwsSettings.from_s3_endpoint(s3_endpoint)
        )
        self._live = LIVE.format(m=f"__ducklake_metadata_lake.{lake.metadata_schema}")

    def close(self) -> None:
        self.con.close()
        self.generator.database.close()

    def advice(self):
        def read(con):
            table, _ = open_at(self.generator, con, TableRef(NAMESPACE, TABLE))
            return [
                *table_advice(table),
                *lake_advice(con, queries.lake().run(con), self.generator.aws),
            ]

        return {advice.what: advice for advice in self.generator.read(read)}

    def undo(self, before, after, name=TABLE):
        arguments = TableRef(NAMESPACE, name, after), before, after
        read = self.generator.read
        return read(lambda con: difference(self.generator, con, *arguments)[0]).undo

    def run(self, text) -> None:
        for statement in self.con.extract_statements(text):
            self.con.execute(statement)

    def live(self) -> tuple[int, int]:
        [pair] = self.con.execute(self._live).fetchall()
        return pair

    def rows(self, at="") -> Counter:
        return Counter(map(str, self.con.execute(f"FROM lake.{NAME}{at}").fetchall()))

    @property
    def newest(self) -> int:
        return self.con.execute("SELECT max(snapshot_id) FROM lake.snapshots()").fetchone()[0]


@pytest.fixture
def owner(lake, moto, request):
    name = f"advice_{abs(hash(request.node.name))}"
    with closing(Owner(lake.write(name, SCRIPT), moto)) as owner:
        yield owner


def test_each_advice_saves_what_it_promises(owner):
    rows = owner.rows()
    for what in ("flush", "rewrite", "merge"):
        advice = owner.advice()[what]
        files, size = owner.live()
        owner.run(advice.statements)
        after, size_after = owner.live()
        assert owner.rows() == rows, what
        if what == "flush":
            # Two rows of two partitions, and deletes of two files.
            assert advice.files < 0 < after - files
            continue
        assert advice.files == files - after, what
        assert advice.basis == "estimated"
        assert advice.seconds is None or 0 <= advice.seconds < 10
        if what == "rewrite":
            assert advice.bytes > 0 and size_after < size
        assert what not in owner.advice()
    assert not {"flush", "rewrite", "merge"} & owner.advice().keys()


def test_what_expires_and_what_is_orphaned_is_what_ducklake_removes(owner, monkeypatch):
    """With another clock: a week and a day are too long for a test."""
    from datetime import timedelta

    from polynya_local.reports import advice

    assert owner.advice().keys().isdisjoint(("expire", "orphans", "clean up"))
    monkeypatch.setattr(advice, "KEPT_DAYS", 0)
    for age, is_advised in (("30 days", False), ("1 week", False), ("1 second", True), ("", True)):
        owner.con.execute(f"CALL ducklake_set_option('lake', 'expire_older_than', '{age}')")
        time.sleep(1.1)
        assert ("expire" in owner.advice()) == is_advised, age
    monkeypatch.setattr(advice, "YOUNG", timedelta(days=-1))
    data = owner.con.execute(
        "SELECT value FROM ducklake_options('lake') WHERE option_name = 'data_path'"
    )
    [[path]] = data.fetchall()
    owner.con.execute(f"COPY (SELECT 1 AS x) TO '{path}lost.parquet'")
    owner.run(owner.advice()["merge"].statements)
    time.sleep(1.1)  # what is older than a second, in whole seconds
    expire, orphans = owner.advice()["expire"], owner.advice()["orphans"]
    [[before]] = owner.con.execute("SELECT count(*) FROM lake.snapshots()").fetchall()
    rows = owner.rows()
    dry = "cleanup_all => true, dry_run => true)"
    lost = owner.con.execute(f"FROM ducklake_delete_orphaned_files('lake', {dry}").fetchall()
    assert (orphans.files, len(lost)) == (1, 1)
    first, second = owner.con.extract_statements(expire.statements)
    owner.con.execute(first)
    [[after]] = owner.con.execute("SELECT count(*) FROM lake.snapshots()").fetchall()
    assert (expire.snapshots, after) == (before - 1, 1)
    scheduled = owner.advice()["clean up"].files
    removed = owner.con.execute(second).fetchall()
    assert len(removed) == scheduled >= expire.files
    owner.con.execute("CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)")
    assert owner.advice().keys().isdisjoint(("expire", "orphans", "clean up", "merge"))
    assert owner.rows() == rows


CHANGES = [
    f"INSERT INTO lake.{NAME} SELECT i, NULL, 'import', 1 FROM range(9000, 9050) AS r(i)",
    f"UPDATE lake.{NAME} SET v = 'new' WHERE id IN (9000, 415, 416)",
    f"DELETE FROM lake.{NAME} WHERE id IN (415, 9001, 417)",
    f"UPDATE lake.{NAME} SET v = 'newer' WHERE id = 416",
]


def test_an_undo_leads_back(owner):
    start, rows = owner.newest, owner.rows()
    for statement in CHANGES:
        owner.con.execute(statement)
    owner.run(owner.undo(start, owner.newest))
    assert owner.rows() == rows


def test_an_undo_leaves_what_others_did(owner):
    owner.con.execute(CHANGES[0])
    imported, rows = owner.newest, owner.rows()
    assert rows.total() > 50
    owner.con.execute(f"INSERT INTO lake.{NAME} VALUES (7777, NULL, 'later', 1)")
    owner.con.execute(f"ALTER TABLE lake.{NAME} RENAME COLUMN v TO w")
    owner.con.execute(f'ALTER TABLE lake.{NAME} DROP COLUMN "a b"')
    owner.run(owner.undo(imported - 1, imported))
    ids = Counter(row for row in owner.con.execute(f"SELECT id, w FROM lake.{NAME}").fetchall())
    assert ids[7777, "later"] == 1 and not any(w == "import" for _, w in ids)
    assert ids.total() == rows.total() - 50 + 1


def test_an_undo_after_a_rewrite_and_a_merge_leads_back(owner):
    start, rows = owner.newest, owner.rows()
    owner.con.execute(CHANGES[0])
    for what in ("flush", "rewrite", "merge"):
        owner.run(owner.advice()[what].statements)
    owner.con.execute(CHANGES[2])
    owner.run(owner.undo(start, owner.newest))
    assert owner.rows() == rows


FROM = "FROM range(30) AS r(i)"
INSERTS = [
    f"INSERT INTO lake.{NAME} SELECT 9500 + i, NULL, 'x', 1 {FROM}",
    f"INSERT INTO lake.{NAME} SELECT 9600 + i, NULL, 'y', 2 {FROM}",
]
IN_BOTH = "WHERE id BETWEEN 9505 AND 9525 OR id BETWEEN 9605 AND 9625"
MERGE = "CALL ducklake_merge_adjacent_files('lake')"
FLUSH = "CALL ducklake_flush_inlined_data('lake')"
REWRITE = "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0.01)"
OF_MERGED_FILES = {
    "all of it": ([], [*INSERTS, MERGE, f"DELETE FROM lake.{NAME} {IN_BOTH}"]),
    "updates": ([], [*INSERTS, MERGE, f"UPDATE lake.{NAME} SET v = 'z' {IN_BOTH}"]),
    "from the second insert on": (
        INSERTS[:1],
        [INSERTS[1], MERGE, f"UPDATE lake.{NAME} SET v = 'z' {IN_BOTH}"],
    ),
    "across a rewrite": (
        [INSERTS[0], f"DELETE FROM lake.{NAME} WHERE id < 9503"],
        [REWRITE, INSERTS[1], MERGE, f"DELETE FROM lake.{NAME} {IN_BOTH}"],
    ),
    "a rewrite alone": ([*INSERTS, f"DELETE FROM lake.{NAME} {IN_BOTH}", FLUSH], [REWRITE]),
    "a new name after a rewrite": (
        [INSERTS[0], f"DELETE FROM lake.{NAME} WHERE id BETWEEN 9500 AND 9503", FLUSH],
        [
            INSERTS[1],
            REWRITE,
            f"ALTER TABLE lake.{NAME} RENAME TO renamed",
            f'DELETE FROM lake."s\'x".renamed {IN_BOTH}',
        ],
    ),
    "a field of a struct": (
        [
            f"ALTER TABLE lake.{NAME} ADD COLUMN s STRUCT(a INTEGER, b INTEGER)",
            f"INSERT INTO lake.{NAME} SELECT 9500 + i, NULL, 'x', 1, {{'a': 1, 'b': i}} {FROM}",
        ],
        [f"DELETE FROM lake.{NAME} {IN_BOTH}", f"ALTER TABLE lake.{NAME} ADD COLUMN s.c INTEGER"],
    ),
}


IN_CI = {"all of it", "across a rewrite"}
UNDONE = [
    pytest.param(name, marks=[] if name in IN_CI else pytest.mark.slow) for name in OF_MERGED_FILES
]


@pytest.mark.parametrize("name", UNDONE)
def test_an_undo_of_changes_of_merged_files_leads_back(owner, name):
    """Of a row of a merged file the feed says that it was deleted when it was inserted."""
    first, then = OF_MERGED_FILES[name]
    columns = 'id, day, v, "a b"' + (", s.a, s.b" if "struct" in name else "")
    for statement in first:
        owner.con.execute(statement)
    start = owner.newest
    rows = Counter(owner.con.execute(f"SELECT {columns} FROM lake.{NAME}").fetchall())
    for statement in then:
        owner.con.execute(statement)
    table = "renamed" if "name" in name else TABLE
    owner.run(owner.undo(start, owner.newest, table))
    source = f'lake."s\'x".{identifier(table)}'
    assert Counter(owner.con.execute(f"SELECT {columns} FROM {source}").fetchall()) == rows


def test_no_undo_loses_a_field_that_was_renamed(owner):
    owner.con.execute(f"ALTER TABLE lake.{NAME} ADD COLUMN s STRUCT(a INTEGER, b INTEGER)")
    start = owner.newest
    owner.con.execute(f"DELETE FROM lake.{NAME} WHERE id < 9503")
    deleted = owner.newest
    owner.con.execute(f"ALTER TABLE lake.{NAME} RENAME COLUMN s.a TO z")
    text = owner.undo(start, deleted)
    assert "a field of a struct has another name now" in text
    assert not owner.con.extract_statements(text)


@pytest.mark.slow("[Change_Type]", "[ROWID]", "[Snapshot_Id]")
@pytest.mark.parametrize("column", ["change_type", "Change_Type", "rowid", "ROWID", "Snapshot_Id"])
def test_an_undo_of_a_column_that_is_called_like_one_of_the_feed(owner, column):
    """It leads back, or there is none: the feed would say that other rows changed."""
    owner.con.execute(f"ALTER TABLE lake.{NAME} ADD COLUMN \"{column}\" VARCHAR DEFAULT '1'")
    start, rows = owner.newest, owner.rows()
    for statement in CHANGES[1:]:
        owner.con.execute(statement)
    text = owner.undo(start, owner.newest)
    if column.lower() == "rowid":
        assert not owner.con.extract_statements(text)
        return
    owner.run(text)
    assert owner.rows() == rows


def test_a_snapshot_alone_has_nothing_to_undo(owner):
    newest = owner.newest
    owner.con.execute(CHANGES[0])
    assert owner.undo(newest, newest) == ""


def test_a_table_is_removed_or_made_again(owner):
    rows = owner.rows()
    [[made]] = owner.con.execute(
        "SELECT min(begin_snapshot) FROM __ducklake_metadata_lake.ducklake_table"
    ).fetchall()
    text = owner.undo(made - 1, owner.newest)
    before = owner.newest
    owner.run(text)
    assert owner.con.execute(
        "SELECT count(*) FROM duckdb_tables() "
        "WHERE database_name = 'lake' AND table_name <> 'other'"
    ).fetchone() == (0,)
    owner.run(owner.undo(made, before))
    assert owner.rows() == rows
