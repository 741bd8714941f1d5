"""The log of the server, on stderr."""

import logging
import sys

from polynya.runtime.printable import printable, printable_lines
from polynya.runtime.request_id import current_request_id


class PrintableFormatter(logging.Formatter):
    """Escapes control characters in log lines and tracebacks, such as those of names."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        """The line of a record, with the id of its request."""
        request_id = current_request_id()
        of_request = f" (request {request_id})" if request_id else ""
        return printable(super().formatMessage(record) + of_request)

    def format(self, record: logging.LogRecord) -> str:
        """The line, and those of a traceback."""
        return printable_lines(super().format(record))


def log_to_stderr() -> None:
    """Write warnings of this process to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setLevel(logging.WARNING)  # loggers of Powertools have levels of their own
    handler.setFormatter(PrintableFormatter("%(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)
