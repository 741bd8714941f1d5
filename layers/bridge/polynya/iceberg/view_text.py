"""The text of views, as DuckDB's parser reads it: native DuckLake parses it whenever it is used."""

import re
from typing import TYPE_CHECKING

from ..errors import BadRequest
from .parquet.sandbox import Unreadable, sandbox

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

CATALOG = "{DUCKLAKE_CATALOG}"
"""What DuckLake writes for the name under which the lake is attached."""

MOST_CHARACTERS = 100_000
QUOTED = re.compile(r'"(?:[^"]|"")*"')


def view_text(sql: str) -> str:
    """The text of a view, without semicolons at its end.

    Raises:
        BadRequest: it is not one SELECT statement of DuckDB without parameters.
    """
    text = sql.strip().rstrip("; \t\r\n")
    if "\0" in text or len(text) > MOST_CHARACTERS:
        raise BadRequest(f"the SQL of a view has a NUL, or more than {MOST_CHARACTERS} characters")
    import duckdb

    with sandbox() as box:
        try:
            statements = box.con.extract_statements(text.replace(CATALOG, "lake"))
        except duckdb.Error as error:
            reason = str(error).partition("\n")[0]
            raise BadRequest(f"DuckDB cannot parse the SQL of the view: {reason}") from None
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise BadRequest("the SQL of a view must be one SELECT statement of DuckDB")
        if statements[0].named_parameters:
            raise BadRequest("the SQL of a view must not have parameters")
    return text


def names_are_qualified(text: str) -> bool:
    """Whether each table in the text of a view has its schema with it.

    DuckLake looks for the others in the schema of the view, whatever Iceberg's default-namespace.
    """
    try:
        with sandbox() as box:
            return _are_qualified(box.con, text.replace(CATALOG, "lake"))
    except Unreadable:
        return False


def _are_qualified(con: "DuckDBPyConnection", text: str) -> bool:
    import duckdb

    try:
        names = con.get_table_names(text, qualified=True)
    except duckdb.Error:
        return False
    return all("." in QUOTED.sub("", name) for name in names)
