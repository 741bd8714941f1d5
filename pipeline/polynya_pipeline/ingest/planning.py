"""What a job is asked to do, and how it will be done. Pure functions: no database, no storage."""

import hashlib
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import uuid4

from polynya.commits.plan.table_plan import Alteration, NewTable, SchemaChange, TablePlan
from polynya.ducklake.column_tree import ColumnNode, NewColumn, new_columns
from polynya.ducklake.paths import directory, schema_location
from polynya.ducklake.rows.objects import Lake, PartitionColumn, Schema, is_reserved
from polynya.mapping.properties import COMMENT

from ..common.errors import BadInput
from ..common.text_values import TableName
from . import parquet_files
from .catalog import Table
from .parquet_files import FilePlan
from .summary import Mode
from .types import add_new_fields, arrow_schema, check_names, columns_of, mismatches

PARTITION_BY = re.compile(r"(?:(year|month|day|hour)\((.+)\)|bucket\((\d+),\s*(.+)\)|(.+))")
ROW_GROUP_ROWS = 122_880  # DuckDB's, and so DuckLake's
TARGET_BYTES = 512_000_000
# PyArrow's names, where DuckLake's are different.
COMPRESSIONS = {"uncompressed": "none", "lz4_raw": "lz4"}
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}
UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


@dataclass(frozen=True, slots=True)
class IngestSpec:
    """What a job is asked to do.

    Raises:
        BadInput: the mode or the token is invalid.
    """

    name: TableName
    token: str
    """Names the job: its snapshot has this text in commit_extra_info."""
    mode: str = Mode.APPEND
    create: bool = False
    partition_by: tuple[str, ...] = ()
    """The keys of a table that is created: `region`, `day(at)`, `bucket(8, id)`."""
    comment: str | None = None
    """The comment of a table that is created."""
    evolve: bool = False
    author: str | None = None
    message: str | None = None

    def __post_init__(self) -> None:
        if self.mode not in list(Mode):
            raise BadInput(f"the mode must be one of {', '.join(Mode)}, not {self.mode!r}")
        # PostgreSQL's text cannot hold a NUL.
        if not self.token or "\0" in self.token:
            raise BadInput("the token must not be empty")


@dataclass(frozen=True, slots=True)
class Plan:
    """What a job commits, except the files."""

    spec: IngestSpec
    lake: Lake
    """The lake when the job began."""
    schema: Schema
    table: Table | None
    """The table when the job began; None: it is created."""
    changes: TablePlan
    """What changes in the table, without the files that are added or end."""
    partition_keys: tuple[PartitionColumn, ...]

    @property
    def name(self) -> TableName:
        return self.spec.name

    @property
    def added_columns(self) -> Sequence[NewColumn]:
        """The columns that are added to an existing table."""
        change = self.changes.alteration.schema
        return change.added if change else ()


def plan(
    frame_schema: Any,
    lake: Lake,
    schema: Schema,
    table: Table | None,
    spec: IngestSpec,
) -> Plan:
    """Plan a job.

    Args:
        frame_schema: the DataFrame's `StructType`.
        table: None: it does not exist.

    Raises:
        BadInput: the job cannot be done as requested.
    """
    name = spec.name
    if table is None and not spec.create:
        raise BadInput(f"no table {name}: --create creates it")
    if table is not None and spec.partition_by:
        raise BadInput(f"{name} exists already: change its partitioning with ALTER TABLE")
    columns = _columns(frame_schema, table, name, spec.evolve)
    added = tuple(new_columns(columns, table.last_column_id if table else 0))
    _check_not_reserved(lake, added)
    keys = table.partition_keys if table else _partition_keys(spec.partition_by, columns)
    if spec.mode == Mode.OVERWRITE_PARTITIONS and not keys:
        raise BadInput(f"{name} is not partitioned: use the mode overwrite")
    parquet_files.check(keys, columns)
    arrow_schema(columns)  # raises BadInput if a type cannot be written
    if table is None:
        changes = _creation(lake, schema, spec, columns, keys)
    else:
        change = SchemaChange(columns, added, is_reshaped=True) if added else None
        changes = TablePlan(
            table_uuid=table.table_uuid,
            table=table.table_id,
            columns=columns,
            location=table.location,
            partition_id=table.partition_id,
            ends_all=spec.mode == Mode.OVERWRITE,
            alteration=Alteration(change),
        )
    return Plan(spec, lake, schema, table, changes, keys)


