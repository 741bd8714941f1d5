"""Counts HTTP requests on their way to a server. Its own cost is not measured."""

import re
import socket
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from socketserver import BaseRequestHandler, ThreadingTCPServer
from urllib.parse import urlsplit

# A reading client sends a request in one piece, without a body.
REQUEST = re.compile(rb"^(GET|HEAD|POST) \S+ HTTP/1\.1\r\n", re.MULTILINE)


@contextmanager
def relay(endpoint: str, counts: Counter[str]) -> Iterator[str]:
    """An endpoint that forwards to `endpoint` and counts its requests by method."""
    target = urlsplit(endpoint)

    class Relay(BaseRequestHandler):
        def handle(self) -> None:
            with socket.create_connection((target.hostname, target.port)) as server:
                back = threading.Thread(target=pump, args=(server, self.request), daemon=True)
                back.start()
                pump(self.request, server, counts)
                back.join()

    with ThreadingTCPServer(("127.0.0.1", 0), Relay) as listening:
        listening.daemon_threads = True
        listening.block_on_close = False  # clients keep connections open
        thread = threading.Thread(target=listening.serve_forever, args=(0.05,), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.server_address[1]}"
        listening.shutdown()


def pump(source: socket.socket, sink: socket.socket, counts: Counter[str] | None = None) -> None:
    """Copy until the source closes."""
    try:
        while chunk := source.recv(65536):
            if counts is not None:
                counts.update(method.decode() for method in REQUEST.findall(chunk))
            sink.sendall(chunk)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        pass  # one of the two has closed
