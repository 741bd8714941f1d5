"""Each number of rows that the page and `inspect` show, at every snapshot: exact, or not shown.

The judge is native DuckLake, which reads the rows: a plain count(*) comes from the catalog.
"""

from collections.abc import Iterator
from contextlib import closing, suppress
from itertools import pairwise

import pytest
from polynya.ducklake import queries
from polynya.runtime.errors import Refused
from polynya.runtime.namespaces import dotted
from polynya.storage.aws import AwsSettings
from polynya_local.clients import native
from polynya_local.page.links import table_path
from polynya_local.reports.generator import Generator, OpenedTable, tables_of
from polynya_local.reports.metadata_files import TableReport, table_report
from polynya_local.reports.table_checks import iceberg_rows

from tests.differential.test_rows import MOST_SNAPSHOTS, NATIVE_DEFECTS, SPREAD, spread
from tests.pages.conftest import Page, showing
from tests.support.catalog_versions import WRITTEN, restored
from tests.support.lakes import number_of
from tests.support.native_lakes import count, name_at
from tests.support.servers.in_process import settings

ENCRYPTED = {"29"}

DELETED_TWICE = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
CREATE TABLE lake.t AS SELECT i FROM range(100000) r(i);
DELETE FROM lake.t WHERE i < 1000;
DELETE FROM lake.t WHERE i >= 50000;
INSERT INTO lake.t VALUES (1), (2);
DELETE FROM lake.t WHERE i = 2;
CALL ducklake_flush_inlined_data('lake');
"""


class Judge:
    """Native DuckLake's counts of one table, by its table_id."""

    def __init__(self, reader: native.Native, table: native.Table, left_out: set[int]) -> None:
        self._reader, self._table = reader, table
        self.left_out = left_out
        """Snapshots at which DuckLake itself counts wrongly."""

    def path(self, snapshot_id: int) -> str:
        schema, name = name_at(self._reader, self._table, snapshot_id)
        return table_path(dotted(schema), name)

    def rows(self, snapshot_id: int) -> int:
        return count(self._reader, self._table, snapshot_id)


def judged(lake_name: str, reader: native.Native, table: native.Table) -> Judge:
    defects = {at for name, one, at in NATIVE_DEFECTS if (name, one) == (lake_name, table.name)}
    return Judge(reader, table, {at for at in defects if at is not None})


def wrong_numbers(page: Page, judge: Judge, table_id: int) -> list[tuple]:
    """What the pages of a table and the list of tables show, and native DuckLake does not have."""
    newest = page.report("/")["newest"]
    history = {one["snapshot_id"]: one for one in page.report(judge.path(newest))["snapshots"]}
    wanted = [at for at in spread(sorted(history), MOST_SNAPSHOTS) if at not in judge.left_out]
    rows = {at: judge.rows(at) for at in wanted}
    files, found = {}, []
    for at in wanted:
        files[at] = page.report(f"{judge.path(at)}/files?snapshot={at}")
        numbers = shown(page, judge.path(at), at, table_id) | sums(files[at])
        numbers["history"] = history[at]["counts"]["rows"]
        found += [(at, *one, rows[at]) for one in numbers.items() if one[1] != rows[at]]
    for before, after in pairwise(wanted):
        report = page.report(f"{judge.path(after)}/difference?from={before}&to={after}")
        for at, side, changed in ((before, "before", "removed"), (after, "after", "added")):
            if report[f"counts_{side}"] != files[at]["counts"]:
                found.append((at, f"difference, {side}", report[f"counts_{side}"], rows[at]))
            lines = {one["data_file_id"]: numbers_of(one) for one in files[at]["files"]}
            files_then = report[changed]["files"]
            found += [
                (at, f"difference, {changed}", numbers_of(one), lines[one["data_file_id"]])
                for one in files_then
                if numbers_of(one) != lines.get(one["data_file_id"], numbers_of(one))
            ]
            if report[changed]["paging"]["total"] == len(files_then):
                assert report[changed]["rows"] == sum(one["rows"] for one in files_then)
    return found


