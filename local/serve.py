"""`polynya serve`: both Lambda functions on this machine, for a DuckLake that already exists."""

import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Mapping
from enum import StrEnum
from typing import Annotated

import typer
from polynya.config import DELIVERIES
from polynya.ducklake import queries
from polynya.ducklake.connection.database import Database
from polynya.ducklake.rows import Lake
from polynya.errors import PolynyaError
from polynya.storage.s3 import bucket_and_key
from polynya.translate.tables import check_lake

from . import reach
from .dynamodb import TABLE, dynamodb
from .options import DatabaseUrl
from .stand_in import StandIn
from .stand_in.limits.confinement import Confinement

Delivery = StrEnum("Delivery", [(name.upper().replace("-", "_"), name) for name in DELIVERIES])

ALIAS = "polynya-local--ol-s3"
"""The bucket of the virtual files under `object-lambda`: shaped like an access point's alias."""


def serve(
    database: DatabaseUrl,
    metadata_schema: Annotated[
        str, typer.Option(metavar="NAME", help="The PostgreSQL schema of DuckLake's tables.")
    ] = "public",
    s3_endpoint: Annotated[
        str | None,
        typer.Option(metavar="URL", help="The S3 that holds the data. Default: AWS."),
    ] = None,
    port: Annotated[
        int,
        typer.Option(
            min=0, max=65534, help="Of the catalog; S3 is on the next one. 0 picks two free ones."
        ),
    ] = 8181,
    delivery: Annotated[
        Delivery,
        typer.Option(
            help="object-lambda: metadata files are made when they are read. materialize: they "
            "are put into the data bucket when a table is loaded."
        ),
    ] = Delivery.OBJECT_LAMBDA,
    warehouse: Annotated[str, typer.Option(metavar="NAME", help="The lake's name.")] = "lake",
    virtual_bucket: Annotated[
        str | None,
        typer.Option(metavar="BUCKET", help="For materialize. Default: the bucket of the data."),
    ] = None,
    hide_type: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TYPE",
            help="Hide columns of this DuckLake type; may be given again. Spark cannot read a "
            "table that has `time`.",
        ),
    ] = None,
    as_deployed: Annotated[
        bool,
        typer.Option(
            "--as-deployed",
            help="Give each function only the packages of its layers and the S3 rights of its "
            "role, as template.yaml says (its DataPrefix empty): to see what AWS would refuse.",
        ),
    ] = False,
) -> None:
    """Serve a DuckLake that already exists to Iceberg clients on this machine.

    When it is ready it prints one line of JSON; logs go to stderr; Ctrl-C or SIGTERM ends it.
    Clients use its s3_endpoint for everything in S3, with any credentials. The credentials for
    the S3 behind it come from the usual AWS variables.
    """
    # The functions' loggers write to stdout, as Lambda wants it; here that is for one line alone.
    stdout, sys.stdout = sys.stdout, sys.stderr
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(message)s")
    logging.getLogger("werkzeug").setLevel(logging.ERROR)  # moto's requests, one by one
    os.environ.setdefault("AWS_DEFAULT_REGION", os.environ.get("AWS_REGION", "us-east-1"))
    region = os.environ["AWS_DEFAULT_REGION"]
    try:
        reach.check(database, metadata_schema)
        with Database(database, metadata_schema).transaction() as con:
            lake = queries.lake().run(con)
    except PolynyaError as error:
        raise typer.Exit(_fail(str(error))) from None
    try:
        check_lake(lake.version, lake.encrypted)
    except PolynyaError as error:
        print(f"polynya: every request will be refused: {error}", file=sys.stderr)
    bucket = virtual_bucket or _data_bucket(lake)
    object_lambda = delivery == Delivery.OBJECT_LAMBDA
    try:
        stand_in = StandIn(
            alias=ALIAS if object_lambda else None,
            supporting_bucket=bucket,
            s3_endpoint=s3_endpoint,
            region=region,
            port=port,
        )
    except OSError as error:
        message = f"port {port} or {port + 1} is taken ({error}); try --port 0"
        raise typer.Exit(_fail(message)) from None
    with dynamodb(region) as dynamodb_endpoint, stand_in:
        os.environ.update(
            DATABASE_URL=database,
            METADATA_SCHEMA=metadata_schema,
            WAREHOUSE=warehouse,
            DELIVERY=delivery,
            VIRTUAL_BUCKET=ALIAS if object_lambda else bucket,
            CACHE_TABLE=TABLE,
            # Nobody but the client waits for us here.
            BUILD_SECONDS=os.environ.get("BUILD_SECONDS") or "3600",
            HIDDEN_TYPES=",".join(hide_type or []),
            OBJECT_LAMBDA_ENDPOINT=stand_in.s3_uri,
            AWS_ENDPOINT_URL_DYNAMODB=dynamodb_endpoint,
            POWERTOOLS_LOG_LEVEL="WARNING",
            POWERTOOLS_METRICS_DISABLED="true",
            **({"AWS_ENDPOINT_URL_S3": s3_endpoint} if s3_endpoint else {}),
        )
        # They read their settings when they are first called.
        from polynya_functions.object_lambda import app as object_lambda_app
        from polynya_functions.rest_catalog import app as rest_catalog_app

        given = _confinements(_data_bucket(lake)) if as_deployed else None
        stand_in.start(rest_catalog_app.handler, object_lambda_app.handler, given)
        ready = {
            "catalog_uri": stand_in.api_uri,
            "warehouse": warehouse,
            "s3_endpoint": stand_in.s3_uri,
            "delivery": delivery.value,
        }
        print(json.dumps(ready), file=stdout, flush=True)
        _wait_for_the_end()


def _confinements(data_bucket: str) -> Mapping[str, Confinement]:
    # Imported here: who does not want it needs no template.
    from .stand_in.limits.deployment import as_deployed

    return as_deployed(os.environ, data_bucket=data_bucket)


def _data_bucket(lake: Lake) -> str:
    found = bucket_and_key(lake.data_path)
    if found is None:
        raise typer.Exit(
            _fail(
                f"the lake's data is in {lake.data_path}, not in S3: Iceberg clients reach the "
                "files of a lake in S3 only"
            )
        )
    return found[0]


def _wait_for_the_end() -> None:
    ended = threading.Event()
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, lambda *_: ended.set())
    ended.wait()


def _fail(message: str) -> int:
    print(f"polynya: {message}", file=sys.stderr)
    return 1
