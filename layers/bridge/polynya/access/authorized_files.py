"""Virtual files, for callers who may read their tables."""

import time
from collections.abc import Callable

from ..config import Config
from ..ducklake import queries
from ..ducklake.connection.database import Database, retried
from ..errors import NoSuchKey
from ..files.names import parse
from ..files.virtual_files import VirtualFiles
from ..namespaces import Namespace
from ..web.events import UserIdentity
from .policy import Rights
from .resolver import REFRESH_SECONDS, AccessResolver

TableName = tuple[Namespace, str]
"""Namespace and table."""


class AuthorizedFiles:
    """A file that the caller may not read does not exist for the caller: keys cannot be guessed."""

    def __init__(
        self,
        config: Config,
        database: Database,
        files: VirtualFiles,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`clock` gives seconds."""
        self._prefix = config.files.virtual_prefix
        self.database = database
        self._files = files
        self._access = AccessResolver(config)
        self._clock = clock
        self._names: dict[str, tuple[float, TableName]] = {}
        """When the current name of a table was read that a caller may read, and the name."""

    def read(self, key: str, user_identity: UserIdentity) -> bytes:
        """The bytes of a virtual file, for a caller of S3 Object Lambda.

        Raises:
            NoSuchKey: there is no such file, or the caller may not read its table.
            Misconfigured, ServiceUnavailable: the policy cannot be read; or as
                `VirtualFiles.read`.
        """
        table_uuid = parse(key, self._prefix).table_uuid
        if not self._may_read(table_uuid, self._access.s3_rights(user_identity)):
            raise NoSuchKey("the catalog holds no such table or snapshot")
        return self._files.read(key)

    def _may_read(self, table_uuid: str, rights: Rights) -> bool:
        if rights.table_uuid not in {None, table_uuid}:
            return False
        if rights.all_tables:
            return True
        if table_uuid in self._names:
            read_at, name = self._names[table_uuid]
            is_fresh = self._clock() - read_at <= REFRESH_SECONDS
            if is_fresh and rights.may_read_table(*name):
                return True
        # What is refused is read each time, so that a hidden table takes as long as a missing one.
        current = self._read_name(table_uuid)
        if current is None or not rights.may_read_table(*current):
            return False
        self._names[table_uuid] = (self._clock(), current)
        return True

    @retried
    def _read_name(self, table_uuid: str) -> TableName | None:
        with self.database.transaction() as con:
            found = queries.table_of_uuid(table_uuid).run(con)
        return (found[0].namespace, found[1].table_name) if found else None
