"""A minimal REST catalog of real Iceberg: it answers with the table that it was given."""

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

from .lakes import NAMESPACE, TABLE


@contextmanager
def static_catalog(metadata_location: str, metadata: bytes) -> Iterator[str]:
    """The catalog's URI, on the loopback interface."""
    table = {"metadata-location": metadata_location, "metadata": json.loads(metadata), "config": {}}
    answers = {
        "/v1/config": {"defaults": {}, "overrides": {}},
        "/v1/namespaces": {"namespaces": [[NAMESPACE]]},
        f"/v1/namespaces/{NAMESPACE}": {"namespace": [NAMESPACE], "properties": {}},
        f"/v1/namespaces/{NAMESPACE}/tables/{TABLE}": table,
    }
    bodies = {path: json.dumps(answer).encode() for path, answer in answers.items()}

    class Catalog(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = bodies.get(urlsplit(self.path).path)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(body or b"")

        do_HEAD = do_GET

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Catalog) as server:
        server.daemon_threads = True
        server.block_on_close = False  # clients keep connections open
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
