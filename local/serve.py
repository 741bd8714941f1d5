"""`polynya serve`: the Lambda functions on this machine, for a DuckLake that already exists."""

import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Mapping
from typing import Annotated, NoReturn

import typer
from polynya.ducklake import queries
from polynya.ducklake.connection.database import Database
from polynya.ducklake.queries.writers.writer_rights import writer_rights
from polynya.ducklake.rows.lake import Lake
from polynya.errors import PolynyaError
from polynya.storage.s3 import bucket_and_key
from polynya.translate.tables import check_lake
from polynya_pipeline.common.options import MetadataSchema, S3Endpoint

from . import checkout, reach
from .options import DatabaseUrl, Delivery, DeliveryOption
from .stand_in import StandIn
from .stand_in.dynamodb import TABLE, dynamodb
from .stand_in.limits.confinement import Confinement
from .stand_in.s3.uploads import UploadPaths
from .writes import write_problems

ALIAS = "polynya-local--ol-s3"
"""The bucket of the virtual files under `object-lambda`: shaped like an access point's alias."""

EVERYBODY_MAY_WRITE = json.dumps(
    {"rules": [{"principals": ["*"], "tables": {"*": ["*"]}, "write": {"*": ["*"]}}]}
)
"""AUTHORIZATION of `--writes`: without a policy nobody may write."""


def serve(
    database: DatabaseUrl,
    metadata_schema: MetadataSchema = "public",
    s3_endpoint: S3Endpoint = None,
    port: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=0,
            max=65534,
            help="The port of the catalog; S3 is on the next one. 0 picks two free ports.",
        ),
    ] = 8181,
    delivery: DeliveryOption = Delivery.OBJECT_LAMBDA,
    warehouse: Annotated[
        str, typer.Option(metavar="NAME", help="The warehouse that clients ask for.")
    ] = "lake",
    virtual_bucket: Annotated[
        str | None,
        typer.Option(
            metavar="BUCKET",
            help="The bucket of the metadata files under materialize. Default: the data bucket.",
        ),
    ] = None,
    hide_type: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE",
            help="Hide columns of this DuckLake type; may be repeated. Spark cannot read a table "
            "that has `time`.",
        ),
    ] = None,
    writes: Annotated[
        bool,
        typer.Option(
            "--writes",
            help="Let Iceberg clients write; without the variable AUTHORIZATION, everybody may. "
            "The role must be a member of the owner of DuckLake's tables: `polynya writes` checks "
            "it, and `polynya writes --setup` creates the table that this needs.",
        ),
    ] = False,
    as_deployed: Annotated[
        bool,
        typer.Option(
            "--as-deployed",
            help="Give each function only the packages of its layers and the S3 permissions of "
            "its role that template.yaml declares (with an empty DataPrefix), to find what AWS "
            "would refuse. Needs a checkout of Polynya.",
        ),
    ] = False,
) -> None:
    """Serve a DuckLake to Iceberg clients on this machine.

    Prints one line of JSON when it is ready. Logs go to stderr; Ctrl-C or SIGTERM ends it.
    Clients use its s3_endpoint for everything in S3, with any credentials. The credentials for
    the S3 behind it come from the usual AWS variables.
    """
    if as_deployed and not checkout.IS_CHECKOUT:
        raise typer.BadParameter("--as-deployed reads template.yaml of a checkout of Polynya")
    # The functions' loggers write to stdout, as Lambda expects; here stdout is for one line only.
    stdout, sys.stdout = sys.stdout, sys.stderr
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(message)s")
    os.environ.setdefault("AWS_DEFAULT_REGION", os.environ.get("AWS_REGION", "us-east-1"))
    region = os.environ["AWS_DEFAULT_REGION"]
    lake = _read_lake(database, metadata_schema)
    data_bucket = _data_bucket(lake)
    if writes:
        _check_writes(database, metadata_schema)
    bucket = virtual_bucket or data_bucket
    object_lambda = delivery == Delivery.OBJECT_LAMBDA
    virtual = ALIAS if object_lambda else bucket
    try:
        stand_in = StandIn(
            alias=ALIAS if object_lambda else None,
            supporting_bucket=bucket,
            s3_endpoint=s3_endpoint,
            region=region,
            port=port,
            uploads=_uploads(lake, virtual) if writes else None,
        )
    except OSError as error:
        _fail(f"port {port} or {port + 1} is taken ({error}); try --port 0")
    with dynamodb() as dynamodb_endpoint, stand_in:
        os.environ.update(
            DATABASE_URL=database,
            METADATA_SCHEMA=metadata_schema,
            WAREHOUSE=warehouse,
            DELIVERY=delivery,
            VIRTUAL_BUCKET=virtual,
            CACHE_TABLE=TABLE,
            # No gateway limits how long a client may wait here.
            BUILD_SECONDS=os.environ.get("BUILD_SECONDS") or "3600",
            HIDDEN_TYPES=",".join(hide_type or []),
            WRITES="yes" if writes else "no",
            OBJECT_LAMBDA_ENDPOINT=stand_in.s3_uri,
            AWS_ENDPOINT_URL_DYNAMODB=dynamodb_endpoint,
            POWERTOOLS_LOG_LEVEL="WARNING",
            POWERTOOLS_METRICS_DISABLED="true",
            **({"AWS_ENDPOINT_URL_S3": s3_endpoint} if s3_endpoint else {}),
        )
        if writes and not os.environ.get("AUTHORIZATION"):
            os.environ["AUTHORIZATION"] = EVERYBODY_MAY_WRITE
        # The functions read their settings when they are first called.
        from polynya_functions.commits import app as commits_app
        from polynya_functions.object_lambda import app as object_lambda_app
        from polynya_functions.rest_catalog import app as rest_catalog_app

        confinements = _confinements(data_bucket) if as_deployed else None
        stand_in.start(
            rest_catalog_app.handler,
            object_lambda_app.handler,
            confinements,
            commits_handler=commits_app.handler if writes else None,
        )
        ready = {
            "catalog_uri": stand_in.api_uri,
            "warehouse": warehouse,
            "s3_endpoint": stand_in.s3_uri,
            "delivery": delivery.value,
            "writes": writes,
        }
        print(json.dumps(ready), file=stdout, flush=True)
        _wait_for_signal()


