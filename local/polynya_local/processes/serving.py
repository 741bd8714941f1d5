"""The command `polynya serve` as a process of its own, for as long as a `with` block lasts."""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO

KEY_ID, SECRET, REGION = "test", "test", "us-east-1"
"""What clients are given for a local S3, which accepts any key."""

COMMAND = [sys.executable, "-m", "polynya_local"]
"""The command `polynya`, in this Python."""

SECONDS_TO_START = 60
SECONDS_TO_STOP = 40


@dataclass(frozen=True, slots=True)
class Bridge:
    """The line of JSON that `polynya serve` prints when it is ready."""

    catalog_uri: str
    warehouse: str
    s3_endpoint: str
    delivery: str
    writes: bool
    page: str | None = None
    """Where the page for people is; None: there is none."""
    warehouses: tuple[str, ...] = ()
    """The names of several lakes."""


@contextmanager
def serving(
    address: str | None,
    s3_endpoint: str | None,
    *,
    delivery: str = "materialize",
    metadata_schema: str = "public",
    settings: dict[str, str] | None = None,
    writes: bool = False,
    page: bool = True,
    options: tuple[str, ...] = (),
    command: list[str] = COMMAND,
) -> Iterator[Bridge]:
    """Start the command on free ports, wait until it is ready, and end it with SIGTERM.

    Args:
        address: of the lake; None: there are several.
        settings: environment variables of the process, besides those of this process.
        writes: let clients write; `polynya writes --setup` must have run.
        page: show the page, which answers all paths that are not the catalog's.
        options: others of the command, which has one worker unless they say otherwise.
        command: the command `polynya`.

    Raises:
        RuntimeError: the command does not start, or fails; the message has the end of its log.
    """
    command = [*command, "serve", "--metadata-schema", metadata_schema]
    command += [address] if address else []
    command += ["--s3-endpoint", s3_endpoint] if s3_endpoint else []
    command += ["--port", "0", "--delivery", delivery, "--workers", "1"]
    command += ["--writes"] if writes else []
    command += [] if page else ["--no-page"]
    with tempfile.TemporaryDirectory() as cache, tempfile.TemporaryFile("w+") as log:
        command += ["--cache", cache, *options]
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment(settings or {}),
            start_new_session=True,  # Ctrl-C ends this process, which ends the command
        )
        try:
            yield _ready(process, log)
        finally:
            _end(process, log)


def environment(settings: dict[str, str]) -> dict[str, str]:
    """This process's environment variables with credentials for a local S3, and `settings`."""
    aws = {
        "AWS_ACCESS_KEY_ID": KEY_ID,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
    }
    return {**os.environ, **aws, **settings}


def _ready(process: subprocess.Popen[str], log: IO[str]) -> Bridge:
    assert process.stdout is not None
    # A read from a pipe has no timeout, but it returns when the process ends.
    alarm = threading.Timer(SECONDS_TO_START, process.kill)
    alarm.start()
    try:
        line = process.stdout.readline()
    finally:
        alarm.cancel()
    try:
        return Bridge(**json.loads(line))
    except (ValueError, TypeError) as error:
        raise RuntimeError(f"`polynya serve` printed {line!r}, then: {_tail(log)}") from error


def _end(process: subprocess.Popen[str], log: IO[str]) -> None:
    assert process.stdout is not None
    process.terminate()
    try:
        code = process.wait(SECONDS_TO_STOP)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise RuntimeError(f"`polynya serve` did not end on SIGTERM: {_tail(log)}") from None
    finally:
        process.stdout.close()
    # An error of the block is not replaced by this one.
    if code not in (0, -signal.SIGTERM) and sys.exc_info()[0] is None:
        raise RuntimeError(f"`polynya serve` ended with {code}: {_tail(log)}")


def _tail(log: IO[str]) -> str:
    log.seek(0)
    return log.read()[-4000:]
