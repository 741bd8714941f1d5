"""The rows that two snapshots do not share: DuckLake's change feed, beside Iceberg's entries."""

from collections import Counter
from itertools import pairwise

import pytest
from polynya.ducklake import queries
from polynya.runtime.errors import Refused
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import attach
from polynya_local.reports.difference import add_paths, difference
from polynya_local.reports.generator import tables_of
from polynya_local.reports.opened_table import Renamed, TableRef, open_at
from polynya_local.reports.preview import Limits

from tests.differential.preview.test_preview import Served
from tests.support.lakes import number_of

SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 5);
CREATE TABLE lake.t(k INTEGER, "quote""d" VARCHAR, st STRUCT(a INTEGER));
INSERT INTO lake.t SELECT i, 'v' || i, {'a': i} FROM range(40) AS r(i);
INSERT INTO lake.t SELECT i, '<b>' || i, NULL FROM range(100, 130) AS r(i);
UPDATE lake.t SET "quote""d" = 'changed' WHERE k IN (1, 2, 101);
DELETE FROM lake.t WHERE k BETWEEN 10 AND 19;
ALTER TABLE lake.t ALTER k SET DATA TYPE BIGINT;
ALTER TABLE lake.t ADD COLUMN extra DOUBLE DEFAULT 1.5;
INSERT INTO lake.t VALUES (5000000000, 'wide', {'a': 1}, 2.5);
DELETE FROM lake.t WHERE k = 5000000000;
ALTER TABLE lake.t RENAME TO "t '2'";
ALTER TABLE lake."t '2'" RENAME COLUMN extra TO more;
CALL ducklake_rewrite_data_files('lake', 't ''2''', delete_threshold => 0.1);
INSERT INTO lake."t '2'" VALUES (7, 'last', NULL, NULL);
"""
NAMES = "t '2'"
LAST = 13
REWRITE = 12
PAIRS = [(0, 1), (1, 2), (2, 4), (3, 5), (1, 6), (2, 9), (5, 11), (11, 12), (1, LAST), (12, LAST)]
IN_CI = {(2, 4), (1, LAST)}


@pytest.fixture(scope="module")
def served(lake, moto):
    with Served(lake.write("changed_rows", SCRIPT), moto) as served:
        yield served


def changed(served, table, before, after, kind="", namespace="main"):
    """The report without rows, and the answer about these."""
    generator, ref = served.generator, TableRef(namespace, table, after)
    report, question = generator.read(
        lambda con: difference(generator, con, ref, before, after, kind=kind)
    )
    complete = generator.read(lambda con: add_paths(generator, con, ref, question))
    return report, served.reader.answer(complete)


def name_at(served, snapshot):
    return "t" if snapshot < 10 else NAMES


def fed(served, before, after):
    """The feed between the snapshots, without the one that moved rows, which changed none.

    Each change once: across a rewrite the feed has those of rows with inlined deletes twice. A
    condition inside of it changes more than it leaves out.
    """
    name = name_at(served, after).replace("'", "''")
    changes = served.judge.query(
        "SELECT DISTINCT snapshot_id, change_type, rowid, k::VARCHAR FROM ducklake_table_changes("
        f"'lake', 'main', '{name}', {max(before + 1, 1)}, {after})"
    )
    return [(id_, change, k) for id_, change, _, k in changes if id_ != REWRITE]


def rows_of(served, snapshot, columns):
    """The rows at a snapshot as text, read by native DuckLake from the table itself."""
    if snapshot < 1:
        return Counter()
    name = name_at(served, snapshot)
    sql = f'SELECT {columns} FROM lake."{name}" AT (VERSION => {snapshot})'
    return Counter(served.judge.query(sql))


CASES = [pytest.param(*pair, marks=[] if pair in IN_CI else pytest.mark.slow) for pair in PAIRS]


@pytest.mark.parametrize(("before", "after"), CASES)
def test_the_rows_are_those_of_native_ducklake(served, before, after):
    _, answer = changed(served, name_at(served, after), before, after)
    assert (answer.notes, answer.agree) == ({}, True)
    expected = Counter(fed(served, before, after))
    words = {"inserted": "insert", "deleted": "delete", "updated from": "update_preimage"}
    words["updated to"] = "update_postimage"
    shown = Counter(
        (row.snapshot_id, words[row.what], row.cells[0].text) for row in answer.rows.rows
    )
    assert shown == expected
    # The feed is judged by the tables themselves: what was there is replaced by what is there.
    new, old = (rows_of(served, at, "k::VARCHAR") for at in (after, before))
    signs = Counter()
    for _, change, key in expected.elements():
        signs[key,] += 1 if change in ("insert", "update_postimage") else -1
    assert {k: n for k, n in signs.items() if n} == {
        k: new[k] - old[k] for k in new | old if new[k] != old[k]
    }
    totals = Counter({"rows": sum(new.values()) - sum(old.values())})
    assert answer.entries.rows == totals["rows"]


def test_counts_are_those_of_each_snapshot(served):
    report, answer = changed(served, NAMES, 1, LAST)
    expected = Counter((row[0], row[1]) for row in fed(served, 1, LAST))
    for snapshot_id, counts in answer.counts.items():
        kinds = ("insert", "delete", "update_postimage")
        assert [counts.inserted, counts.deleted, counts.updated] == [
            expected[snapshot_id, kind] for kind in kinds
        ]
    assert {snapshot_id for snapshot_id, _ in expected} == answer.counts.keys()
    by_catalog = {one.snapshot_id: (one.inserted, one.deleted) for one in report.snapshots}
    assert by_catalog[3] == (30, 0) and by_catalog[5] == (0, 10)
    assert all(
        found in [(None, None), (counts.inserted + counts.updated, counts.deleted + counts.updated)]
        for snapshot_id, counts in answer.counts.items()
        for found in [by_catalog[snapshot_id]]
    )


@pytest.mark.parametrize("kind", ["inserted", "deleted", "updated"])
def test_rows_of_one_kind_are_shown(served, kind):
    _, answer = changed(served, NAMES, 2, LAST, kind)
    shown = {row.what.split()[0] for row in answer.rows.rows}
    assert shown == {kind} and answer.agree


def test_an_update_says_which_cells_differ(served):
    _, answer = changed(served, NAMES, 2, LAST, "updated")
    names = answer.rows.columns
    assert {row.differs for row in answer.rows.rows} == {(names.index('quote"d'),)}


def test_what_altered_altered_is_said(served):
    report, _ = changed(served, NAMES, 1, LAST)
    words = [word for snapshot in report.snapshots for word in snapshot.words]
    assert "altered: k from int32 to int64" in words
    assert "altered: added extra float64, extra has default 1.5" in words or (
        "altered: added extra float64" in words
    )
    assert "altered: renamed extra to more" in words


def test_without_native_ducklake_the_entries_say_the_rows(served, monkeypatch):
    """A catalog that this machine's DuckDB cannot attach."""
    from dataclasses import replace

    from polynya_local.reports.preview_worker import PreviewReader

    elsewhere = replace(served.endpoints, metadata_schema="none")
    reader, served.reader = served.reader, PreviewReader(elsewhere)
    try:
        _, answer = changed(served, NAMES, 2, LAST)
    finally:
        served.reader.close()
        served.reader = reader
    assert answer.notes.keys() == {"counts", "feed"} and answer.agree is None
    new, old = (rows_of(served, at, 'k::VARCHAR, "quote""d"') for at in (LAST, 2))
    shown = Counter(
        (row.what, row.cells[0].text, row.cells[1].text.strip('"')) for row in answer.rows.rows
    )
    assert shown == Counter(
        {
            ("inserted" if new[row] > old[row] else "deleted", *row): abs(new[row] - old[row])
            for row in new | old
            if new[row] != old[row]
        }
    )


