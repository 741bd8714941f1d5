"""The real command `polynya serve` as a process, for as long as a `with` block lasts."""

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

from .clients.duckdb_connection import KEY_ID, REGION, SECRET

SECONDS_TO_START = 60
SECONDS_TO_STOP = 20


@dataclass(frozen=True, slots=True)
class Bridge:
    catalog_uri: str
    warehouse: str
    s3_endpoint: str
    delivery: str


@contextmanager
def serving(
    database_url: str,
    s3_endpoint: str,
    *,
    delivery: str = "materialize",
    metadata_schema: str = "public",
    hide_types: tuple[str, ...] = (),
    settings: dict[str, str] | None = None,
) -> Iterator[Bridge]:
    """Start the command, wait for its one line of JSON, and end it with SIGTERM.

    Each function has the packages and the rights in S3 that it has on AWS.
    """
    command = [sys.executable, "-m", "polynya_local.cli", "serve", "--database", database_url]
    command += ["--metadata-schema", metadata_schema, "--s3-endpoint", s3_endpoint]
    command += ["--port", "0", "--delivery", delivery, "--as-deployed"]
    command += [word for name in hide_types for word in ("--hide-type", name)]
    with tempfile.TemporaryFile("w+") as log:
        process = subprocess.Popen(
            command,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=environment(settings or {}),
            start_new_session=True,  # Ctrl-C ends us, and we end it
        )
        try:
            yield _bridge(process, log)
        finally:
            _end(process, log)


def environment(settings: dict[str, str]) -> dict[str, str]:
    aws = {
        "AWS_ACCESS_KEY_ID": KEY_ID,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
    }
    return {**os.environ, **aws, **settings}


def _bridge(process: subprocess.Popen, log) -> Bridge:
    # A read from a pipe cannot time out, but the end of the process ends it.
    alarm = threading.Timer(SECONDS_TO_START, process.kill)
    alarm.start()
    try:
        line = process.stdout.readline()
    finally:
        alarm.cancel()
    try:
        return Bridge(**json.loads(line))
    except (ValueError, TypeError) as error:
        raise RuntimeError(f"`polynya serve` said {line!r}, then: {_tail(log)}") from error


def _end(process: subprocess.Popen, log) -> None:
    process.terminate()
    try:
        code = process.wait(SECONDS_TO_STOP)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise RuntimeError(f"`polynya serve` did not end on SIGTERM: {_tail(log)}") from None
    finally:
        process.stdout.close()
    if code not in (0, -signal.SIGTERM) and sys.exc_info()[0] is None:
        raise RuntimeError(f"`polynya serve` ended with {code}: {_tail(log)}")


def _tail(log) -> str:
    log.seek(0)
    return log.read()[-4000:]
