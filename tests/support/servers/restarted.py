"""`polynya serve --writes`, which is killed and started again on the same ports."""

import json
import os
import signal
import socket
import subprocess
from contextlib import suppress
from pathlib import Path

from polynya_local.processes.serving import COMMAND, Bridge, environment


class Server:
    """`polynya serve --writes`, on the same ports each time."""

    def __init__(self, url: str, s3_endpoint: str, folder: Path) -> None:
        self._words = [url, "--s3-endpoint", s3_endpoint, "--writes", "--no-page"]
        self._words += ["--port", str(free_ports()), "--cache", str(folder / "cache")]
        self._log = (folder / "server.log").open("ab")
        self.start()
        self.uri = self.bridge.catalog_uri

    def start(self) -> None:
        self._process = subprocess.Popen(
            [*COMMAND, "serve", "--delivery", "object-lambda", *self._words],
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment({}),
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self.bridge = Bridge(**json.loads(self._process.stdout.readline()))

    def kill(self) -> None:
        """End all its processes at once."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()

    def wait(self) -> None:
        """Wait until somebody has killed it."""
        self._process.wait(60)

    def close(self) -> None:
        self.kill()
        self._log.close()


def free_ports() -> int:
    """The first of two ports that follow each other."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = first.getsockname()[1]
            try:
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port
