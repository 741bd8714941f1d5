"""Counts HTTP requests on their way to a server, or delays the answers."""

import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from socketserver import BaseRequestHandler, ThreadingTCPServer
from urllib.parse import urlsplit

# A reading client sends a request in one piece, without a body.
REQUEST = re.compile(rb"^(GET|HEAD|POST) \S+ HTTP/1\.1\r\n", re.MULTILINE)

CONTINUE = b"HTTP/1.1 100 "


@contextmanager
def relay(endpoint: str, counts: Counter[str] | None = None, delay: float = 0) -> Iterator[str]:
    """An endpoint that forwards to `endpoint`.

    Args:
        counts: gets the number of requests of each method.
        delay: how long each answer is held back, in seconds.
    """
    target = urlsplit(endpoint)

    class Relay(BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection((target.hostname, target.port)) as server:
                for one in (server, self.request):
                    one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                is_asked = threading.Event()

                def asked(chunk: bytes) -> None:
                    is_asked.set()
                    if counts is not None:
                        found = REQUEST.findall(chunk)
                        counts.update(method.decode() for method in found)

                def answered(chunk: bytes) -> None:
                    # The first piece of an answer. That the server takes a body is none.
                    if is_asked.is_set() and not chunk.startswith(CONTINUE):
                        is_asked.clear()
                        time.sleep(delay)

                back = threading.Thread(
                    target=pump, args=(server, self.request, answered), daemon=True
                )
                back.start()
                pump(self.request, server, asked)
                back.join()

    with ThreadingTCPServer(("127.0.0.1", 0), Relay) as listening:
        listening.daemon_threads = True
        listening.block_on_close = False  # clients keep connections open
        thread = threading.Thread(target=listening.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_address[1]}"
        listening.shutdown()


def pump(source: socket.socket, sink: socket.socket, before: Callable[[bytes], object]) -> None:
    """Copy until the source closes; `before` gets each chunk first."""
    try:
        while chunk := source.recv(65536):
            before(chunk)
            sink.sendall(chunk)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # one of the two has closed
