"""Connections to one PostgreSQL, which transactions take and give back."""

from threading import Lock

from .catalog_connection import CatalogConnection


class ConnectionPool:
    """The connections of one URL, time limit and role that no transaction uses now.

    The catalogs in the schemas of a PostgreSQL share them. There are as many connections as
    transactions at the same time; the threads of the host bound them.
    """

    def __init__(self, most_idle: int = 1) -> None:
        """`most_idle`: how many are kept; on Lambda an instance serves one request at a time."""
        self._idle: list[CatalogConnection] = []
        self._most_idle = most_idle
        self._lock = Lock()

    def take(self) -> CatalogConnection | None:
        """The connection that was used last, for the caller alone; None: a new one is needed."""
        with self._lock:
            return self._idle.pop() if self._idle else None

    def give_back(self, connection: CatalogConnection) -> None:
        """Keep a connection for another transaction, or close it if there are enough."""
        with self._lock:
            is_kept = len(self._idle) < self._most_idle
            if is_kept:
                self._idle.append(connection)
        if not is_kept:
            connection.abandon()

    def close(self) -> None:
        """Close those that no transaction uses."""
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.abandon()
