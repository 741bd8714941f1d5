"""`polynya verify`, for a lake of any address; the job itself needs a PostgreSQL and an S3."""

from collections.abc import Callable
from functools import wraps
from typing import Any

import typer
from polynya.errors import PolynyaError, ServiceUnavailable
from polynya_pipeline.commands import verify as verify_job
from polynya_pipeline.common.errors import BadInput, Unavailable, report_error


def for_any_lake(job: Callable[..., None]) -> Callable[..., None]:
    """A job's command whose option `--database` also takes the address of a file."""

    @wraps(job)
    def command(*, database: str, **options: Any) -> None:
        if database.startswith(("postgresql://", "arn:")):
            job(database=database, **options)
            return
        # Imported here: DuckDB takes a while, which the help does not need.
        from .readable import readable

        schema, endpoint = options.pop("metadata_schema"), options.pop("s3_endpoint")
        try:
            with readable(database, schema, None, endpoint) as lake:
                job(
                    database=lake.database,
                    metadata_schema=lake.metadata_schema,
                    s3_endpoint=lake.s3_endpoint,
                    **options,
                )
        except PolynyaError as error:
            kind = Unavailable if isinstance(error, ServiceUnavailable) else BadInput
            raise typer.Exit(report_error(kind(str(error)), options["as_json"])) from None

    return command


verify = for_any_lake(verify_job)
