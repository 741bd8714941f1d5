"""Files that exist only when they are read: key -> bytes, made once and kept."""

from pg8000.native import Connection

from ..config import Config
from ..ducklake import history, queries
from ..ducklake.connection.database import Database, retried
from ..ducklake.connection.statements import run_batched
from ..ducklake.rows import Lake, Schema, Table
from ..errors import NoSuchKey
from ..storage.file_cache import FileCache
from ..storage.object_reader import ObjectReader
from ..translate.tables import check_lake, check_rows
from .names import Name, parse
from .table_files import BuildContext, TableFiles


class VirtualFiles:
    """The virtual files of one lake."""

    def __init__(
        self,
        config: Config,
        database: Database,
        kept: FileCache,
        object_reader: ObjectReader,
    ) -> None:
        self._prefix = config.virtual_prefix
        self._database = database
        self._kept = kept
        self._around = BuildContext(
            config=config,
            location=lambda key: f"s3://{config.virtual_bucket}/{key}",
            kept=kept,
            object_reader=object_reader,
        )

    @property
    def location(self) -> str:
        """Below which virtual files are."""
        return self._around.location(self._prefix)

    def read(self, key: str) -> bytes:
        """The bytes of a virtual file: the same ones for ever.

        Raises:
            NoSuchKey: the key names no virtual file, or history no longer holds what it names.
            ServiceUnavailable: the database or S3 does not answer.
        """
        name = parse(key, self._prefix)
        return self._kept.once(key, lambda: self._build(name))

    def of_table(
        self,
        con: Connection,
        lake: Lake,
        schema: Schema,
        table: Table,
        snapshot_id: int,
        since: int = 0,
    ) -> TableFiles:
        """The files of one table as of a snapshot.

        Args:
            since: the first snapshot that is asked about; 0: as many as are listed.
        """
        check_rows(schema, table)
        limit = None if since else self._around.config.snapshot_limit
        found = history.read(con, lake, schema, table, snapshot_id, since=since, limit=limit)
        return TableFiles(con, found, self._around)

    @retried
    def _build(self, name: Name) -> bytes:
        with self._database.transaction() as con:
            return self._build_within(con, name)

    def _build_within(self, con: Connection, name: Name) -> bytes:
        lake, found = run_batched(con, queries.lake(), queries.table_of_uuid(name.table_uuid))
        check_lake(lake.version, lake.encrypted)
        if found is None:
            raise NoSuchKey("the catalog holds no such table")
        schema, table = found
        if not table.begin_snapshot <= name.snapshot_id <= lake.snapshot_id:
            raise NoSuchKey("the catalog holds no such snapshot of the table")
        # The metadata document as of its own snapshot; what it leads to as of now, for a table's
        # partition specs hang on the columns that its newest schema shows.
        # For a reader that is pinned to an older snapshot that one decides.
        newest = lake.snapshot_id if table.end_snapshot is None else table.end_snapshot - 1
        is_document = name.kind == "table"
        tried = (name.snapshot_id,) if is_document else (newest, name.snapshot_id)
        since = 0 if is_document else name.snapshot_id
        failure = NoSuchKey("the catalog holds no such file")
        for snapshot_id in dict.fromkeys(tried):
            try:
                return self.of_table(con, lake, schema, table, snapshot_id, since).build(name)
            except NoSuchKey as error:
                failure = error
        raise failure
