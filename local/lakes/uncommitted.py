"""Which uploaded files a client may remove again: those that the catalog has never had.

DuckDB 1.5.5 removes the files of a transaction that it rolls back, or that was refused. On AWS no
writer may delete, because S3's permissions do not know the catalog.
"""

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from threading import Lock

from polynya.ducklake import queries
from polynya.ducklake.connection.database import BEGIN_WRITE, Database
from polynya.ducklake.writes.new_snapshot import claim
from polynya.errors import Overtaken
from polynya.translate.commits.paths import normalised, spellings

from ..stand_in.lambda_function import Handler

TRIES = 5
"""To claim a snapshot while others commit."""


class UncommittedFiles:
    """Finds the files that no commit has named, while no commit is under way.

    A client may give up on a commit that is under way: its connection is lost, and the commit lands
    later. So nothing is removed while the function that writes answers a request; a request that
    waits reads its files afterwards, and misses them. And the COMMIT of another process, or one
    whose answer was lost, may be under way in PostgreSQL: the claim of the next snapshot waits for
    it.
    """

    def __init__(self, database: Database) -> None:
        """Open nothing. No other thread may use the database."""
        self._database = database
        self._lock = Lock()

    def beside(self, commits: Handler) -> Handler:
        """The handler of the function that writes, which waits for removals."""

        def handler(event: dict[str, object], context: object) -> object:
            with self._lock:
                return commits(event, context)

        return handler

    @contextmanager
    def among(self, locations: Collection[str]) -> Iterator[set[str]]:
        """Those of the locations that the catalog has never had; none is committed in the block.

        Raises:
            PolynyaError: the catalog cannot be asked now.
        """
        with self._lock:
            yield {*locations} - self._known(locations)

    def _known(self, locations: Collection[str]) -> set[str]:
        for _ in range(TRIES - 1):
            try:
                return self._asked(locations)
            except Overtaken:
                continue
        return self._asked(locations)

    def _asked(self, locations: Collection[str]) -> set[str]:
        paths = {path for location in locations for path in spellings(location)}
        with self._database.transaction(BEGIN_WRITE) as con:
            claim(con)
            lake = queries.lake().run(con)
            known = queries.known_locations(lake, paths).run(con)
            con.run("ROLLBACK")
        return set(map(normalised, known))

    def close(self) -> None:
        """Close the connection."""
        self._database.close()
