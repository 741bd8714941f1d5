"""Names of namespaces: of a DuckLake schema, and of the schemas that it is in.

In the code a name is always a tuple: `("a.b",)` and `("a", "b")` are two namespaces, which one text
could confuse. It becomes a text only at the edges: for people in DuckLake's form
(https://ducklake.select/docs/stable/duckdb/advanced_features/nested_schemas), in paths of the REST
catalog with its separator.
"""

import re
from urllib.parse import quote

from .errors import BadRequest

Namespace = tuple[str, ...]
"""The names of all levels, outermost first; catalogs before DuckLake 1.1 have one level."""

SEPARATOR = "\x1f"
"""Separates levels in paths and queries. Clients use it unless getConfig names another one
(`namespace-separator`), and older ones know no other."""

QUOTED = re.compile('"(?:[^"]|"")*"')
UNQUOTED = re.compile('[^."]+')


def dotted(*names: str) -> str:
    """Names of several levels as people write them: `sales.europe`, `"a.b".c`.

    A level is in quotes only if it has a dot or a quote, or is empty.
    """
    return ".".join(_level(name) for name in names)


def _level(name: str) -> str:
    if UNQUOTED.fullmatch(name):
        return name
    return '"' + name.replace('"', '""') + '"'


def parsed(text: str) -> Namespace:
    """The names in a text that people write; `dotted` in reverse.

    Raises:
        BadRequest: it is no such text.
    """
    names, position = [], 0
    while level := QUOTED.match(text, position) or UNQUOTED.match(text, position):
        written, position = level[0], level.end()
        names.append(written[1:-1].replace('""', '"') if written[0] == '"' else written)
        if position == len(text):
            return tuple(names)
        if text[position] != ".":
            break
        position += 1
    raise BadRequest(
        f"{text!r} is not a valid name: write the levels with dots between them, and a level that "
        'has a dot or a quote in it in quotes, as in sales."a.b"'
    )


def parse_path(text: str) -> Namespace:
    """The namespace that a path or a query of the REST catalog names."""
    return tuple(text.split(SEPARATOR))


def path_segment(namespace: Namespace) -> str:
    """A namespace as a segment of a path of the REST catalog."""
    return quote(SEPARATOR.join(namespace), safe="")
