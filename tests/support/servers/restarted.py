"""`polynya serve --writes`, which is killed and started again on the same ports."""

import json
import os
import random
import select
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from polynya_local.processes.serving import Bridge, environment


class Server:
    """`polynya serve --writes`, on the same ports each time."""

    def __init__(
        self, url: str, s3_endpoint: str, folder: Path, *, delivery: str = "object-lambda"
    ) -> None:
        self._words = ["serve", "--delivery", delivery, url, "--s3-endpoint", s3_endpoint]
        self._words += ["--writes", "--no-page", "--workers", "1"]
        self._words += ["--port", str(free_ports()), "--cache", str(folder / "cache")]
        self._log = (folder / "server.log").open("ab")
        self._starter = subprocess.Popen(
            [sys.executable, "-m", "tests.support.servers.forked"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment({}),
            text=True,
            start_new_session=True,
        )
        self._end = 0
        self.start()
        self.uri = self.bridge.catalog_uri

    def start(self) -> None:
        assert self._starter.stdin is not None and self._starter.stdout is not None
        if self._end:
            os.close(self._end)
        print(json.dumps(self._words), file=self._starter.stdin, flush=True)
        self._pid = int(self._starter.stdout.readline())
        self._end = os.pidfd_open(self._pid)
        self.bridge = Bridge(**json.loads(self._starter.stdout.readline()))

    def kill(self) -> None:
        """End all its processes at once."""
        with suppress(ProcessLookupError):
            os.killpg(self._pid, signal.SIGKILL)
        select.select([self._end], [], [])

    def close(self) -> None:
        self.kill()
        os.close(self._end)
        self._starter.communicate()
        self._log.close()


def free_ports() -> int:
    """The first of two ports that follow each other.

    They are not among those that the system gives to clients' connections: one could have a port
    while the server is away.
    """
    while True:
        port = random.randrange(10_000, 32_000)
        with socket.socket() as first, socket.socket() as second, suppress(OSError):
            first.bind(("127.0.0.1", port))
            second.bind(("127.0.0.1", port + 1))
            return port
