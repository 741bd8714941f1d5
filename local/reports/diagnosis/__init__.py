"""`polynya doctor`: compares DuckLake's catalog with what Iceberg clients get."""

from collections.abc import Iterator

from polynya.ducklake import queries
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
    report = Report()
    schema = generator.config.metadata_schema
    found = None if opened.is_mirror else generator.read(lambda con: rights(con, schema))
    if found is not None:
        check_rights(report, found, schema)
    try:
        lake = generator.read(queries.lake().run)
    except PolynyaError as error:
        report.add(ERROR, "catalog", str(error))
        yield report
        return
    check_lake(report, lake)
    if report.lake["served"]:
        check = TableCheck(generator, report, opened.database, opened.s3_endpoint, past)
        try:
            for pair in generator.read(lambda con: tables_of(con, lake)):
                yield report
                check.run(*pair)
        except PolynyaError as error:
            report.add(ERROR, "catalog", str(error))
        finally:
            check.close()
    yield report
