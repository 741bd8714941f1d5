"""Reads files into a DataFrame; text gets the types of the table, and no field is dropped."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..common.errors import BadInput
from ..common.spark import error_line
from .catalog import Table
from .types import read_types

# A record that cannot be parsed fails the job: NULL in its place would be a wrong row. With
# enforceSchema Spark would ignore the header of a CSV file, and take its columns by position.
TEXT_OPTIONS = {
    "csv": {"header": "true", "mode": "FAILFAST", "enforceSchema": "false"},
    "json": {"mode": "FAILFAST"},
}

CASE = "spark.sql.caseSensitive"


def frame(
    spark: Any,
    paths: list[str],
    format: str,
    table: Table | None,
    ddl: str | None = None,
    *,
    evolve: bool = False,
) -> Any:
    """The rows of files as a DataFrame.

    Args:
        paths: files or folders.
        format: parquet, csv, json.
        table: None: it does not exist.
        ddl: the schema, such as `id bigint, at timestamp`. None: the types of the table's columns,
            and for other columns what Spark infers from the files.
        evolve: also read fields that the table's columns lack.

    Raises:
        BadInput: the files cannot be read, or have fields that the table's columns lack.
    """
    reader = spark.read.options(**TEXT_OPTIONS.get(format, {}))
    try:
        if format == "parquet":
            return (reader.schema(ddl) if ddl else reader).parquet(*paths)
        if ddl is None:
            # With a table only the names are needed: the types are those of its columns.
            inferring = reader.option("inferSchema", str(table is None).lower())
            with _case_sensitive(spark):
                inferred = getattr(inferring, format)(paths).schema
            if not len(inferred):
                raise BadInput(f"no records in {', '.join(paths)}")
            ddl = read_types(inferred, table.columns, evolve=evolve) if table else None
            if ddl is None:
                return getattr(reader.schema(inferred), format)(paths)
        return getattr(reader.schema(ddl), format)(paths)
    except BadInput:
        raise
    except Exception as error:
        raise BadInput(f"the files cannot be read: {error_line(error)}") from None


@contextmanager
def _case_sensitive(spark: Any) -> Iterator[None]:
    """Within the block, distinguish the fields `a` and `A`.

    Otherwise Spark infers one field from both, and reads NULL for one of them.
    """
    before = spark.conf.get(CASE)
    spark.conf.set(CASE, "true")
    try:
        yield
    finally:
        spark.conf.set(CASE, before)