def shown(page: Page, path: str, at: int, table_id: int) -> dict[str, int | None]:
    """The live rows of a table where a page shows them as one number."""
    lines = page.report(f"/?snapshot={at}")["lines"]
    return {
        "table": page.report(f"{path}?snapshot={at}")["counts"]["rows"],
        "list of tables": next(one["rows"] for one in lines if one["object_id"] == table_id),
    }


def sums(report: dict) -> dict[str, int | None]:
    """The live rows of a table as the sum over its files, if one page shows all of them."""
    counts, lines = report["counts"], report["files"]
    if len(lines) < counts["files"]:
        return {}
    assert sum(one["deleted"] for one in lines) == counts["deleted"]
    return {"files": sum(one["rows"] - one["deleted"] for one in lines) + counts["inlined"]}


def numbers_of(line: dict) -> tuple[int | None, int | None]:
    return line["rows"], line["deleted"]


def inspected(lake, s3_endpoint: str) -> Iterator[tuple[OpenedTable, TableReport]]:
    """Each table that clients get, as `inspect` shows it."""
    with settings(AWS_ENDPOINT_URL_S3=s3_endpoint, SNAPSHOT_LIMIT="2000"):
        generator = Generator(
            lake.database.url, lake.metadata_schema, AwsSettings.from_s3_endpoint(s3_endpoint)
        )
        with closing(generator.database), generator.database.transaction() as con:
            found = queries.lake().run(con)
            for pair in tables_of(con, found):
                with suppress(Refused):  # clients do not get the table, nor does `inspect`
                    opened = generator.open_table(con, found, *pair)
                    yield opened, table_report(opened, None)


def assert_exact(lake, s3_endpoint: str) -> None:
    with showing(lake, s3_endpoint) as page, closing(native.open(lake, s3_endpoint)) as reader:
        judges = {table.table_id: judged(lake.name, reader, table) for table in reader.tables()}
        for table_id, judge in judges.items():
            assert wrong_numbers(page, judge, table_id) == []
        for opened, report in inspected(lake, s3_endpoint):
            judge = judges[opened.table_id]
            rows = {snapshot.snapshot_id: snapshot.rows for snapshot in report.snapshots}
            for snapshot_id in rows.keys() - judge.left_out:
                assert rows[snapshot_id] == judge.rows(snapshot_id), (opened.name, snapshot_id)
            for snapshot_id in set(spread(sorted(rows), SPREAD)) - judge.left_out:
                tree_rows = rows_of_the_tree(table_report(opened, snapshot_id))
                assert tree_rows == judge.rows(snapshot_id), (opened.name, snapshot_id)


def rows_of_the_tree(report: TableReport) -> int:
    """The live rows of a table as the sum over the files that `inspect` shows."""
    deleted = report.files.deleted_rows()
    return sum(
        file.rows - deleted.get(file.path, 0)
        for file in report.files.live_files()
        if file.deletes_of is None
    )


@pytest.mark.slow(but=["[14_"])
def test_numbers_are_exact_or_not_shown(lake_name, lake, moto):
    if number_of(lake_name) in ENCRYPTED:
        pytest.skip("the lake is not served")
    assert_exact(lake(lake_name), moto)


@pytest.mark.slow
def test_a_second_delete_on_a_file_changes_no_number_of_the_past(lake, moto):
    assert_exact(lake.write("deleted_twice", DELETED_TWICE), moto)


OLD = {"0.3-inlined"}


@pytest.mark.parametrize(
    "name", [pytest.param(one, marks=[pytest.mark.slow] * (one not in OLD)) for one in WRITTEN]
)
def test_numbers_of_an_old_lake_are_those_of_the_manifests(name, postgres_server, moto):
    """This DuckDB cannot attach it. What clients get of the manifests is tested elsewhere."""
    counted = 0
    for opened, report in inspected(restored(name, "-numbers", postgres_server, moto), moto):
        lists = {one.sequence_number: one.manifest_list for one in opened.metadata.snapshots}
        for snapshot in report.snapshots:
            rows = iceberg_rows(opened, lists[snapshot.snapshot_id])
            assert snapshot.rows == rows, (opened.name, snapshot.snapshot_id)
            counted += 1
    assert counted > 5
