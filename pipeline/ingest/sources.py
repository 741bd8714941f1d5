"""Files as a DataFrame. Text is read as the types of the table, and nothing is dropped unseen."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ..common.errors import BadInput, spark_message
from .catalog import Table
from .types.text_files import read_types

# A record that cannot be read ends the job: a NULL in its place would be a wrong row.
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
    """The rows of `paths`.

    Args:
        ddl: the schema in Spark's words, `id bigint, at timestamp`. None: that of the table where
            it has the column, else what Spark finds in the files.
        evolve: what the table does not have within its columns is read, too.

    Raises:
        BadInput: the files cannot be read.
    """
    reader = spark.read.options(**TEXT_OPTIONS.get(format, {}))
    try:
        if format == "parquet":
            return (reader.schema(ddl) if ddl else reader).parquet(*paths)
        if ddl is None:
            inferring = reader.option("inferSchema", str(table is None).lower())
            with _exact_names(spark):
                found = getattr(inferring, format)(paths).schema
            if not len(found):
                raise BadInput(f"no records in {', '.join(paths)}")
            ddl = read_types(found, table.columns, evolve=evolve) if table else None
            if ddl is None:
                return getattr(reader.schema(found), format)(paths)
        return getattr(reader.schema(ddl), format)(paths)
    except BadInput:
        raise
    except Exception as error:
        raise BadInput(f"the files cannot be read: {spark_message(error)}") from None


@contextmanager
def _exact_names(spark: Any) -> Iterator[None]:
    """Else Spark infers one field from `a` and `A`, and reads NULL where it is the other."""
    before = spark.conf.get(CASE)
    spark.conf.set(CASE, "true")
    try:
        yield
    finally:
        spark.conf.set(CASE, before)
