"""From a DataFrame's schema and a table as it is to what a job will do; nothing is asked here."""

import hashlib
import itertools
import re
from dataclasses import replace
from typing import Any
from uuid import uuid4

from ..common.columns import Column
from ..common.errors import BadInput
from ..common.modes import OVERWRITE_PARTITIONS
from . import partitions
from .catalog import Lake, Schema, Table, TableName
from .commit import Plan
from .parquet_files import FilePlan
from .partitions import PartitionKey
from .spec import IngestSpec
from .types.arrow import arrow_schema
from .types.spark import check_names, columns_of, grown, mismatches

PARTITION_BY = re.compile(r"(?:(year|month|day|hour)\((.+)\)|bucket\((\d+),\s*(.+)\)|(.+))")
SIMPLE_NAME = re.compile(r"[A-Za-z0-9_-]+")
ROW_GROUP_ROWS = 122_880  # DuckDB's, and so DuckLake's
TARGET_BYTES = 512_000_000
COMPRESSIONS = {"uncompressed": "none", "lz4_raw": "lz4"}
UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9}
UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30}


def plan(
    frame_schema: Any,
    lake: Lake,
    schema: Schema,
    table: Table | None,
    spec: IngestSpec,
) -> Plan:
    """Raises:
    BadInput: it cannot be done as asked for, with the reason.
    """
    name = spec.name
    if table is None and not spec.create:
        raise BadInput(f"no table {name}: --create makes it")
    if table is not None and spec.partition_by:
        raise BadInput(f"{name} is there already: its partitioning is changed by ALTER TABLE")
    columns = _columns(frame_schema, table, name, spec.evolve)
    keys = table.partition_keys if table else _partition_keys(spec.partition_by, columns)
    if spec.mode == OVERWRITE_PARTITIONS and not keys:
        raise BadInput(f"{name} is not partitioned: use the mode overwrite")
    partitions.check(keys, columns)
    arrow_schema(columns)  # raises for what cannot be written
    table_uuid = str(uuid4())
    simple = SIMPLE_NAME.fullmatch(name.table_name)
    return Plan(
        spec=spec,
        base_snapshot=lake.snapshot_id,
        schema=schema,
        table=table,
        columns=columns,
        partition_keys=keys,
        table_uuid=table_uuid,
        path=f"{name.table_name if simple else table_uuid}/",
    )


def _columns(
    frame_schema: Any, table: Table | None, name: TableName, evolve: bool
) -> tuple[Column, ...]:
    """The table's columns as they will be."""
    if table is None:
        return columns_of(frame_schema, itertools.count(1))
    check_names([field.name for field in frame_schema], "the DataFrame")
    fields = {field.name.casefold(): field for field in frame_schema}
    there = {column.column_name.casefold() for column in table.columns}
    wrong: list[str] = []
    for column in table.columns:
        field = fields.get(column.column_name.casefold())
        if field is not None:
            wrong += mismatches(field.dataType, column, evolve=evolve)
        elif not evolve or not column.nulls_allowed or column.default_value is not None:
            wrong.append(f"{column.column_name} is not in the DataFrame")
    surplus = [field for field in frame_schema if field.name.casefold() not in there]
    if not evolve:
        wrong += [f"{field.name} is not in the table" for field in surplus]
    if wrong:
        advice = "" if evolve else "; --evolve adds new columns, and writes NULL for absent ones"
        raise BadInput(f"the DataFrame does not fit {name}: {'; '.join(wrong)}{advice}")
    ids = itertools.count(table.last_column_id + 1)
    known = [
        grown(column, field.dataType, ids) if field else column
        for column in table.columns
        for field in [fields.get(column.column_name.casefold())]
    ]
    # Rows that are there already have a NULL in them.
    added = [replace(column, nulls_allowed=True) for column in columns_of(surplus, ids)]
    return (*known, *added)


def _partition_keys(
    partition_by: tuple[str, ...], columns: tuple[Column, ...]
) -> tuple[PartitionKey, ...]:
    ids = {column.column_name.casefold(): column.column_id for column in columns}
    keys = []
    for index, text in enumerate(partition_by):
        found = PARTITION_BY.fullmatch(text.strip())
        part, of_part, buckets, of_bucket, plain = found.groups() if found else (None,) * 5
        whole = text.strip().casefold()
        if whole in ids:  # a column may be called `year(x)`
            part, of_part, buckets, of_bucket, plain = None, None, None, None, text.strip()
        column = (of_part or of_bucket or plain or "").strip()
        if column.casefold() not in ids:
            raise BadInput(f"--partition-by {text}: there is no column {column}")
        transform = part or (f"bucket({buckets})" if buckets else "identity")
        keys.append(PartitionKey(index, ids[column.casefold()], transform))
    return tuple(keys)


def file_plan(plan: Plan, frame_columns: list[str], options: dict[str, str]) -> FilePlan:
    """How the files are written; `options` are those that DuckLake keeps with the table."""
    compression = options.get("parquet_compression", "snappy").lower()
    return FilePlan(
        columns=plan.columns,
        frame_columns=tuple(frame_columns),
        partition_keys=plan.partition_keys,
        location=plan.table.location if plan.table else plan.schema.location + plan.path,
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
    """What all files of the job are called, in every run: so its orphans are known by name."""
    return f"ducklake-{hashlib.sha256(token.encode()).hexdigest()[:16]}-"


def _bytes(text: str | None) -> int:
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([A-Za-z]*)", text or "")
    if not found or found[2].upper() not in UNITS:
        return TARGET_BYTES
    return int(float(found[1]) * UNITS[found[2].upper()])
