"""Names of tables, as options of the jobs."""

from dataclasses import dataclass

from polynya.errors import BadRequest
from polynya.namespaces import Namespace, dotted, parsed

from .errors import BadInput


@dataclass(frozen=True, slots=True)
class TableName:
    schema_name: str
    table_name: str
    parents: Namespace = ()
    """The names of the schemas that the schema is in, outermost first."""

    @property
    def namespace(self) -> Namespace:
        """All levels of the schema's name."""
        return (*self.parents, self.schema_name)

    def __str__(self) -> str:
        return dotted(*self.namespace, self.table_name)


def table_name(text: str) -> TableName:
    """Parse `t`, `s.t`, `a.b.t`; with quotes around names that have a dot: `"my.schema"."t"`.

    Raises:
        BadInput: the text is not a table name.
    """
    *levels, name = _levels(text)
    *parents, schema_name = levels or ["main"]
    return TableName(schema_name, name, tuple(parents))


def _levels(text: str) -> Namespace:
    try:
        names = parsed(text)
    except BadRequest:
        names = ()
    if not names or not all(names) or "\0" in text:
        raise BadInput(
            f'{text or "an empty text"} is not a table name: write schema.table, and "a.b"."c" if '
            "a name contains a dot or a quote"
        )
    return names
