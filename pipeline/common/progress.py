"""What a job is doing, on stderr: a progress bar on a terminal, else one line for each stage.

`output` and `grid` are for its report on stdout.
"""

import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

SECONDS = 0.5
"""The seconds between two updates of the bar."""


def output() -> Console:
    """The console of a job's report, on stdout."""
    width = None if sys.stdout.isatty() else 200
    return Console(file=sys.stdout, markup=False, highlight=False, width=width)


def grid() -> Table:
    """A table without lines, for a report."""
    return Table(box=None, pad_edge=False, header_style="bold")


class Reporter:
    """Prints stages and messages of a job; `quiet`: prints nothing."""

    def __init__(self, quiet: bool = False) -> None:
        plain = not sys.stderr.isatty() or bool(os.environ.get("NO_COLOR"))
        self._console = Console(
            file=sys.stderr,
            quiet=quiet,
            markup=False,
            highlight=False,
            emoji=False,
            color_system=None if plain else "auto",
        )

    def say(self, line: str) -> None:
        """Print one line."""
        self._console.print(line, soft_wrap=True)

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
            Progress(*columns, TimeElapsedColumn(), console=self._console) as bar,
            _task_counts(bar, doing, spark),
        ):
            yield


@contextmanager
def _task_counts(bar: Progress, doing: str, spark: Any) -> Iterator[None]:
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
    running = [stage for stage in stages if stage]
    return sum(s.numCompletedTasks for s in running), sum(s.numTasks for s in running)