def cases(lakes, delivery):
    """One case for each lake that is served."""
    names = [name for name in lakes if number_of(name) != "29"]
    return "lake_name", [pytest.param(name, marks=pytest.mark.slow) for name in names]


# Where DuckLake's feed is wrong (docs/ducklake.md), by lake, table and snapshots; the page says
# that the two differ. The entries are right there too.
WRONG_FEEDS = {
    ("60", "rw", 16, 17),  # it has deletes of a merged file a second time
}


def test_the_feed_and_the_entries_agree_in_every_table(lake, lake_name, moto):
    wrong = []
    with Served(lake(lake_name), moto) as served:
        with served.generator.database.transaction() as con:
            tables = tables_of(con, queries.lake().run(con))
            opened = [
                open_at(served.generator, con, TableRef(schema.full_name, table.table_name))
                for schema, table in tables
            ]
        served.reader.limits = Limits(seconds=60)
        for table, head in opened:
            ids = [snapshot.snapshot_id for snapshot in table.history.snapshots]
            pairs = {(ids[0], ids[-1]), *[*pairwise(ids)][-3:]}
            for before, after in sorted(pairs):
                at = TableRef(head.namespace, head.name, after)
                try:
                    report, answer = changed(served, head.name, before, after, "", head.namespace)
                except Renamed as error:
                    at = TableRef(error.namespace, error.name, after)
                    report, answer = changed(served, at.name, before, after, "", at.namespace)
                except Refused:
                    continue
                counts = report.counts_before.rows, report.counts_after.rows
                pair = (number_of(lake_name), head.name, before, after)
                is_right = answer.agree is (pair not in WRONG_FEEDS)
                if answer.agree is None:
                    is_right = bool(answer.notes)  # why one of the two cannot be had
                if answer.entries is not None and None not in counts:
                    is_right &= answer.entries.rows == counts[1] - counts[0]
                if not is_right:
                    wrong.append(
                        (head.name, before, after, answer.feed, answer.entries, answer.notes)
                    )
    assert wrong == []


