"""The commands of the pipeline's jobs, which need a PostgreSQL and an S3.

`accept_any_lake` lets `verify` take a lake of any address, and `accept_postgresql` lets `publish`
and `ingest` take any address of a catalog in PostgreSQL.
"""

from collections.abc import Callable
from copy import copy
from functools import wraps
from inspect import Parameter, signature
from typing import Annotated, Any, get_args

import typer
from polynya.runtime.errors import PolynyaError, ServiceUnavailable
from polynya_pipeline.commands import ingest as ingest_job
from polynya_pipeline.commands import verify as verify_job
from polynya_pipeline.common.errors import BadInput, Unavailable, report_error
from polynya_pipeline.common.options import DataPath, JobAddress, address_of
from polynya_pipeline.publish.command import publish as publish_job

from .lakes.address import parse, postgresql_url
from .lakes.catalog_file import checked


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


def accept_any_lake(job: Callable[..., None]) -> Callable[..., None]:
    """A job's command that also takes the address of a file."""

    @wraps(job)
    def command(
        *, address: str | None, database: str | None, data_path: str | None, **options: Any
    ) -> None:
        lake_address = address_of(address, database)
        if data_path is None and lake_address.startswith(("postgresql://", "arn:")):
            job(address=lake_address, **options)
            return
        schema, endpoint = options.pop("metadata_schema"), options.pop("s3_endpoint")
        try:
            checked(parse(lake_address))
            # DuckDB takes a while to import, which the help and a wrong name do not need.
            from .lakes.opened import readable

            with readable(lake_address, schema, data_path, endpoint) as lake:
                job(
                    address=lake.database,
                    metadata_schema=lake.metadata_schema,
                    s3_endpoint=lake.s3_endpoint,
                    **options,
                )
        except PolynyaError as error:
            kind = Unavailable if isinstance(error, ServiceUnavailable) else BadInput
            raise typer.Exit(report_error(kind(str(error)), options["as_json"])) from None

    return _add_data_path(command, job)


def _add_data_path(command: Callable[..., None], job: Callable[..., None]) -> Callable[..., None]:
    """The command with the options of the job and one more, as Typer reads them."""
    types = {**job.__annotations__, "address": _any_lake(JobAddress), "data_path": DataPath}
    more = Parameter("data_path", Parameter.KEYWORD_ONLY, default=None)
    command.__annotations__ = types
    command.__signature__ = signature(job).replace(  # type: ignore[attr-defined]
        parameters=[
            parameter.replace(kind=Parameter.KEYWORD_ONLY, annotation=types[parameter.name])
            for parameter in (*signature(job).parameters.values(), more)
        ]
    )
    return command


def accept_postgresql(job: Callable[..., None], otherwise: str) -> Callable[..., None]:
    """A job's command that takes any address of a catalog in PostgreSQL.

    Args:
        otherwise: the end of the message for a catalog in a file.
    """

    @wraps(job)
    def command(**options: Any) -> None:
        address = address_of(options.pop("address", None), options.pop("database"))
        try:
            url = address if address.startswith("arn:") else postgresql_url(address, otherwise)
        except PolynyaError as error:
            raise typer.Exit(report_error(BadInput(str(error)), options["as_json"])) from None
        job(database=url, **options)

    return command


ingest = accept_postgresql(ingest_job, "write to it with DuckDB")
publish = accept_postgresql(
    publish_job, "`polynya serve` generates its metadata files when they are read"
)
verify = accept_any_lake(verify_job)
