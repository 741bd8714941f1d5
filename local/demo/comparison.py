"""Compares the rows of each client with those of DuckLake."""

import time
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from ..clients import Client
from ..clients.canonical import Canonical, Columns, difference, from_arrow
from ..clients.native import Native
from .environment import verdict


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A table at a snapshot, or at the newest if there is no id."""

    namespace: str
    table: str
    snapshot_id: int | None
    event: str
    """The last change of the table, as the commit message says it."""

    @property
    def name(self) -> str:
        """`namespace.table`."""
        return f"{self.namespace}.{self.table}"

    @property
    def when(self) -> str:
        """The snapshot id, or `now`."""
        return "now" if self.snapshot_id is None else str(self.snapshot_id)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a client read."""

    row_count: int | None
    """None: the client failed."""
    report: tuple[str, ...]
    """The differences from DuckLake's rows, or the client's error; empty: the same rows."""


@dataclass(slots=True)
class Truth:
    """DuckLake's rows of a table version, and the answers of the clients by name."""

    version: TableVersion
    rows: Canonical
    columns: Columns
    answers: dict[str, Answer] = field(default_factory=dict)


class Comparison:
    """Table versions in the order of their addition, and the seconds that each client took."""

    def __init__(self, native: Native) -> None:
        self._native = native
        self.truths: list[Truth] = []
        self.seconds: dict[str, float] = {}

    def add(self, version: TableVersion) -> Truth:
        """Read DuckLake's rows."""
        where = (version.namespace, version.table, version.snapshot_id)
        truth = Truth(version, self._native.canonical(*where), self._native.columns(*where))
        self.truths.append(truth)
        return truth

    def ask(self, client: Client, truth: Truth) -> None:
        """Let a client read the same, and add its answer; its errors are answers, too."""
        version, start = truth.version, time.monotonic()
        self.seconds.setdefault(client.name, 0)
        try:
            rows = client.rows(version.namespace, version.table, version.snapshot_id)
        except Exception as error:
            words = " ".join(f"{type(error).__name__}: {error}".split())
            truth.answers[client.name] = Answer(None, (words[:600],))
        else:
            report = tuple(difference(truth.rows, from_arrow(rows, truth.columns)))
            truth.answers[client.name] = Answer(rows.num_rows, report)
        self.seconds[client.name] += time.monotonic() - start

    @property
    def reads(self) -> int:
        """How many answers there are."""
        return sum(len(truth.answers) for truth in self.truths)

    def disagreements(self) -> list[str]:
        """One line for each difference."""
        return [
            f"{name}, {truth.version.name} at {truth.version.when}: {line}"
            for truth in self.truths
            for name, answer in truth.answers.items()
            for line in answer.report
        ]


def show(out: Console, title: str, comparison: Comparison, clients: list[str]) -> None:
    """Print a comparison under a title: a row for each table version, a column for each client."""
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    grid.add_column("table", no_wrap=True)
    grid.add_column("snapshot", no_wrap=True, justify="right")
    grid.add_column("last change")  # the only column that may be shortened
    for name in ("DuckLake", *clients):
        grid.add_column(name, no_wrap=True, justify="right")
    for truth in comparison.truths:
        version = truth.version
        event = Text(version.event, no_wrap=True, overflow="ellipsis")
        native = f"{truth.rows.rows.total():,}"
        answers = [cell(truth.answers.get(name)) for name in clients]
        grid.add_row(version.name, version.when, event, native, *answers)
    out.print(f"\n{title}\n", style="bold")
    out.print(grid)


def cell(answer: Answer | None) -> Text:
    """A client's row count and verdict; `-`: it did not read."""
    if answer is None:
        return Text("-")
    count = "no rows" if answer.row_count is None else f"{answer.row_count:,}"
    same = Text("DIFFERS", "bold red") if answer.report else Text("same", "green")
    return Text(f"{count} ") + same


def conclude(out: Console, *comparisons: Comparison) -> int:
    """Print whether all rows are the same, or the differences; gives the exit code."""
    wrong = [line for comparison in comparisons for line in comparison.disagreements()]
    reads = sum(comparison.reads for comparison in comparisons)
    for line in wrong:
        out.print(f"DIFFERS: {line}", style="red", soft_wrap=True)
    return verdict(
        out,
        not wrong,
        f"Each of {reads} reads gave exactly the rows that DuckLake has.",
        "Not every client read the rows that DuckLake has.",
    )
