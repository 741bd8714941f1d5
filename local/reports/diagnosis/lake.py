"""Checks of the whole lake: the rights of the database role, the version, the data path."""

from polynya.ducklake.rows.lake import Lake
from polynya.errors import Refused
from polynya.storage.s3 import is_s3
from polynya.translate import tables

from ..rights import Rights, create_index, default_privileges, grant
from .report import ERROR, NOTE, SLOW, UNREADABLE, WARNING, Report

SMALL_STATISTICS = 16 * 1024 * 1024  # bytes, which a scan without an index reads quickly


def check_rights(report: Report, found: Rights, schema: str) -> None:
    """Add findings about grants, default privileges and indexes that are missing."""
    role = found.role
    if not found.may_use_schema:
        message = f"the role {role} may not use the schema {schema}"
        report.add(ERROR, "grants", message, grant(schema, role))
    elif found.unreadable:
        names = ", ".join(found.unreadable)
        message = f"the role {role} may not read {_some(found.unreadable, found.tables)}: {names}"
        report.add(ERROR, "grants", message, grant(schema, role))
    for writer in found.writers:
        report.add(
            WARNING,
            "grants",
            f"the role {role} may not read tables of inlined rows that {writer} will create",
            default_privileges(schema, role, writer),
            UNREADABLE,
        )
    if found.writable:
        report.add(
            WARNING,
            "grants",
            f"the role {role} may write to {_some(found.writable, found.tables)}: SELECT is enough",
        )
    for table, size in found.unindexed.items():
        report.add(
            WARNING if size > SMALL_STATISTICS else NOTE,
            "index",
            f"{table} ({size / 1e6:,.1f} MB) has no index for ranges of files: every manifest "
            "costs a scan of it",
            create_index(schema, table),
            SLOW,
        )


def check_lake(report: Report, lake: Lake) -> None:
    """Add what the catalog says of itself, and findings if it is not served."""
    report.lake = {
        "version": lake.version,
        "encrypted": lake.encrypted,
        "snapshot_id": lake.snapshot_id,
        "data_path": lake.data_path,
        "served": True,
    }
    try:
        tables.check_lake(lake.version, lake.encrypted)
    except Refused as error:
        report.lake["served"] = False
        report.add(ERROR, "lake", str(error))
    if not is_s3(lake.data_path):
        report.add(
            ERROR,
            "settings",
            f"the data path {lake.data_path} is not in S3: Iceberg clients reach the files of a "
            "lake in S3 only",
        )


def _some(names: list[str], number: int) -> str:
    return f"{len(names)} of DuckLake's {number} tables"
