"""The preview of a table at a snapshot: some rows, the files that were left, and both sides."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from ..reading.table_facts import TableFacts
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

    namespace: str
    table: str
    snapshot: int
    choices: tuple[ColumnChoice, ...]
    conditions: tuple[Condition, ...]
    files: int
    """Of the snapshot, before the filter."""
    bytes: int
    inlined_rows: int
    """In the catalog's database, in no file."""
    answer: Answer
    limits: Limits

    @property
    def agree(self) -> bool | None:
        """Whether native DuckLake has the same rows; None: not known."""
        return self.answer.agree

    def json(self) -> dict[str, Any]:
        """The report with what follows from it."""
        return {**asdict(self), "agree": self.agree}


@dataclass(frozen=True, slots=True)
class Lines:
    """The lines of a form: column, operator and value of each."""

    columns: Sequence[str] = ()
    operators: Sequence[str] = ()
    values: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Preparation:
    """A question that is understood, before anything is read."""

    question: Question
    choices: tuple[ColumnChoice, ...]
    files: int
    inlined_rows: int

    def report(self, answer: Answer, limits: Limits) -> PreviewReport:
        """The report with an answer."""
        question = self.question
        return PreviewReport(
            question.namespace,
            question.table,
            question.snapshot,
            self.choices,
            question.conditions,
            self.files,
            question.bytes,
            self.inlined_rows,
            answer,
            limits,
        )


def prepare(facts: TableFacts, hidden: dict[str, str], lines: Lines) -> Preparation:
    """The question that a form asks.

    Args:
        facts: of the table at the snapshot.
        hidden: why clients do not see columns, by dotted name.

    Raises:
        BadRequest: the filter cannot be understood; with a sentence.
    """
    history = facts.history
    types = {column.name: column.type for column in facts.shown if not column.parents}
    return Preparation(
        Question(
            namespace=history.schema.schema_name,
            table=history.table.table_name,
            snapshot=history.snapshot_id,
            conditions=parse(lines.columns, lines.operators, lines.values, types, hidden),
            hidden=frozenset(hidden),
            bytes=sum(batch.bytes for batch in facts.batches),
        ),
        tuple(ColumnChoice(name, type_, operators_of(type_)) for name, type_ in types.items()),
        facts.files,
        facts.inlined_rows,
    )
