"""The text of views, as DuckDB's parser reads it: native DuckLake runs it for whoever queries them.

So it may read tables and compute, and nothing else: no file, no address, no setting or secret of
the reader's DuckDB. What is allowed is listed; the parser's tree of a query has to consist of that.
"""

import json
import re
from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any

from ..errors import BadRequest
from .parquet.sandbox import Unreadable, sandbox
from .view_functions import FUNCTIONS, TABLE_FUNCTIONS

if TYPE_CHECKING:
    from duckdb import DuckDBPyConnection

Json = dict[str, Any]

CATALOG = "{DUCKLAKE_CATALOG}"
"""What DuckLake writes for the name under which the lake is attached."""

MOST_CHARACTERS = 100_000
QUOTED = re.compile(r'"(?:[^"]|"")*"')

TREE = "SELECT json_serialize_sql(CAST(? AS VARCHAR))"

EXPRESSIONS = frozenset(
    {
        *("BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION"),
        *("CONSTANT", "DEFAULT", "FUNCTION", "LAMBDA", "LAMBDA_REF", "OPERATOR"),
        *("POSITIONAL_REFERENCE", "STAR", "SUBQUERY", "TYPE", "WINDOW"),
    }
)
"""The `class` of a node."""

NODES = frozenset(
    {
        *("SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"),
        *("BASE_TABLE", "SUBQUERY", "JOIN", "TABLE_FUNCTION", "EXPRESSION_LIST", "EMPTY"),
        *("PIVOT", "ORDER_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER"),
        *("DISTINCT_MODIFIER", "ORDER_DEFAULT", "ASCENDING", "DESCENDING"),
    }
)
"""The `type` of a node without a class: queries, what is after FROM, and modifiers."""

TYPE_INFO = "_TYPE_INFO"
"""The end of the `type` of what is said about a column type."""

BUILT_IN_SCHEMAS = {("", ""), ("", "main"), ("system", "main"), ("", "pg_catalog")}

INTERNAL_VIEWS = "SELECT lower(view_name) FROM duckdb_views() WHERE internal"

SYSTEM_SCHEMAS = frozenset({"information_schema", "pg_catalog"})
SYSTEM_CATALOGS = frozenset({"system", "temp"})

FILE = re.compile(
    r"[/\\:*?\[]|\.(csv|tsv|txt|parquet|json|jsonl|ndjson|xlsx|avro|arrow|arrows|ipc|feather|orc|db"
    r"|duckdb|ddb|sqlite|sqlite3|ducklake|shp|gpkg|fgb|geojson|kml|vortex|lance|gz|zst|bz2|xz)(\.|$)"
)
"""Names that DuckDB could read as files if there is no such table, also `FROM orders.csv`."""


def view_text(sql: str) -> str:
    """The text of a view, without semicolons at its end.

    Raises:
        BadRequest: it is not one query of DuckDB without parameters, or one that reads something
            else than tables.
    """
    text = sql.strip().rstrip("; \t\r\n")
    if "\0" in text or len(text) > MOST_CHARACTERS:
        raise BadRequest(f"the SQL of a view has a NUL, or more than {MOST_CHARACTERS} characters")
    import duckdb

    with sandbox() as box:
        named = text.replace(CATALOG, "lake")
        try:
            statements = box.con.extract_statements(named)
        except duckdb.Error as error:
            reason = str(error).partition("\n")[0]
            raise BadRequest(f"DuckDB cannot parse the SQL of the view: {reason}") from None
        if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
            raise BadRequest("the SQL of a view must be one query of DuckDB")
        if statements[0].named_parameters:
            raise BadRequest("the SQL of a view must not have parameters")
        _check_tree(box.con, named)
    return text


def _check_tree(con: "DuckDBPyConnection", text: str) -> None:
    """Refuse a query that could read something else than tables.

    Raises:
        BadRequest: the message says what it reads.
    """
    [(tree,)] = con.execute(TREE, [text]).fetchall()
    try:
        found: Json = json.loads(tree)
    except RecursionError:
        raise BadRequest("the SQL of the view is nested too deeply") from None
    if found["error"]:
        raise BadRequest("the SQL of a view must be one query that DuckDB can write down again")
    internal_views = {name for (name,) in con.execute(INTERNAL_VIEWS).fetchall()}
    for node in _nodes(found["statements"]):
        kind = node.get("class", node["type"])
        if kind == "BASE_TABLE":
            _check_table(node, internal_views)
        elif kind == "TABLE_FUNCTION":
            which = f"only {', '.join(sorted(TABLE_FUNCTIONS))}"
            _check_function(node["function"], "table function", TABLE_FUNCTIONS, which)
        elif kind in {"FUNCTION", "WINDOW"}:
            which = "only functions of DuckDB that compute"
            _check_function(node, "function", FUNCTIONS, which)


def _nodes(tree: Any) -> Iterator[Json]:
    """Every node of a tree that has a class or a type.

    Raises:
        BadRequest: a node is of another kind than those that are allowed.
    """
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, list):
            waiting += node
        elif isinstance(node, dict):
            kind, type_ = node.get("class"), node.get("type")
            if kind or isinstance(type_, str):
                is_allowed = kind in EXPRESSIONS if kind else _is_allowed(str(type_))
                if not is_allowed:
                    raise BadRequest(
                        f"the SQL of a view must not have {kind or type_} in it: write a SELECT "
                        "from tables"
                    )
                yield node
            if kind != "CONSTANT":
                waiting += node.values()


def _is_allowed(type_: str) -> bool:
    return type_ in NODES or type_.endswith(TYPE_INFO)


def _check_table(node: Json, internal_views: set[str]) -> None:
    names = [node["catalog_name"], node["schema_name"], node["table_name"]]
    catalog, schema, table = (name.casefold() for name in names)
    full_name = ".".join(filter(None, names))
    is_internal = table in internal_views and schema in {"", "main"}
    if catalog in SYSTEM_CATALOGS or schema in SYSTEM_SCHEMAS or is_internal:
        raise BadRequest(f"the SQL of a view must not read {full_name}, which is no table")
    if FILE.search(full_name.casefold()) or (not schema and "." in table):
        raise BadRequest(
            f"the SQL of a view must not read {full_name}, which DuckDB could take for a file: "
            "write the schema and the table, each without such characters"
        )


def _check_function(node: Json, kind: str, allowed: Collection[str], which: str) -> None:
    name = _function_name(node)
    if name not in allowed:
        raise BadRequest(
            f"the SQL of a view must not call the {kind} {name}, which whoever queries the view "
            f"would run: {which} are allowed"
        )


def _function_name(node: Json) -> str:
    """The name of a function of DuckDB in lower case; with its schema, if that is another one."""
    names = [str(node[key]).casefold() for key in ("catalog", "schema", "function_name")]
    is_built_in = (names[0], names[1]) in BUILT_IN_SCHEMAS
    return names[2] if is_built_in else ".".join(filter(None, names))


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
        # DuckDB 2.0 has aborted the sandbox's transaction.
        raise Unreadable("DuckDB cannot bind the text of the view") from None
    return all("." in QUOTED.sub("", name) for name in names)