def _creation(
    lake: Lake,
    schema: Schema,
    spec: IngestSpec,
    columns: tuple[ColumnNode, ...],
    keys: tuple[PartitionColumn, ...],
) -> TablePlan:
    """The plan of a table that does not exist yet."""
    uuid, name = str(uuid4()), spec.name.table_name
    path = directory(name, uuid)
    new = NewTable(
        schema_id=schema.schema_id,
        namespace=schema.namespace,
        table_uuid=uuid,
        table_name=name,
        path=path,
        columns=columns,
        partition_keys=keys,
        tags={} if spec.comment is None else {COMMENT: spec.comment},
    )
    location = schema_location(lake, schema) + path
    return TablePlan(table_uuid=uuid, table=new, columns=columns, location=location)


def _check_not_reserved(lake: Lake, columns: Iterable[NewColumn]) -> None:
    """Refuse new columns with names that DuckLake reserves for its tables of inlined rows."""
    for new in columns:
        name = new.column.column_name
        if new.parent_column is None and is_reserved(name, is_1_1=lake.is_1_1):
            raise BadInput(
                f"DuckLake reserves the column name {name} for its tables of inlined rows: use "
                "another name"
            )


def _columns(
    frame_schema: Any, table: Table | None, name: TableName, evolve: bool
) -> tuple[ColumnNode, ...]:
    """The table's columns after the commit."""
    if table is None:
        return columns_of(frame_schema, itertools.count(1))
    check_names([field.name for field in frame_schema], "the DataFrame")
    fields = {field.name.casefold(): field for field in frame_schema}
    names = {column.column_name.casefold() for column in table.columns}
    surplus = [field for field in frame_schema if field.name.casefold() not in names]
    wrong = list(_misfits(fields, table, evolve))
    if not evolve:
        wrong += [f"{field.name} is not in the table" for field in surplus]
    if wrong:
        advice = "" if evolve else "; --evolve adds new columns, and writes NULL for absent ones"
        raise BadInput(f"the DataFrame does not fit {name}: {'; '.join(wrong)}{advice}")
    ids = itertools.count(table.last_column_id + 1)
    existing = [
        add_new_fields(column, field.dataType, ids) if field else column
        for column in table.columns
        for field in [fields.get(column.column_name.casefold())]
    ]
    # Existing rows have NULL in a new column.
    added = [replace(column, nulls_allowed=True) for column in columns_of(surplus, ids)]
    return (*existing, *added)


def _misfits(fields: dict[str, Any], table: Table, evolve: bool) -> Iterator[str]:
    """Why the DataFrame's fields cannot be written into the table's columns."""
    for column in table.columns:
        field = fields.get(column.column_name.casefold())
        if field is not None:
            yield from mismatches(field.dataType, column, evolve=evolve)
        # An absent column is written as NULL, never as its default.
        elif not evolve or not column.nulls_allowed or column.default_value is not None:
            yield f"{column.column_name} is not in the DataFrame"


def _partition_keys(
    partition_by: tuple[str, ...], columns: tuple[ColumnNode, ...]
) -> tuple[PartitionColumn, ...]:
    ids = {column.column_name.casefold(): column.column_id for column in columns}
    keys = []
    for index, text in enumerate(partition_by):
        match = PARTITION_BY.fullmatch(text.strip())
        part, of_part, buckets, of_bucket, plain = match.groups() if match else (None,) * 5
        whole = text.strip().casefold()
        if whole in ids:  # a column may be called `year(x)`
            part, of_part, buckets, of_bucket, plain = None, None, None, None, text.strip()
        column = (of_part or of_bucket or plain or "").strip()
        if column.casefold() not in ids:
            raise BadInput(f"--partition-by {text}: there is no column {column}")
        transform = part or (f"bucket({buckets})" if buckets else "identity")
        keys.append(PartitionColumn(index, ids[column.casefold()], transform))
    return tuple(keys)


def file_plan(plan: Plan, frame_columns: list[str], options: dict[str, str]) -> FilePlan:
    """How the files are written; `options` are DuckLake's options of the table."""
    compression = options.get("parquet_compression", "snappy").lower()
    return FilePlan(
        columns=plan.changes.columns,
        frame_columns=tuple(frame_columns),
        partition_keys=plan.partition_keys,
        location=plan.changes.location,
        file_prefix=file_prefix(plan.spec.token),
        compression=COMPRESSIONS.get(compression, compression),
        compression_level=int(level)
        if (level := options.get("parquet_compression_level"))
        else None,
        row_group_rows=int(options.get("parquet_row_group_size") or ROW_GROUP_ROWS),
        target_bytes=_bytes(options.get("target_file_size")),
        hive_directories=options.get("hive_file_pattern", "true").lower() != "false",
    )


def file_prefix(token: str) -> str:
    """The beginning of the names of all files of a job, in every run: it identifies orphans."""
    return f"ducklake-{hashlib.sha256(token.encode()).hexdigest()[:16]}-"


def _bytes(text: str | None) -> int:
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text or "")
    if not match or match[2].upper() not in UNITS:
        return TARGET_BYTES
    return int(float(match[1]) * UNITS[match[2].upper()])
