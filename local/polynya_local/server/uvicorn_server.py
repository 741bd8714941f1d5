"""Runs an ASGI application on bound sockets, in this process or in several.

Uvicorn does the work: HTTP, keep-alive, limits of headers, the end after the answers under way, and
the supervision of workers.
"""

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import uvicorn
from starlette.types import ASGIApp
from uvicorn.supervisors import Multiprocess

from .logs import log_to_stderr

HOST = "127.0.0.1"
ALL_ADDRESSES = "0.0.0.0"

KEEP_ALIVE_SECONDS = 120
"""After which an idle connection is closed."""
GRACE_SECONDS = 5
"""How long the answers under way may take at the end."""
BACKLOG = 128
READY_SECONDS = 5
"""How long the first wait for the first worker may take."""
WORKER_SECONDS = 60
"""How long a worker may take to begin, and later to say that it lives, before it is replaced."""

NewApp = Callable[[], ASGIApp]
"""Makes the application, in the process that runs it."""


def bound_socket(port: int, host: str = HOST) -> socket.socket:
    """A socket that listens on a port; 0: any free one.

    Raises:
        OSError: the port is taken, or the address is none of this machine.
    """
    # asyncio sets TCP_NODELAY only if the protocol is named: without it an answer in two packets
    # waits 40 ms for the client's ACK of the first.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        # Connections wait until a worker takes them.
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        reason = f"cannot listen on {host}:{port}: {error.strerror}"
        raise OSError(error.errno, reason) from error
    listening.set_inheritable(True)
    return listening


def port_of(listening: socket.socket) -> int:
    """The port of a bound socket."""
    port: int = listening.getsockname()[1]
    return port


def uri_of(listening: socket.socket) -> str:
    """`http://<host>:<port>`, as programs on this machine reach it."""
    host, port = listening.getsockname()
    return f"http://{HOST if host == ALL_ADDRESSES else host}:{port}"


def _config(app: ASGIApp | NewApp, *, workers: int = 1) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        factory=True,
        workers=workers,
        lifespan="off",
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        ws="none",
        # Not uvloop: it has open reports of crashes, and a crash ends the answers of all clients.
        loop="asyncio",
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_worker_healthcheck=WORKER_SECONDS,
    )


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()


def run_here(
    new_app: NewApp, sockets: Sequence[socket.socket], on_ready: Callable[[], None]
) -> None:
    """Answer in this process until SIGTERM or Ctrl-C.

    Args:
        on_ready: called when the server answers.
    """
    with _signals_ignored_afterwards():
        _Server(_config(new_app), on_ready).run(list(sockets))


@dataclass(frozen=True, slots=True)
class _OfWorker:
    """Makes the application in a worker, which ends when its supervisor is gone."""

    new_app: NewApp
    supervisor: int

    def __call__(self) -> ASGIApp:
        log_to_stderr()
        threading.Thread(target=self._watch, name="supervisor", daemon=True).start()
        return self.new_app()

    def _watch(self) -> None:
        while os.getppid() == self.supervisor:
            time.sleep(1)
        os.kill(os.getpid(), signal.SIGTERM)


class _Workers(Multiprocess):
    def __init__(
        self, config: uvicorn.Config, sockets: list[socket.socket], on_ready: Callable[[], None]
    ) -> None:
        super().__init__(config, sockets)
        self._on_ready: Callable[[], None] | None = on_ready

    def init_processes(self) -> None:
        super().init_processes()
        self._wait_for_first(READY_SECONDS)

    def keep_subprocess_alive(self) -> None:
        super().keep_subprocess_alive()
        self._wait_for_first(1)

    def _wait_for_first(self, seconds: float) -> None:
        """Say once that the first worker answers. Signals are looked at between two waits."""
        if self._on_ready and self.processes[0].wait_until_ready(seconds, self.should_exit):
            self._on_ready()
            self._on_ready = None


def run_workers(
    new_app: NewApp,
    sockets: Sequence[socket.socket],
    workers: int,
    on_ready: Callable[[], None],
) -> None:
    """Answer in several processes until SIGTERM or Ctrl-C. One that ends is started again.

    Args:
        new_app: can be pickled.
        on_ready: called when the first of them answers.
    """
    with _signals_ignored_afterwards():
        of_worker = _OfWorker(new_app, os.getpid())
        _Workers(_config(of_worker, workers=workers), list(sockets), on_ready).run()


@contextmanager
def _signals_ignored_afterwards() -> Iterator[None]:
    """Uvicorn raises the signals that have ended it once more: whoever calls it goes on."""
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, lambda *_: None) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


@contextmanager
def answering(app: ASGIApp, listening: socket.socket) -> Iterator[str]:
    """Answer in a thread of this process during the block; gives the URI."""
    ready = threading.Event()
    server = _Server(_config(lambda: app), ready.set)
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        while not ready.wait(1):
            if not thread.is_alive():
                raise RuntimeError("the server has ended before it answered")
        yield uri_of(listening)
    finally:
        server.should_exit = True
        thread.join()
