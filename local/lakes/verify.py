"""`polynya verify`, for a lake of any address; the job itself needs a PostgreSQL and an S3."""

import inspect
from collections.abc import Callable
from copy import copy
from functools import wraps
from typing import Annotated, Any, get_args

import typer
from polynya.runtime.errors import PolynyaError, ServiceUnavailable
from polynya_pipeline.commands import verify as verify_job
from polynya_pipeline.common.errors import BadInput, Unavailable, report_error
from polynya_pipeline.common.options import Database, DataPath


def _any_lake(option: Any) -> Any:
    """The option of the job, with a help that also names files."""
    [kind, *metadata] = get_args(option)
    [changed] = map(copy, metadata)
    changed.help = (
        "The lake: metadata.ducklake, sqlite:lake.sqlite, or the string after ATTACH. "
        + changed.help
    )
    changed.metavar = "ADDRESS"
    return Annotated[kind, changed]


def for_any_lake(job: Callable[..., None]) -> Callable[..., None]:
    """A job's command whose option `--database` also takes the address of a file."""

    @wraps(job)
    def command(*, database: str, data_path: str | None, **options: Any) -> None:
        if data_path is None and database.startswith(("postgresql://", "arn:")):
            job(database=database, **options)
            return
        # Imported here: DuckDB takes a while, which the help does not need.
        from .opened import readable

        schema, endpoint = options.pop("metadata_schema"), options.pop("s3_endpoint")
        try:
            with readable(database, schema, data_path, endpoint) as lake:
                job(
                    database=lake.database,
                    metadata_schema=lake.metadata_schema,
                    s3_endpoint=lake.s3_endpoint,
                    **options,
                )
        except PolynyaError as error:
            kind = Unavailable if isinstance(error, ServiceUnavailable) else BadInput
            raise typer.Exit(report_error(kind(str(error)), options["as_json"])) from None

    return _with_data_path(command, job)


def _with_data_path(command: Callable[..., None], job: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of the job and one more, as Typer reads them."""
    signature = inspect.signature(job)
    more = inspect.Parameter("data_path", inspect.Parameter.KEYWORD_ONLY, default=None)
    parameters = [*signature.parameters.values(), more]
    types = {**job.__annotations__, "database": _any_lake(Database), "data_path": DataPath}
    command.__annotations__ = types
    keyword = inspect.Parameter.KEYWORD_ONLY
    command.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=[
            parameter.replace(kind=keyword, annotation=types[parameter.name])
            for parameter in parameters
        ]
    )
    return command


verify = for_any_lake(verify_job)
