"""`publish`: the files that Iceberg clients will read, made before they ask.

Into the store that the functions read, so that nobody waits for the first list of a large table; or
as standalone Iceberg tables (`export`) that any catalog can register.
"""

import os
import time
from collections.abc import Iterable, Mapping
from typing import Any

from polynya.errors import BadRequest, Misconfigured, NoSuchKey, PolynyaError

from ..common.errors import BadInput, Overtaken, Unavailable
from ..common.progress import Reporter
from ..ingest.catalog import table_name
from .destinations import directory, settings
from .run import Published, Publishing


def publish(
    *,
    database: str,
    metadata_schema: str = "public",
    tables: Iterable[str] = (),
    namespaces: Iterable[str] = (),
    export: str | None = None,
    snapshots: int | None = None,
    environ: Mapping[str, str] = os.environ,
    spark: Any | None = None,
    dry_run: bool = False,
    reporter: Reporter | None = None,
) -> Published:
    """Publish tables of a lake, as of its newest snapshot.

    Args:
        tables, namespaces: which; without both all of the lake.
        export: a folder, or s3://bucket/prefix: each table becomes one of its own below it.
        snapshots: how many of each table, newest first; without it as many as are listed.
        environ: the settings of the functions.
        spark: its executors make the manifests; without it this process does.

    Raises:
        BadInput, Conflict, Unavailable: nothing leads to what was written until then.
    """
    started = time.monotonic()
    try:
        found = settings(environ, bool(export), snapshots)
    except Misconfigured as error:
        raise BadInput(str(error)) from None
    try:
        job = Publishing(
            settings=found,
            export=directory(export) if export else "",
            snapshots=snapshots,
            tables=tuple(table_name(name) for name in tables),
            namespaces=tuple(namespaces),
            spark=spark,
            writes=not dry_run,
            reporter=reporter or Reporter(quiet=True),
        )
        try:
            published = job.run(database, metadata_schema)
        except Overtaken:
            published = job.run(database, metadata_schema)
    except (BadRequest, NoSuchKey) as error:
        raise BadInput(str(error)) from None
    except PolynyaError as error:
        raise Unavailable(str(error)) from None
    published.seconds = round(time.monotonic() - started, 2)
    return published
