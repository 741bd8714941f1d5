"""A call in a process of its own, with limits of memory and time.

For parsers in C: a short text can make them take gigabytes, or end their process. A call takes half
a second, most of it to start a process, so it is used only for rare requests, and for no read.
"""

import os
import pickle
import resource
import subprocess
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from . import budget
from .errors import OutOfTime, PolynyaError

Answer = TypeVar("Answer")

ENVIRONMENT = ("PATH", "LD_LIBRARY_PATH", "TMPDIR", "HOME", "LANG")
"""The variables of the environment that the process gets: it needs no credentials."""


PATIENCE = 4
"""How many times its CPU time a call may take, because the machine is busy."""

STARTED = b"started"
"""The text that the process writes before it calls the function."""


class Exceeded(Exception):
    """The call needs more memory or time than it may have, or has ended its process."""


def call(function: Callable[..., Answer], *arguments: Any, seconds: int, megabytes: int) -> Answer:
    """The result of a function of a module.

    Args:
        seconds: of CPU time; it may take `PATIENCE` times as long.
        megabytes: of address space; Python and DuckDB take 500 of them.

    Raises:
        Exceeded: it has no answer within these limits.
        OutOfTime: the machine is too busy for an answer, or no time is left in the budget.
        PolynyaError: what the function raises, or the process cannot be started.
    """
    budget.check()
    # Not the current directory, in which others may have files with the names of modules.
    path = os.pathsep.join(filter(None, sys.path))
    environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", __name__, str(seconds), str(megabytes)],
            input=pickle.dumps((function, arguments)),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**environment, "PYTHONPATH": path},
            timeout=min(PATIENCE * seconds, budget.seconds_left()),
            check=False,
        )
    except subprocess.TimeoutExpired:
        budget.check()
        # The arguments can only cost CPU time, which the process limits itself.
        raise OutOfTime("the machine is too busy to parse the request; try again") from None
    if not done.stdout.startswith(STARTED):
        raise PolynyaError("the process that parses the request cannot be started")
    if done.returncode:
        raise Exceeded
    is_answer, answer = pickle.loads(done.stdout.removeprefix(STARTED))
    if not is_answer:
        raise answer
    return answer  # type: ignore[no-any-return]


def main(seconds: int, megabytes: int) -> None:
    """Answer the call on stdin."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
    resource.setrlimit(resource.RLIMIT_AS, (megabytes << 20, megabytes << 20))
    function, arguments = pickle.load(sys.stdin.buffer)
    sys.stdout.buffer.write(STARTED)
    sys.stdout.buffer.flush()
    try:
        answer = True, function(*arguments)
    except PolynyaError as error:
        answer = False, error
    sys.stdout.buffer.write(pickle.dumps(answer))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
