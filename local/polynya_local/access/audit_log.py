"""One line for each request: who, what, which table, and how it ended; no values, and no keys."""

import json
import os
import sys
from datetime import UTC, datetime

from polynya.runtime.errors import Misconfigured
from polynya.runtime.request_id import current_request_id

ROUTED = "polynya.routed"
"""The key, in the scope of a request, of the scope that the page's router got."""


class AuditLog:
    """Writes lines of JSON to a file, or to stderr."""

    def __init__(self, path: str | None) -> None:
        """Open the file to append to it; None: stderr.

        Raises:
            Misconfigured: it cannot be written.
        """
        try:
            self._file = sys.stderr.fileno() if path is None else _opened(path)
        except OSError as error:
            raise Misconfigured(
                f"the audit log {path} cannot be written: {error.strerror}"
            ) from None

    def write(self, **fields: object) -> None:
        """Write a line about a request; fields without a value are left out."""
        line = {"audit": datetime.now(UTC).isoformat(timespec="milliseconds")}
        fields["request_id"] = current_request_id()
        line |= {name: value for name, value in fields.items() if value not in ("", None)}  # type: ignore[misc]
        # One call, so that the lines of several processes do not mix.
        os.write(self._file, json.dumps(line).encode() + b"\n")


def _opened(path: str) -> int:
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o640)
