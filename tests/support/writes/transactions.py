"""Runs a query as one function in a transaction, like the operations of the catalog."""

from collections.abc import Callable
from typing import Any

from polynya.ducklake.connection.database import Database, retried


@retried
def read(database: Database, question: Callable[[Any], Any]) -> Any:
    """The result of a function of a connection, called in one transaction."""
    with database.transaction() as con:
        return question(con)
