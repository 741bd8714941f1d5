"""The rows of one table that were written since an earlier transaction read it.

A sum over a million rows takes half a second, and most commits add a few rows. PostgreSQL records
for each row which transaction wrote it. New rows are those of all transactions that may still have
been running when the earlier one began, or began later. Every other row that is visible now was
visible
to the earlier one: its writer had committed, and nobody had deleted it. So if there are as many
other rows as the earlier one counted, they are the same rows, and only the new ones are read.
An update leaves a new row and removes the old one, so the counts differ.
https://www.postgresql.org/docs/current/ddl-system-columns.html
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from ..connection.catalog_connection import Statement
from ..faults import MAX_ID

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Earlier(Generic[Result]):
    """The result of an earlier transaction, and the transactions that may have written since."""

    result: Result
    transactions: Sequence[str]
    """As `CatalogState.transactions_since` gives them."""


IS_NEW = "{0}.xmin = ANY(CAST(:transactions AS xid[]))"

# One test for each row, because the scan takes as long as its tests. -1 is an id that is missing.
NEW_ROWS = f"""
SELECT count(*), min(coalesce(r.data_file_id, -1)) FILTER (WHERE {IS_NEW.format("r")})
FROM {{table}} AS r WHERE r.table_id = :table_id{{and_counted}}"""

# The id, because an index finds it: new files mostly have the highest ids.
AND_NEW = f"""
  AND {{0}}.data_file_id >= :first_new AND {IS_NEW}"""
"""The rows of a `NewRows`, of a relation that has them."""


@dataclass(frozen=True, slots=True)
class NewRows:
    """How many rows of files one table has, and which of them are new."""

    rows: int
    first_id: int | None
    """The lowest data_file_id of the new rows; None: there is none."""
    transactions: Sequence[str]

    def only_add(self, rows: int, new: int) -> bool:
        """Whether nothing but the new rows has changed since the earlier transaction.

        Args:
            rows: how many rows it counted.
            new: how many are new.
        """
        is_known = self.first_id is None or self.first_id >= 0
        return is_known and self.rows - new == rows

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of `AND_NEW`."""
        first_id = MAX_ID + 1 if self.first_id is None else self.first_id
        return {"transactions": self.transactions, "first_new": first_id}


def new_rows(
    table: str, table_id: int, transactions: Sequence[str], and_counted: str = ""
) -> Statement[NewRows]:
    """The rows of one table in a catalog table that some transactions have written.

    Args:
        table: a catalog table with the columns table_id and data_file_id.
        and_counted: SQL that excludes rows `r`, as the earlier transaction did.
    """
    return Statement(
        NEW_ROWS.format(table=table, and_counted=and_counted),
        {"table_id": table_id, "transactions": transactions},
        lambda rows: NewRows(rows[0][0], rows[0][1], transactions),
    )
