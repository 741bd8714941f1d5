"""Values in the context of a request, for the time of a block."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

Value = TypeVar("Value")


@contextmanager
def assigned(variable: ContextVar[Value], value: Value) -> Iterator[None]:
    """Give a variable of the context this value for the block."""
    token = variable.set(value)
    try:
        yield
    finally:
        variable.reset(token)
