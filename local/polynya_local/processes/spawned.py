"""A new process, and the pipe to it."""

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any


def spawned(target: Callable[..., None], *arguments: Any) -> tuple[BaseProcess, Connection]:
    """A process that runs `target(pipe, *arguments)`, and this end of the pipe.

    It ends with this process, and shares no DuckDB, no lock and no thread with it.
    """
    context = multiprocessing.get_context("spawn")
    pipe, theirs = context.Pipe()
    process = context.Process(target=target, args=(theirs, *arguments), daemon=True)
    process.start()
    theirs.close()  # otherwise reading would not end with the process
    return process, pipe
