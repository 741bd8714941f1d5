"""`polynya serve` as a process that a test kills and starts again at the same ports."""

import json
import os
import random
import signal
import socket
import subprocess
from contextlib import ExitStack
from pathlib import Path

from polynya_local.processes.serving import COMMAND, environment


class Replaceable:
    """A server, with a cache of its own unless the options name one."""

    def __init__(self, folder: Path, *words: str) -> None:
        """`words`: those of the command after `serve`, without ports."""
        folder.mkdir()
        self.port = _two_free_ports()
        self._log = (folder / "log").open("a+")
        self._words = [*COMMAND, "serve", *words, "--port", str(self.port)]
        self._words += [] if "--cache" in words else ["--cache", str(folder / "cache")]
        self.process: subprocess.Popen[str] | None = None

    @property
    def uri(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def add(self, *words: str) -> None:
        """Start it with more words of the command."""
        self._words += words

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        self.process = subprocess.Popen(
            self._words,
            stdout=subprocess.PIPE,
            stderr=self._log,
            text=True,
            env=environment({}),
            start_new_session=True,
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, self.log()
        assert json.loads(line)["writes"]

    def kill(self) -> None:
        """End it and its workers with SIGKILL, as if the machine had lost its power."""
        assert self.process is not None
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self._close()

    def log(self) -> str:
        self._log.seek(0)
        return self._log.read()[-4000:]

    def stop(self) -> None:
        """End it with SIGTERM."""
        if self.process is not None and self.process.poll() is None:
            self.process.terminate()
            assert self.process.wait(60) in (0, -signal.SIGTERM), self.log()
            self._close()
        self._log.close()

    def _close(self) -> None:
        assert self.process is not None and self.process.stdout is not None
        self.process.stdout.close()


def _two_free_ports() -> int:
    """A free port, after which the next one is free too: none that other programs get by chance."""
    while True:
        port = random.randrange(20_000, 30_000, 2)
        with ExitStack() as stack:
            try:
                for number in (port, port + 1):
                    stack.enter_context(socket.create_server(("127.0.0.1", number)))
            except OSError:
                continue
            return port
