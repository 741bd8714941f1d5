"""What `polynya doctor` reports: findings about the lake, and a result for each table."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from polynya.runtime.namespaces import dotted

from .advice import Advice
from .client_faults import Fault

ERROR, WARNING, NOTE = "error", "warning", "note"

WRONG_ROWS, UNREADABLE, HIDDEN = "wrong rows", "unreadable", "hidden"
SLOW, INFORMATION = "slow", "information"
CONSEQUENCES = {
    WRONG_ROWS: "Some clients read wrong rows",
    UNREADABLE: "Not everything can be read",
    HIDDEN: "All rows are right, but not everything is shown",
    SLOW: "All is well",
    INFORMATION: "All is well",
}
"""What a finding means for readers, the worst first, and the verdict on a lake with such findings.

The consequence of a finding decides its colour and its place. Its level decides the exit code of
`doctor`, because a client's own fault is not an error of the lake.
"""


@dataclass(frozen=True, slots=True)
class TableName:
    """The name of a table that a finding is about."""

    namespace: str
    """All levels, as people write them."""
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}.{dotted(self.name)}"


@dataclass(frozen=True, slots=True)
class Finding:
    """A fact that the user should know."""

    level: str
    """`error`: wrong, or not served. `warning`: so for some clients, or in future. `note`: for
    information."""
    about: str
    """The name of a table, or `catalog`, `lake`, `grants`, `index`, `replication`, `settings`,
    `row counts`."""
    message: str
    remedy: str = ""
    """What to do about it: SQL, a setting or a page of the documentation."""
    consequence: str = INFORMATION
    """One of `CONSEQUENCES`."""
    table: TableName | None = None
    """The table that it is about; None: the lake."""


@dataclass(frozen=True, slots=True)
class RowCount:
    """The rows of a table at one snapshot, according to DuckLake and to Iceberg clients."""

    snapshot_id: int
    ducklake: int | None
    """None: they cannot be counted."""
    iceberg: int

    @property
    def is_same(self) -> bool:
        return self.ducklake == self.iceberg

    @property
    def is_known(self) -> bool:
        return self.ducklake is not None


@dataclass(slots=True)
class TableResult:
    """What the checks of one table found."""

    name: str
    """`namespace.table`."""
    table_id: int
    table: TableName
    status: str = "fails"
    """`served`, `refused`, or `fails`: it cannot be read, or Polynya has a fault."""
    reason: str = ""
    """Why it is not served."""
    hidden_columns: dict[str, str] = field(default_factory=dict)
    """The reason by dotted name."""
    gained_columns: list[str] = field(default_factory=list)
    """The hidden columns that the warehouse `lake+v3` shows."""
    lost_clients: list[str] = field(default_factory=list)
    """The clients that read all of the table, but could not if it showed them."""
    default_columns: dict[str, str] = field(default_factory=dict)
    """Columns with a default that files lack, and what clients read there."""
    client_faults: list[Fault] = field(default_factory=list)
    """What clients are known to read wrongly, or not at all."""
    snapshots: int = 0
    """How many are listed."""
    left_out: dict[str, int] = field(default_factory=dict)
    """How many snapshots are not listed, by the reason."""
    counts: list[RowCount] = field(default_factory=list)
    """Past snapshots, then the newest."""
    advice: list[Advice] = field(default_factory=list)
    """The advice that makes it faster or smaller."""


@dataclass(slots=True)
class Report:
    """The result of `polynya doctor`."""

    lake: dict[str, Any] = field(default_factory=dict)
    counted_by: str = ""
    """The program that counts DuckLake's rows."""
    tables: list[TableResult] = field(default_factory=list)
    in_all: int = 0
    """How many tables are to be checked."""
    findings: list[Finding] = field(default_factory=list)
    advice: list[Advice] = field(default_factory=list)
    """The advice for the lake as a whole."""

    def add(
        self,
        level: str,
        about: str | TableName,
        message: str,
        remedy: str = "",
        consequence: str = "",
    ) -> None:
        """Add a finding, unless it was added before.

        Args:
            consequence: one of `CONSEQUENCES`; empty: `UNREADABLE` for an error, `INFORMATION` for
                all else.
        """
        finding = Finding(
            level,
            str(about),
            message,
            remedy,
            consequence or (UNREADABLE if level == ERROR else INFORMATION),
            about if isinstance(about, TableName) else None,
        )
        if finding not in self.findings:  # a table is read again after a lost connection
            self.findings.append(finding)

    @property
    def is_well(self) -> bool:
        """Whether there is no error."""
        return all(finding.level != ERROR for finding in self.findings)

    @property
    def worst(self) -> str:
        """The worst consequence of the findings."""
        return worst(finding.consequence for finding in self.findings)

    @property
    def summary(self) -> str:
        """One line with the verdict and the numbers of tables, row counts and findings."""
        levels = Counter(finding.level for finding in self.findings)
        served = sum(table.status == "served" for table in self.tables)
        counts = [count for table in self.tables for count in table.counts]
        same = sum(count.is_same for count in counts)
        parts = []
        if self.tables:
            parts.append(f"{served} of {number_of(len(self.tables), 'table')} served")
            parts.append(f"{same} of {number_of(len(counts), 'row count')} the same")
            if unknown := sum(not count.is_known for count in counts):
                parts.append(f"{unknown} not known")
        parts += [number_of(levels[name], name) for name in (ERROR, WARNING, NOTE) if levels[name]]
        verdict = CONSEQUENCES[self.worst] if self.is_well else "Not all is well"
        return f"{verdict}: {', '.join(parts) or 'no findings'}."


def worst(consequences: Iterable[str]) -> str:
    """The worst of these consequences; INFORMATION if there are none."""
    return min(consequences, key=list(CONSEQUENCES).index, default=INFORMATION)


def number_of(number: int, noun: str) -> str:
    """A number with its noun: `1 table`, `2 tables`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
