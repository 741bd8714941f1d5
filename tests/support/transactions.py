"""A question to a database as one function, as the operations of the catalog ask theirs."""

from collections.abc import Callable
from typing import Any

from polynya.ducklake.connection.database import Database, retried


@retried
def read(database: Database, question: Callable[[Any], Any]) -> Any:
    """The result of a function of a connection, within one transaction."""
    with database.transaction() as con:
        return question(con)
