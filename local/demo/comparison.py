"""What DuckLake says, and what each client saw of it, side by side."""

import time
from dataclasses import dataclass, field

from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from ..clients import Client
from ..clients.canonical import Canonical, Columns, difference, from_arrow
from ..clients.native import Native


@dataclass(frozen=True, slots=True)
class Moment:
    """A table as it is now, or as it was at a snapshot; `event` is what had just happened to it."""

    namespace: str
    table: str
    snapshot_id: int | None
    event: str

    @property
    def name(self) -> str:
        return f"{self.namespace}.{self.table}"

    @property
    def at(self) -> str:
        return "now" if self.snapshot_id is None else str(self.snapshot_id)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a client saw; `report` is empty when these were DuckLake's rows, each as often."""

    row_count: int | None  # None: it gave no rows
    report: tuple[str, ...]


@dataclass(slots=True)
class Truth:
    """What DuckLake says of one moment, and what the clients answered."""

    moment: Moment
    rows: Canonical
    columns: Columns
    answers: dict[str, Answer] = field(default_factory=dict)


class Comparison:
    """Moments in the order in which they are added, and the clients that were asked."""

    def __init__(self, native: Native) -> None:
        self._native = native
        self.truths: list[Truth] = []
        self.seconds: dict[str, float] = {}

    def add(self, moment: Moment) -> Truth:
        """Ask DuckLake."""
        where = (moment.namespace, moment.table, moment.snapshot_id)
        truth = Truth(moment, self._native.canonical(*where), self._native.columns(*where))
        self.truths.append(truth)
        return truth

    def ask(self, client: Client, truth: Truth) -> None:
        """Let `client` read the same and compare."""
        moment, start = truth.moment, time.monotonic()
        self.seconds.setdefault(client.name, 0)
        try:
            rows = client.rows(moment.namespace, moment.table, moment.snapshot_id)
        except Exception as error:  # whatever a client dies of, it has not given the rows
            words = " ".join(f"{type(error).__name__}: {error}".split())
            truth.answers[client.name] = Answer(None, (words[:600],))
        else:
            seen = from_arrow(rows, truth.columns)
            report = tuple(difference(truth.rows, seen))
            truth.answers[client.name] = Answer(rows.num_rows, report)
        self.seconds[client.name] += time.monotonic() - start

    @property
    def reads(self) -> int:
        return sum(len(truth.answers) for truth in self.truths)

    def disagreements(self) -> list[str]:
        """A sentence for each difference."""
        return [
            f"{name}, {truth.moment.name} at {truth.moment.at}: {line}"
            for truth in self.truths
            for name, answer in truth.answers.items()
            for line in answer.report
        ]


def show(out: Console, title: str, comparison: Comparison, clients: list[str]) -> None:
    out.print(f"\n{title}\n", style="bold")
    out.print(grid(comparison, clients))


def grid(comparison: Comparison, clients: list[str]) -> Grid:
    """The comparison as a table: a line for each moment, a column for each client."""
    grid = Grid(box=None, pad_edge=False, header_style="bold")
    grid.add_column("table", no_wrap=True)
    grid.add_column("snapshot", no_wrap=True, justify="right")
    grid.add_column("what had happened")  # the only one that becomes narrower when it must
    for name in ("DuckLake", *clients):
        grid.add_column(name, no_wrap=True, justify="right")
    for truth in comparison.truths:
        moment = truth.moment
        event = Text(moment.event, no_wrap=True, overflow="ellipsis")
        native = f"{truth.rows.rows.total():,}"
        answers = [cell(truth.answers.get(name)) for name in clients]
        grid.add_row(moment.name, moment.at, event, native, *answers)
    return grid


def cell(answer: Answer | None) -> Text:
    if answer is None:
        return Text("-")
    count = "no rows" if answer.row_count is None else f"{answer.row_count:,}"
    verdict = Text("DIFFERS", "bold red") if answer.report else Text("same", "green")
    return Text(f"{count} ") + verdict


def verdict(out: Console, *comparisons: Comparison) -> int:
    """Say whether all are the same, or what is not; gives the exit code."""
    wrong = [line for comparison in comparisons for line in comparison.disagreements()]
    reads = sum(comparison.reads for comparison in comparisons)
    for line in wrong:
        out.print(f"DIFFERS: {line}", style="red", soft_wrap=True)
    if wrong:
        out.print("Not every client read the rows that DuckLake has.", style="bold red")
        return 1
    out.print(f"Each of {reads} reads gave exactly the rows that DuckLake has.", style="bold green")
    return 0
