"""Operations of a mixed history, as data: they can be printed, saved, and done again."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

NATIVE = ("lake", "other")
"""The names under which two native writers with different settings have attached the lake."""

PYICEBERG, DUCKDB, SPARK = "PyIceberg", "DuckDB", "Spark"

Step = tuple[str, ...]
"""An action of PyIceberg and its arguments: texts only."""


@dataclass(frozen=True)
class Operation:
    """What one writer does.

    In SQL `{t}` is the table.
    """

    by: str
    """One of NATIVE, or an Iceberg client."""
    kind: str
    twin: tuple[str, ...] = ()
    """What the twin in memory does."""
    sql: tuple[str, ...] = ()
    """What the writer does, if it is not the same."""
    steps: tuple[Step, ...] = ()
    """What PyIceberg does, several steps in one transaction."""
    between: tuple["Operation", ...] = ()
    """Native operations after the client has loaded the table, and before it commits."""

    @property
    def statements(self) -> tuple[str, ...]:
        """The SQL of a writer."""
        return self.sql or self.twin

    @property
    def is_native(self) -> bool:
        """Whether no Iceberg client does it."""
        return self.by in NATIVE

    @property
    def merges(self) -> bool:
        """Whether DuckLake merges files, which gives rows that two UPDATEs wrote new row ids."""
        done = (self, *self.between)
        return any("merge_adjacent" in text for one in done for text in one.sql)

    def natively(self, writer: str) -> tuple["Operation", ...]:
        """The same, done by native DuckLake alone; `writer`, one of NATIVE, is the client."""
        if self.is_native:
            return (self,)
        return (*self.between, Operation(writer, f"{self.by} {self.kind}", self.twin))


def shown(operations: Iterable[Operation]) -> str:
    """A line for each statement."""
    lines = []
    for number, one in enumerate(operations):
        for inner in one.between:
            lines += [f"{number} after {one.by}'s load, {inner.by}: {s}" for s in inner.statements]
        done = [" ".join(step) for step in one.steps] or one.statements
        lines += [f"{number} {one.by} {one.kind}: {text}" for text in done]
    return "\n".join(lines)


def save(path: Path, operations: Iterable[Operation]) -> None:
    """Write operations to a file."""
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(json.dumps([asdict(one) for one in operations], indent=1, ensure_ascii=False))


def load(path: Path) -> list[Operation]:
    """Read operations from a file."""
    return [_operation(one) for one in json.loads(path.read_text())]


def _operation(found: dict) -> Operation:
    return Operation(
        found["by"],
        found["kind"],
        tuple(found["twin"]),
        tuple(found["sql"]),
        tuple(tuple(step) for step in found["steps"]),
        tuple(_operation(one) for one in found["between"]),
    )