def _read_lake(database: str, metadata_schema: str) -> Lake:
    """The lake of the catalog; exits if the database cannot be read.

    A lake that Polynya refuses is served, so that clients get the reason; it is also printed.
    """
    try:
        reach.check(database, metadata_schema)
        with Database(database, metadata_schema).transaction() as con:
            lake = queries.lake().run(con)
    except PolynyaError as error:
        _fail(str(error))
    try:
        check_lake(lake.version, lake.encrypted)
    except PolynyaError as error:
        print(f"polynya: every request will be refused: {error}", file=sys.stderr)
    return lake


def _check_writes(database: str, metadata_schema: str) -> None:
    """Exit if the database role may not write, or the catalog is not ready for it."""
    try:
        with Database(database, metadata_schema).transaction() as con:
            problems = write_problems(writer_rights().run(con), metadata_schema)
    except PolynyaError as error:
        _fail(str(error))
    if problems:
        _fail("Iceberg clients cannot write: " + "; ".join(problems))


def _uploads(lake: Lake, virtual_bucket: str) -> UploadPaths:
    """Where clients may upload, by the same variables as the functions."""
    prefix = os.environ.get("VIRTUAL_PREFIX") or "polynya"
    try:
        return UploadPaths.of(
            data_path=lake.data_path,
            staging_location=os.environ.get("STAGING_LOCATION", ""),
            virtual_location=f"s3://{virtual_bucket}/{prefix}",
        )
    except ValueError as error:
        _fail(f"STAGING_LOCATION must be s3://bucket/prefix: {error}")


def _confinements(data_bucket: str) -> Mapping[str, Confinement]:
    # Imported here: without --as-deployed no template is needed.
    from .stand_in.limits.deployment import as_deployed

    return as_deployed(os.environ, data_bucket=data_bucket)


def _data_bucket(lake: Lake) -> str:
    found = bucket_and_key(lake.data_path)
    if found is None:
        _fail(
            f"the lake's data is in {lake.data_path}, not in S3: Iceberg clients reach the files "
            "of a lake in S3 only"
        )
    return found[0]


def _wait_for_signal() -> None:
    """Return when SIGTERM or Ctrl-C arrives."""
    ended = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: ended.set())
    ended.wait()


def _fail(message: str) -> NoReturn:
    print(f"polynya: {message}", file=sys.stderr)
    raise typer.Exit(1) from None
