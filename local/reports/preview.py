"""The preview of a table at a snapshot: some rows, the files that were left, and both sides."""

from collections.abc import Sequence
from dataclasses import dataclass

from polynya.namespaces import parsed

from ..reading.table_facts import table_facts
from ..table_report import hidden_columns
from ..tables.opened import TableAt, TableHead
from .answers import Answer, Limits, Question
from .filters import Condition, operators_of, parse


@dataclass(frozen=True, slots=True)
class ColumnChoice:
    """A column that a filter may have."""

    name: str
    type: str
    """DuckLake's."""
    operators: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PreviewReport:
    """The preview of a table."""

    head: TableHead
    choices: tuple[ColumnChoice, ...]
    conditions: tuple[Condition, ...]
    files: int
    """Of the snapshot, before the filter."""
    bytes: int
    inlined_rows: int
    """In the catalog's database, in no file."""
    is_mirror: bool
    """Native DuckLake read the mirror of a file's catalog."""
    answer: Answer
    agree: bool | None
    """Whether native DuckLake has the same rows; None: not known."""
    limits: Limits


@dataclass(frozen=True, slots=True)
class NotServed:
    """A table that Iceberg clients do not get."""

    head: TableHead


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a form: column, operator and value of each."""

    columns: Sequence[str] = ()
    operators: Sequence[str] = ()
    values: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Preparation:
    """A question that is understood, before anything is read."""

    head: TableHead
    question: Question
    choices: tuple[ColumnChoice, ...]
    files: int
    inlined_rows: int

    def report(self, answer: Answer, limits: Limits, *, is_mirror: bool) -> PreviewReport:
        """The report with an answer."""
        return PreviewReport(
            self.head,
            self.choices,
            self.question.conditions,
            self.files,
            self.question.bytes,
            self.inlined_rows,
            is_mirror,
            answer,
            answer.agree,
            limits,
        )


def preparation(table: TableAt, lines: Lines) -> Preparation | None:
    """The question that a form asks of a table at a snapshot; None: clients do not get the table.

    Raises:
        BadRequest: the filter cannot be understood; with a sentence.
    """
    if table.opened is None:
        return None
    facts, hidden = table_facts(table.opened), hidden_columns(table.opened)
    types = {column.name: column.type for column in facts.shown if not column.parents}
    question = Question(
        namespace=parsed(table.head.namespace),
        table=table.head.name,
        snapshot=table.at,
        conditions=parse(lines.columns, lines.operators, lines.values, types, hidden),
        hidden=frozenset(hidden),
        bytes=sum(batch.bytes for batch in facts.batches),
    )
    choices = (ColumnChoice(name, type_, operators_of(type_)) for name, type_ in types.items())
    return Preparation(table.head, question, tuple(choices), facts.files, facts.inlined_rows)
