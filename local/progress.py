"""What is being done and how long it took: a spinner on a terminal, else a line for each stage."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TextIO

from rich.console import Console
from rich.status import Status

WIDTH = 160  # of a stream that has none of its own


class Failed(Exception):
    """A stage could not be done; the message is one for the user."""


@dataclass(slots=True)
class Stage:
    result: str
    spinner: Status | None

    def doing(self, what: str) -> None:
        """Tell what is going on just now."""
        if self.spinner:
            self.spinner.update(what)


class Progress:
    def __init__(self, stream: TextIO = sys.stderr) -> None:
        self._console = console(stream)

    @contextmanager
    def stage(self, doing: str) -> Iterator[Stage]:
        """Show `doing`, then the stage's `result`; any error becomes `Failed`, in one line."""
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
        self._console.print(line, soft_wrap=True)


def console(stream: TextIO) -> Console:
    """Colours on a terminal that has not declined them; no markup: a name may hold brackets."""
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
    words = " ".join(str(error).split()) or type(error).__name__
    return words if len(words) <= 600 else words[:600] + " ..."
