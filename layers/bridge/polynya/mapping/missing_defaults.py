"""Columns with a default that data files may lack, and which clients need them in the files.

A client that ignores Iceberg's `initial-default`, or misreads it in filters, reads a file right
that has the column. Such a file begins with the bytes of the data file and ends with a new footer.
"""

from collections.abc import Iterable
from typing import NamedTuple

from ..ducklake.rows.objects import Column
from ..iceberg.types import Field, Primitive
from .schemas import Schemas, born_at

MISREAD_BY = frozenset(("clickhouse", "daft", "datafusion", "flink", "spark", "trino"))
"""The clients that misread a default which files lack (docs/clients/)."""


class MissingColumns(NamedTuple):
    """The columns that one data file may lack."""

    snapshot_id: int
    """The snapshot since which the file may lack exactly these."""
    fields: tuple[Field, ...]
    """Columns of the top level with their defaults, as they were when they were first shown so."""


class ShownFile(NamedTuple):
    """Where clients find a data file, and how long it is there."""

    location: str
    size: int
    """In bytes."""


class _Shown(NamedTuple):
    snapshot_id: int
    field: Field
    born: int


class MissingDefaults:
    """Which columns data files may lack at each snapshot of a table."""

    def __init__(self, schemas: Schemas, columns: Iterable[Column]) -> None:
        """`columns`: all versions of them."""
        born = born_at(columns)
        self._shown: list[_Shown] = []
        shown: dict[int, tuple[str, object]] = {}
        for snapshot_id, schema in schemas.by_snapshot:
            for field in schema.fields:
                if isinstance(field.type, Primitive) and field.initial_default is not None:
                    value = field.type.name, field.initial_default
                    if shown.get(field.field_id) != value:
                        self._shown.append(_Shown(snapshot_id, field, born[field.field_id]))
                    shown[field.field_id] = value

    def of(self, begin_snapshot: int, snapshot_id: int) -> MissingColumns | None:
        """The columns that a data file of DuckLake may lack.

        A column that is gone stays among them: no client looks for it.

        Args:
            begin_snapshot: of the file. One of the snapshot that added a column may lack it.
            snapshot_id: as of which the file is read.
        """
        fields: dict[int, Field] = {}
        since = 0
        for shown in self._shown:
            if begin_snapshot <= shown.born and shown.snapshot_id <= snapshot_id:
                fields[shown.field.field_id] = shown.field
                since = shown.snapshot_id
        return MissingColumns(since, (*fields.values(),)) if fields else None

    @property
    def column_ids(self) -> frozenset[int]:
        """All of them."""
        return frozenset(shown.field.field_id for shown in self._shown)

    def changed_at(self, snapshot_id: int) -> int:
        """The last snapshot, up to this one, at which any file may lack other columns; 0: none."""
        changes = (shown.snapshot_id for shown in self._shown)
        return max((change for change in changes if change <= snapshot_id), default=0)
