"""`polynya doctor`: compares DuckLake's catalog with what Iceberg clients get."""

from collections.abc import Iterator

from polynya.ducklake import queries
from polynya.ducklake.rows.named_objects import Schema, Table
from polynya.errors import PolynyaError

from ...lakes.readable import ReadableLake
from ..generator import Generator, tables_of
from ..rights import rights
from .lake import check_lake, check_rights
from .report import ERROR, Report
from .table import TableCheck


def diagnose(generator: Generator, opened: ReadableLake, past: int) -> Iterator[Report]:
    """Check the rights of the role, the lake, and each table.

    Gives the same report before each table and at the end, so that progress can be shown.

    Args:
        opened: the lake that the generator reads.
        past: how many past snapshots of each table are counted, besides the newest.

    Raises:
        PolynyaError: the rights of the role cannot be read from the database.
    """
    report = check_up(generator, opened)
    if not report.lake.get("served"):
        yield report
        return
    check = TableCheck(generator, report, opened.database, opened.s3_endpoint, past)
    try:
        lake = generator.read(queries.lake().run)
        for pair in generator.read(lambda con: tables_of(con, lake)):
            yield report
            check.run(*pair)
    except PolynyaError as error:
        report.add(ERROR, "catalog", str(error))
    finally:
        check.close()
    yield report


def diagnose_table(
    generator: Generator, opened: ReadableLake, schema: Schema, table: Table, past: int
) -> Report:
    """Check one table. Arguments: as of `diagnose`."""
    report = Report()
    check = TableCheck(generator, report, opened.database, opened.s3_endpoint, past)
    try:
        check.run(schema, table)
    finally:
        check.close()
    return report


def check_up(generator: Generator, opened: ReadableLake) -> Report:
    """Check the rights of the role and the lake, without its tables.

    Raises:
        PolynyaError: the rights of the role cannot be read from the database.
    """
    report = Report()
    schema = generator.config.metadata_schema
    found = None if opened.is_mirror else generator.read(lambda con: rights(con, schema))
    if found is not None:
        check_rights(report, found, schema)
    try:
        lake = generator.read(queries.lake().run)
    except PolynyaError as error:
        report.add(ERROR, "catalog", str(error))
        return report
    check_lake(report, lake)
    return report
