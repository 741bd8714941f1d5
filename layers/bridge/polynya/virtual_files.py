"""Files that exist only when they are read: key -> bytes, made once and kept."""

from collections.abc import Callable

from pg8000.native import Connection

from .config import Config
from .ducklake import history, queries
from .ducklake.connection import Database
from .ducklake.rows import Lake, Schema, Table
from .errors import NoSuchKey
from .store import Kept
from .table_files import Surroundings, TableFiles
from .translate.tables import check_lake
from .virtual_names import Name, parse


class VirtualFiles:
    """The virtual files of one lake."""

    def __init__(
        self,
        config: Config,
        database: Database,
        kept: Kept,
        read_object: Callable[[str], bytes],
        read_range: Callable[[str, int, int], bytes],
    ) -> None:
        """The last two read real files, to copy stored deletes and to look into merged files."""
        self._prefix = config.virtual_prefix
        self._database = database
        self._kept = kept
        self._around = Surroundings(
            config=config,
            location=lambda key: f"s3://{config.virtual_bucket}/{key}",
            make=self._make,
            read_object=read_object,
            read_range=read_range,
        )

    def read(self, key: str) -> bytes:
        """The bytes of a virtual file: the same ones for ever.

        Raises:
            NoSuchKey: the key names no virtual file, or history no longer holds what it names.
            ServiceUnavailable: the database or S3 does not answer.
        """
        name = parse(key, self._prefix)
        body = self._kept.get(key)
        if body is None:
            body = self._kept.put(key, self._database.read(lambda con: self._build(con, name)))
        return body

    def of_table(
        self, con: Connection, lake: Lake, schema: Schema, table: Table, snapshot_id: int
    ) -> TableFiles:
        """The files of one table as of a snapshot."""
        return TableFiles(con, history.read(con, lake, schema, table, snapshot_id), self._around)

    def _build(self, con: Connection, name: Name) -> bytes:
        lake = queries.lake(con)
        check_lake(lake.version, lake.encrypted)
        table = queries.table_of_uuid(con, name.table_uuid)
        if table is None or not table.begin_snapshot <= name.snapshot_id <= lake.snapshot_id:
            raise NoSuchKey("the catalog holds no such table or snapshot")
        schema = queries.schema(con, table.schema_id)
        return self.of_table(con, lake, schema, table, name.snapshot_id).build(name)

    def _make(self, key: str, body: Callable[[], bytes]) -> bytes:
        kept = self._kept.get(key)
        return self._kept.put(key, body()) if kept is None else kept
