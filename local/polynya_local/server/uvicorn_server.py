"""Runs an ASGI application on bound sockets, in this process or in several.

Uvicorn does the work: HTTP, keep-alive, limits of headers, the end after the answers under way, and
the supervision of workers.
"""

import logging
import os
import signal
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import uvicorn
from polynya.runtime.errors import Misconfigured
from starlette.types import ASGIApp
from uvicorn.supervisors import Multiprocess

from ..garbage import collect_rarely
from .connections import MOST_CONNECTIONS, LimitedConnection, allow_files
from .logs import log_to_stderr

logger = logging.getLogger(__name__)

HOST = "127.0.0.1"
ALL_ADDRESSES = "0.0.0.0"

KEEP_ALIVE_SECONDS = 120
"""The time after which an idle connection is closed."""
GRACE_SECONDS = 30
"""How long the answers under way may take at the end: as long as those of the catalog may."""
BACKLOG = 128
READY_SECONDS = 5
"""How long the first wait for the first worker may take."""
RENEWAL_SECONDS = 60
"""How soon a renewed certificate is used."""
WORKER_SECONDS = 60
"""How long a worker may take to start, and later to answer a check, before it is replaced."""

NewApp = Callable[[], ASGIApp]
"""Makes the application, in the process that runs it."""


def bound_socket(port: int, host: str = HOST) -> socket.socket:
    """A socket that listens on a port; 0: any free one.

    Raises:
        OSError: the port is taken, or this machine does not have the address.
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


def uri_of(listening: socket.socket, scheme: str = "http") -> str:
    """`<scheme>://<host>:<port>`, as programs on this machine reach it."""
    host, port = listening.getsockname()
    return f"{scheme}://{HOST if host == ALL_ADDRESSES else host}:{port}"


@dataclass(frozen=True, slots=True)
class Certificate:
    """The server's certificate and its key, in files (PEM) that are read again when renewed."""

    chain: Path
    key: Path

    def __call__(
        self, config: uvicorn.Config, new_context: Callable[[], ssl.SSLContext]
    ) -> ssl.SSLContext:
        """The TLS context of a process, which uvicorn requests."""
        context = self.context()
        threading.Thread(
            target=self._renew, args=[context], name="certificate", daemon=True
        ).start()
        return context

    def context(self) -> ssl.SSLContext:
        """TLS 1.2 or 1.3 with this certificate.

        Raises:
            OSError: the files cannot be read, or are not a certificate and its key.
        """
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(self.chain, self.key)
        return context

    def _renew(self, context: ssl.SSLContext) -> None:
        state = self._state()
        while True:
            time.sleep(RENEWAL_SECONDS)
            if (changed := self._state()) == state or changed is None:
                continue
            try:
                self.context()  # the old one stays if the two do not fit together yet
                context.load_cert_chain(self.chain, self.key)
                state = changed
            except OSError as error:
                logger.warning("the new certificate is not used: %s", error)

    def _state(self) -> tuple[int, int] | None:
        try:
            return self.chain.stat().st_mtime_ns, self.key.stat().st_mtime_ns
        except OSError:
            return None


def certificate_of(chain: Path | None, key: Path | None) -> Certificate | None:
    """The certificate in these files; None: there are none.

    Raises:
        Misconfigured: one is missing, or they are not a certificate and its key.
    """
    if chain is None and key is None:
        return None
    if chain is None or key is None:
        raise Misconfigured("--tls-cert and --tls-key need each other")
    certificate = Certificate(chain.absolute(), key.absolute())
    try:
        certificate.context()
    except OSError as error:
        raise Misconfigured(f"{chain} and {key} are no certificate and its key: {error}") from None
    return certificate


def _config(
    app: ASGIApp | NewApp,
    *,
    workers: int = 1,
    certificate: Certificate | None = None,
    connections: int = MOST_CONNECTIONS,
) -> uvicorn.Config:
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
        http=partial(LimitedConnection, most=connections),  # type: ignore[arg-type]
        backlog=BACKLOG,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=GRACE_SECONDS,
        timeout_worker_healthcheck=WORKER_SECONDS,
        ssl_context_factory=certificate,
    )


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self._on_ready()


def run_here(
    new_app: NewApp,
    sockets: Sequence[socket.socket],
    on_ready: Callable[[], None],
    certificate: Certificate | None = None,
    connections: int = MOST_CONNECTIONS,
) -> None:
    """Answer in this process until SIGTERM or Ctrl-C.

    Args:
        on_ready: called when the server answers.
        certificate: for TLS; None: without TLS.
        connections: how many a process has at the same time.
    """
    allow_files(connections)
    new_app = partial(_long_lived, new_app)
    config = _config(new_app, certificate=certificate, connections=connections)
    with _signals_ignored_afterwards():
        _Server(config, on_ready).run(list(sockets))


def _long_lived(new_app: NewApp) -> ASGIApp:
    """The application of a process that does nothing else."""
    app = new_app()
    collect_rarely()
    return app


@dataclass(frozen=True, slots=True)
class _OfWorker:
    """Makes the application in a worker, which ends when its supervisor is gone."""

    new_app: NewApp
    supervisor: int

    def __call__(self) -> ASGIApp:
        log_to_stderr()
        threading.Thread(target=self._watch, name="supervisor", daemon=True).start()
        return _long_lived(self.new_app)

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
        self._close_ends_of_workers()
        self._wait_for_first(READY_SECONDS)

    def terminate_all(self) -> None:
        """End the workers, after they have answered the requests under way."""
        # A port refuses connections when no process has it open: a load balancer sees at once that
        # this server ends, and sends requests to another one.
        for listening in self.sockets:
            listening.close()
        super().terminate_all()

    def keep_subprocess_alive(self) -> None:
        super().keep_subprocess_alive()
        self._close_ends_of_workers()
        self._wait_for_first(1)

    def _close_ends_of_workers(self) -> None:
        """Close the workers' ends of the pipes in this process, so that pipes end with workers."""
        # Otherwise a worker that is killed during a health check is waited for, for a minute.
        for process in self.processes:
            process.child_conn.close()

    def _wait_for_first(self, seconds: float) -> None:
        """Call `on_ready` once the first worker answers. Signals are handled between two waits."""
        if self._on_ready and self.processes[0].wait_until_ready(seconds, self.should_exit):
            self._on_ready()
            self._on_ready = None


def run_workers(
    new_app: NewApp,
    sockets: Sequence[socket.socket],
    workers: int,
    on_ready: Callable[[], None],
    certificate: Certificate | None = None,
    connections: int = MOST_CONNECTIONS,
) -> None:
    """Answer in several processes until SIGTERM or Ctrl-C. One that ends is started again.

    Args:
        new_app: can be pickled.
        on_ready: called when the first of them answers.
        certificate, connections: as `run_here`.
    """
    allow_files(connections)
    with _signals_ignored_afterwards():
        of_worker = _OfWorker(new_app, os.getpid())
        config = _config(
            of_worker, workers=workers, certificate=certificate, connections=connections
        )
        _Workers(config, list(sockets), on_ready).run()


@contextmanager
def _signals_ignored_afterwards() -> Iterator[None]:
    """Ignore the signals that have ended uvicorn, which it raises again: its caller goes on."""
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, lambda *_: None) for number in numbers]
    try:
        yield
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)


@contextmanager
def answering(app: ASGIApp, listening: socket.socket) -> Iterator[str]:
    """Answer in a thread of this process during the block; yields the URI."""
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
