"""Names of tables, as options of the jobs."""

from dataclasses import dataclass

from .errors import BadInput


@dataclass(frozen=True, slots=True)
class TableName:
    schema_name: str
    table_name: str

    def __str__(self) -> str:
        return f"{self.schema_name}.{self.table_name}"


def table_name(text: str) -> TableName:
    """Parse `t`, `s.t`, or with quotes around names that contain a dot: `"my.schema"."t"`.

    Raises:
        BadInput: the text is not a table name.
    """
    parts, rest = [], text
    while rest:
        if rest.startswith('"'):
            part, rest = _quoted_part(rest, text)
        else:
            part, dot, after = rest.partition(".")
            rest = dot + after
        parts.append(part)
        if rest and not rest.startswith("."):
            raise BadInput(f"{text} is not a table name")
        if rest == ".":
            parts.append("")
        rest = rest[1:]
    if not 1 <= len(parts) <= 2 or not all(parts) or "\0" in text:
        raise BadInput(
            f'{text or "an empty text"} is not a table name: write schema.table, and "a.b"."c" if '
            "a name contains a dot"
        )
    return TableName(*(["main", *parts][-2:]))


def _quoted_part(rest: str, text: str) -> tuple[str, str]:
    """The name that a text begins with, without its quotes, and what follows it."""
    end = 1
    while (end := rest.find('"', end)) >= 0 and rest[end + 1 : end + 2] == '"':
        end += 2
    if end < 0:
        raise BadInput(f"the table name {text} has a quote that is not closed")
    return rest[1:end].replace('""', '"'), rest[end + 1 :]
