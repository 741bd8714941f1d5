"""Virtual files for those who may read the tables that they belong to."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from ..config import Config
from ..ducklake import queries
from ..ducklake.connection.database import Database, retried
from ..errors import NoSuchKey
from ..files.names import parse
from ..files.virtual_files import VirtualFiles
from .policy import Rights
from .resolver import KEPT_SECONDS, AccessResolver

Named = tuple[str, str]


class AuthorizedFiles:
    """What is not to be read is as if it were not there: a guessed key says nothing."""

    def __init__(
        self,
        config: Config,
        database: Database,
        files: VirtualFiles,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._prefix = config.virtual_prefix
        self.database = database
        self._files = files
        self._readers = AccessResolver(config)
        self._clock = clock
        self._names: dict[str, tuple[float, Named | None]] = {}

    def read(self, key: str, user_identity: Mapping[str, Any]) -> bytes:
        """The bytes of a virtual file, for somebody who asks S3 Object Lambda.

        Raises:
            NoSuchKey: also when the caller may not read the table.
            Misconfigured, ServiceUnavailable: nobody can say who may.
        """
        table_uuid = parse(key, self._prefix).table_uuid
        if not self._may_read(table_uuid, self._readers.of_s3(user_identity)):
            raise NoSuchKey("the catalog holds no such table or snapshot")
        return self._files.read(key)

    def _may_read(self, table_uuid: str, rights: Rights) -> bool:
        if rights.table_uuid not in {None, table_uuid}:
            return False
        if rights.all_tables:
            return True
        named = self._named(table_uuid)
        return named is not None and rights.table(*named)

    def _named(self, table_uuid: str) -> Named | None:
        """What the table is called now, as of the last minute."""
        kept_at, named = self._names.get(table_uuid, (0.0, None))
        if named is None or self._clock() - kept_at > KEPT_SECONDS:
            named = self._read_name(table_uuid)
            self._names[table_uuid] = (self._clock(), named)
        return named

    @retried
    def _read_name(self, table_uuid: str) -> Named | None:
        with self.database.transaction() as con:
            found = queries.table_of_uuid(table_uuid).run(con)
        return (found[0].schema_name, found[1].table_name) if found else None
