"""With a wrong value in DuckLake's catalog, a page is as before, or says what is wrong.

None fails, and none takes long.
"""

import re
import time

import pytest

from tests.e2e.faults.test_broken_catalog import CASES, LAKE
from tests.pages.conftest import showing
from tests.support.damage import Damage, DamagedLake, damaged, damages

SECONDS = 20
OF_LAKE = ("/", "/changes", "/views/v/view", "/tables/main/bystander")
OF_TABLE = ("", "/files", "/difference", "/read", "/iceberg", "/doctor")


class ShownLake(DamagedLake):
    """A lake whose catalog is damaged, and the page over it after each damage."""

    def __init__(self, lake, moto: str) -> None:
        super().__init__(lake)
        self._moto = moto

    def problems(self, damage: Damage, tables) -> list[str]:
        """The pages that fail, or take long."""
        paths = [*OF_LAKE, *(f"/tables/v/{name}{page}" for name in tables for page in OF_TABLE)]
        with damaged(self.con, damage) as is_damaged:
            if not is_damaged:
                return []
            with showing(self.lake, self._moto) as page:
                return [f"{damage.what}: {x}" for path in paths if (x := self._problem(page, path))]

    def _problem(self, page, path: str) -> str | None:
        started = time.monotonic()
        status = page.get(path).status
        seconds = time.monotonic() - started
        return f"{path} {status}, {seconds:.0f} s" if status >= 500 or seconds > SECONDS else None


@pytest.fixture(scope="module")
def broken(lake, moto):
    return ShownLake(lake.write("broken_page", LAKE), moto)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "table", "row", "shown_by"), [case.values for case in CASES])
def test_no_page_fails(broken, kind, table, row, shown_by):
    found = damages(broken.con, broken.filled_in(table), broken.filled_in(row), kind)
    problems = [x for damage in found for x in broken.problems(damage, shown_by or ("t",))]
    assert not problems, "\n".join(problems)


ITS_OWN_PARENT = """INSERT INTO ducklake_column (column_id, begin_snapshot, end_snapshot, table_id,
    column_order, column_name, column_type, parent_column)
  VALUES (900, 3, 4, {t}, 900, 'gone', 'int32', 900)"""


@pytest.mark.parametrize(
    "sql",
    [
        ITS_OWN_PARENT,
        "UPDATE ducklake_snapshot SET snapshot_id = 9223372036854775807 WHERE snapshot_id = 9",
        "UPDATE ducklake_data_file SET path = NULL, file_size_bytes = NULL WHERE table_id = {t}",
        "UPDATE ducklake_data_file SET begin_snapshot = NULL WHERE table_id = {ended}",
        "UPDATE ducklake_delete_file SET path = NULL, format = NULL, file_size_bytes = NULL "
        "WHERE table_id = {t}",
        "UPDATE ducklake_file_partition_value SET partition_key_index = NULLIF("
        "partition_key_index, 0) * 9223372036854775807 WHERE table_id = {t}",
        "UPDATE ducklake_file_partition_value SET partition_key_index = -1 WHERE table_id = {t}",
        "UPDATE ducklake_sort_expression SET null_order = NULL",
    ],
)
def test_no_page_fails_over_a_row(broken, sql):
    damage = Damage(re.search(r"ducklake_\w+", sql)[0], sql, broken.filled_in(sql))
    assert not broken.problems(damage, ("t", "ended"))
