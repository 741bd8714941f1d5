import duckdb
from polynya_local.reports.findings import Report
from polynya_local.reports.table_checks import DataFileCheck


def test_no_file_outside_of_s3_is_read_for_the_program_that_wrote_it(tmp_path):
    """A path in the catalog may name any file of this machine."""
    path = tmp_path / "own.parquet"
    duckdb.sql("SELECT 1 AS i").write_parquet(str(path))
    check = DataFileCheck(Report(), None, [])
    try:
        assert check.programs([str(path)]) == []
    finally:
        check.close()
