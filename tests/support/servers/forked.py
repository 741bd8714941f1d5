"""The command `polynya`, forked from one process that has imported it: `python -m ...`.

Each line of the input has the words of one command, as JSON. The output has the id of its process,
and what the command prints. Where a server is started fifty times, Python's start costs the most.
"""

import json
import os
import signal
import sys

import boto3  # noqa: F401
import polynya_local.served_lake  # noqa: F401
from polynya_local.cli import app


def main() -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the processes
    for line in sys.stdin:
        if not os.fork():
            _run(json.loads(line))


def _run(words: list[str]) -> None:
    """Run a command in this process, which ends with it."""
    try:
        os.setsid()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())
        print(os.getpid(), flush=True)
        app(words)
    finally:
        os._exit(1)


if __name__ == "__main__":
    main()
