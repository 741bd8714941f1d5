"""Progress of commands and jobs on stderr.

On a terminal, a command shows a spinner, and a job a bar of Spark's tasks. Elsewhere one line is
printed for each stage, or for a step that takes long. `output` and `grid` are for a job's report on
stdout.
"""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TextIO

from polynya.runtime.printable import printable, printable_lines
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as TaskProgress
from rich.segment import Segment
from rich.status import Status
from rich.table import Table

SECONDS = 0.5
"""The seconds between two updates of the bar."""

WIDTH = 160  # columns of a stream that is not a terminal

LONG = 1.0
"""The seconds after which `waiting` prints a line to a stream that is not a terminal."""


class Failed(Exception):
    """A stage failed; the message is for the user."""


@dataclass(slots=True)
class Stage:
    """A stage under way."""

    result: str
    """What is printed at its end; the stage may change it."""
    spinner: Status | None

    def doing(self, what: str) -> None:
        """Show the current step."""
        if self.spinner:
            self.spinner.update(what)


class Progress:
    """Prints stages to a stream."""

    def __init__(self, stream: TextIO = sys.stderr) -> None:
        self._console = console(stream)

    @contextmanager
    def stage(self, doing: str) -> Iterator[Stage]:
        """Show `doing` during the block, then the stage's `result` and its seconds.

        Raises:
            Failed: the block raised an error; the message has `doing` and the error in one line.
        """
        start, doing = time.monotonic(), printable(doing)
        stage = Stage(doing, None)
        try:
            if self._console.is_terminal:
                with self._console.status(doing, spinner="line") as stage.spinner:
                    yield stage
            else:
                yield stage
        except Failed:
            raise  # by a stage within this one, whose message is enough
        except Exception as error:
            raise Failed(f"{doing}: {one_line(error)}") from error
        self.say(f"{stage.result} ({time.monotonic() - start:.1f} s)")

    def say(self, line: str) -> None:
        """Print a line."""
        self._console.print(printable(line), soft_wrap=True)


@contextmanager
def waiting(doing: str, stream: TextIO | None = None) -> Iterator[Stage]:
    """Show that the block is running: a spinner on a terminal, else one line after a second.

    Args:
        stream: default: stderr.
    """
    doing = printable(doing)
    shown = console(stream or sys.stderr)
    stage = Stage(doing, None)
    if shown.is_terminal:
        with shown.status(doing, spinner="line") as stage.spinner:
            yield stage
        return
    line = threading.Timer(LONG, lambda: shown.print(f"{doing} ...", soft_wrap=True))
    line.daemon = True
    line.start()
    try:
        yield stage
    finally:
        line.cancel()


class PrintableConsole(Console):
    """A console that escapes control characters in names and messages, and writes its own."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterator[Segment]:
        """The segments of what is printed."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield segment._replace(text=printable_lines(segment.text))


def console(stream: TextIO, *, quiet: bool = False) -> Console:
    """A console with colours only on a terminal without NO_COLOR, and without markup.

    Args:
        quiet: it prints nothing.
    """
    plain = not stream.isatty() or bool(os.environ.get("NO_COLOR"))
    return PrintableConsole(
        file=stream,
        quiet=quiet,
        color_system=None if plain else "auto",
        force_terminal=stream.isatty(),
        width=None if stream.isatty() else WIDTH,
        highlight=False,
        # Names and messages may contain [brackets] and :colons:, which Rich would replace.
        markup=False,
        emoji=False,
    )


def one_line(error: Exception) -> str:
    """An error's message in one line; a long one is cut after 600 characters."""
    words = " ".join(str(error).split()) or type(error).__name__
    return words if len(words) <= 600 else words[:600] + " ..."


def output() -> Console:
    """The console of a job's report, on stdout."""
    width = None if sys.stdout.isatty() else 200
    return PrintableConsole(file=sys.stdout, markup=False, highlight=False, width=width)


def grid() -> Table:
    """A table without lines, for a report."""
    return Table(box=None, pad_edge=False, header_style="bold")


class Reporter:
    """Prints stages and messages of a job; `quiet`: prints nothing."""

    def __init__(self, quiet: bool = False) -> None:
        self._console = console(sys.stderr, quiet=quiet)

    def say(self, line: str) -> None:
        """Print one line."""
        self._console.print(printable(line), soft_wrap=True)

    @contextmanager
    def stage(self, doing: str) -> Iterator[None]:
        """Print one line with the seconds that the block took; nothing if it raises."""
        start = time.monotonic()
        yield
        self.say(f"{doing} ({time.monotonic() - start:.1f} s)")

    @contextmanager
    def spark_stage(self, doing: str, spark: Any) -> Iterator[None]:
        """A stage that is a Spark job: on a terminal, a bar shows its tasks."""
        if not self._console.is_terminal:
            with self.stage(doing):
                yield
            return
        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[n]}"))
        with (
            TaskProgress(*columns, TimeElapsedColumn(), console=self._console) as bar,
            _task_counts(bar, doing, spark),
        ):
            yield


@contextmanager
def _task_counts(bar: TaskProgress, doing: str, spark: Any) -> Iterator[None]:
    """Update the bar from a thread, until the block ends."""
    over = threading.Event()
    task = bar.add_task(doing, total=None, n="")

    def watch() -> None:
        while not over.wait(SECONDS):
            done, total = _tasks(spark)
            if total:
                bar.update(task, completed=done, total=total, n=f"{done} of {total} tasks")

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _tasks(spark: Any) -> tuple[int, int]:
    """How many tasks of the active stages are done, and how many there are."""
    try:
        tracker = spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(number) for number in tracker.getActiveStageIds()]
    except Exception:  # Spark Connect has no context
        return 0, 0
    running = [stage for stage in stages if stage]  # None: it has ended meanwhile
    return sum(s.numCompletedTasks for s in running), sum(s.numTasks for s in running)