FLUSHED = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 9);
CREATE TABLE lake.t(k INTEGER, filename VARCHAR);
INSERT INTO lake.t VALUES (1, 'a'), (2, 'b');
UPDATE lake.t SET filename = 'b2' WHERE k = 2;
UPDATE lake.t SET filename = 'b3' WHERE k = 2;
CALL ducklake_flush_inlined_data('lake');
INSERT INTO lake.t VALUES (3, 'c');
"""


def test_rows_that_were_updated_twice_before_a_flush_and_an_expiry_in_between(lake, moto):
    """The feed of all snapshots has an update twice there; the feeds of single ones are right."""
    flushed = lake.write("changed_flushed", FLUSHED)
    with Served(flushed, moto) as served:
        _, answer = changed(served, "t", 1, 6)
        assert (answer.agree, answer.entries.rows) == (True, 3)
        feeds = [
            served.judge.query(
                "SELECT snapshot_id, change_type, k::VARCHAR, filename FROM "
                f"ducklake_table_changes('lake', 'main', 't', {at}, {at})"
            )
            for at in (2, 3, 4, 6)
        ]
        words = {"inserted": "insert", "updated from": "update_preimage"}
        words["updated to"] = "update_postimage"
        assert Counter(
            (row.snapshot_id, words[row.what], *(cell.text for cell in row.cells))
            for row in answer.rows.rows
        ) == Counter(row for feed in feeds for row in feed)
        with connect(LAKE, moto) as con:
            attach(con, flushed, read_only=False)
            con.execute("CALL ducklake_expire_snapshots('lake', versions => [3])")
        report, answer = changed(served, "t", 2, 6)
        assert report.undo.startswith("-- No statement undoes this: snapshots in between")
        assert answer.agree is None and "expired" in answer.notes["feed"]
        assert [(row.what, row.cells[1].text) for row in answer.rows.rows] == [
            ("deleted", '"b"'),
            ("inserted", '"b3"'),
            ("inserted", '"c"'),
        ]


@pytest.mark.slow("[change_type]", "[ROWID]")
@pytest.mark.parametrize("column", ["change_type", "ROWID", "snapshot_id"])
def test_a_column_that_is_called_like_one_of_the_feed(lake, moto, column):
    """The feed has the table's own values in the place of ids of rows and of snapshots."""
    script = f"""
    ATTACH 'ducklake:{{{{CATALOG}}}}' AS lake (DATA_PATH '{{{{DATA_PATH}}}}');
    CREATE TABLE lake.t(k INTEGER, "{column}" VARCHAR);
    INSERT INTO lake.t VALUES (1, '7'), (2, '7');
    DELETE FROM lake.t WHERE k = 1;
    """
    with Served(lake.write("changed_names", script), moto) as served:
        _, answer = changed(served, "t", 2, 3)
        if answer.entries is not None:  # a table with a column ROWID is not served
            rows = [(row.what, row.cells[0].text) for row in answer.rows.rows]
            assert rows == [("deleted", "1")]
        if column == "change_type":
            assert answer.agree and answer.counts[3].deleted == 1
        else:
            assert answer.counts is None and "rowid or snapshot_id" in answer.notes["feed"]
