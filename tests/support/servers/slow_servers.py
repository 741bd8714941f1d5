"""TCP servers on the loopback interface that let clients wait."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

HOST = "127.0.0.1"
PIECE = 65536


@contextmanager
def silent() -> Iterator[int]:
    """A server that accepts connections and never answers; yields its port."""
    with _listening(lambda client: _swallow(client)) as port:
        yield port


@contextmanager
def delaying(port: int, seconds: float) -> Iterator[int]:
    """A proxy that delays each piece of the answers of a local server; yields its port."""

    def relay(client: socket.socket) -> None:
        with socket.create_connection((HOST, port)) as server:
            asking = threading.Thread(target=_copy, args=(client, server, 0.0))
            asking.start()
            _copy(server, client, seconds)
            asking.join()

    with _listening(relay) as own_port:
        yield own_port


@contextmanager
def _listening(serve) -> Iterator[int]:
    listener = socket.create_server((HOST, 0))
    threads: list[threading.Thread] = []
    clients: list[socket.socket] = []

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:  # the listener is closed
                return
            clients.append(client)
            threads.append(threading.Thread(target=serve, args=(client,)))
            threads[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield listener.getsockname()[1]
    finally:
        with suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        accepting.join()
        for client in clients:
            _end(client)
        for thread in threads:
            thread.join()
        for client in clients:
            client.close()


def _swallow(client: socket.socket) -> None:
    with suppress(OSError):
        while client.recv(PIECE):
            pass


def _copy(source: socket.socket, target: socket.socket, delay: float) -> None:
    with suppress(OSError):
        while piece := source.recv(PIECE):
            time.sleep(delay)
            target.sendall(piece)
    _end(target)
    _end(source)


def _end(sock: socket.socket) -> None:
    with suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)
