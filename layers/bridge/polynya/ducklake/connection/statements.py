"""Statements as values: SQL, parameters, and what the rows mean.

A statement runs alone, or with others in one round trip to the database.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pg8000.native import Connection

Result = TypeVar("Result")
Row = TypeVar("Row")

Rows = list[list[Any]]


@dataclass(frozen=True, slots=True)
class Statement(Generic[Result]):
    """One SELECT that has not been sent yet."""

    sql: str
    parameters: Mapping[str, Any]
    result: Callable[[Rows], Result]
    """Makes the result of the rows that the database returns."""

    def run(self, con: Connection) -> Result:
        """Send the statement alone.

        Raises:
            ConnectionLost: the connection is gone.
            DatabaseError: the database refuses the statement.
        """
        return self.result(con.run(self.sql, **self.parameters) if self.sql else [])


def select(row: Callable[..., Row], sql: str, **parameters: Any) -> Statement[list[Row]]:
    """A statement whose result is a list with one record for each row.

    Args:
        row: takes the columns of a row as positional arguments: mostly a dataclass.
    """
    return Statement(sql, parameters, lambda rows: [row(*columns) for columns in rows])


def known(result: Result) -> Statement[Result]:
    """A statement that is never sent: its result is known without the database."""
    return Statement("", {}, lambda rows: result)


def run_batched(con: Connection, *statements: Statement[Any]) -> list[Any]:
    """The results of several statements, sent in one round trip, in their order.

    Rows come back as JSON, so a statement may select numbers, texts, booleans and arrays of these.

    Raises:
        ValueError: two statements have different values for a parameter of the same name.
        ConnectionLost, DatabaseError: as `Statement.run`.
    """
    parameters: dict[str, Any] = {}
    selects = []
    for number, statement in enumerate(statements):
        if not statement.sql:
            continue
        selects.append(
            f"SELECT {number}, (SELECT json_agg(row_to_json(q))::text FROM ({statement.sql}) AS q)"
        )
        for name, value in statement.parameters.items():
            if parameters.setdefault(name, value) != value:
                raise ValueError(f"two statements have different values for :{name}")
    found = dict(con.run("\nUNION ALL ".join(selects), **parameters)) if selects else {}
    return [
        statement.result(_rows(found.get(number))) for number, statement in enumerate(statements)
    ]


def _rows(text: str | None) -> Rows:
    # Rows are objects, and a key may occur twice: the values in their order are the row.
    return json.loads(text, object_pairs_hook=lambda pairs: [v for _, v in pairs]) if text else []
