"""Shows what a command does: a spinner on a terminal, else a line for what takes long."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Timer
from typing import TextIO

from rich.console import Console
from rich.status import Status

WIDTH = 160  # columns of a stream that is no terminal


LONG = 1.0
"""Seconds after which a stream that is no terminal gets a line."""


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
            Failed: the block raised an error; with `doing` and the error in one line.
        """
        start = time.monotonic()
        stage = Stage(doing, None)
        try:
            if self._console.is_terminal:
                with self._console.status(doing, spinner="line") as stage.spinner:
                    yield stage
            else:
                yield stage
        except Failed:
            raise
        except Exception as error:
            raise Failed(f"{doing}: {in_one_line(error)}") from error
        self.say(f"{stage.result} ({time.monotonic() - start:.1f} s)")

    def say(self, line: str) -> None:
        """Print a line."""
        self._console.print(line, soft_wrap=True)


@contextmanager
def waiting(doing: str, stream: TextIO | None = None) -> Iterator[Stage]:
    """Show that the block takes its time: a spinner on a terminal, else one line after a second.

    Args:
        stream: default: stderr.
    """
    shown = console(stream or sys.stderr)
    stage = Stage(doing, None)
    if shown.is_terminal:
        with shown.status(doing, spinner="line") as stage.spinner:
            yield stage
        return
    line = Timer(LONG, lambda: shown.print(f"{doing} ...", soft_wrap=True))
    line.daemon = True
    line.start()
    try:
        yield stage
    finally:
        line.cancel()


def console(stream: TextIO) -> Console:
    """A console with colours only on a terminal without NO_COLOR, and without markup."""
    plain = not stream.isatty() or bool(os.environ.get("NO_COLOR"))
    return Console(
        file=stream,
        color_system=None if plain else "auto",
        force_terminal=stream.isatty(),
        width=None if stream.isatty() else WIDTH,
        highlight=False,
        markup=False,
        emoji=False,
    )


def in_one_line(error: Exception) -> str:
    """An error's message in one line of at most 600 characters."""
    words = " ".join(str(error).split()) or type(error).__name__
    return words if len(words) <= 600 else words[:600] + " ..."
