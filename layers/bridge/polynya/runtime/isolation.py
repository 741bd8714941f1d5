"""Functions that a host may call in a process of its own, because they read what others wrote.

A parser in C can end its process, and a long computation can hold the interpreter's lock. On AWS
each request has an instance of a function to itself, so these functions are called directly;
`polynya serve` answers many requests in one process, and calls them in other processes.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from functools import wraps
from typing import Any, TypeVar, cast

from .context import assigned
from .errors import BadRequest


class Ended(BadRequest):
    """The process has ended before it answered: it was killed, or exceeded its memory."""


Run = Callable[..., Any]
"""Gives what a function returns or raises for arguments, called in another process within the time
budget. It raises Ended, or OutOfTime after it has ended the process."""

_run: ContextVar[Run | None] = ContextVar("run", default=None)


def isolating(run: Run | None) -> AbstractContextManager[None]:
    """Let `run` call the isolated functions that the block calls; None: they are called here."""
    return assigned(_run, run)


def isolating_run() -> Run | None:
    """The function that calls isolated functions for this request; its threads need it too."""
    return _run.get()


Function = TypeVar("Function", bound=Callable[..., Any])


def isolated(function: Function) -> Function:
    """Decorate a function whose arguments and results can be pickled."""

    @wraps(function)
    def called(*arguments: Any) -> Any:
        run = _run.get()
        return function(*arguments) if run is None else run(called, *arguments)

    return cast(Function, called)
