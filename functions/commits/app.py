"""The Iceberg REST routes that write, behind API Gateway: one commit is one DuckLake snapshot.

Deployed only with `Writes=yes`, with a role and credentials of its own.
"""

import gc
import os
from functools import cache

from polynya.aws_lambda.api_handler import api_handler
from polynya.catalog.lakes import Lakes
from polynya.catalog.writer import WritableCatalog, open_writable_catalog
from polynya.http import writing
from polynya.http.application import create_app
from polynya.runtime.metrics import function_logger
from polynya.runtime.settings import Config
from polynya.storage import aws

logger = function_logger("commits")

# A commit of thousands of files makes millions of rows that are in no cycle. To look for cycles
# among them after each 700 new objects, Python's default, takes a fifth of the CPU time.
gc.set_threshold(50_000, 10, 10)


@cache
def lakes() -> Lakes[WritableCatalog]:
    """The lakes of the settings; no database is connected yet.

    Raises:
        Misconfigured: a setting is missing or not usable.
    """
    config = Config.from_env(os.environ)
    return Lakes(config, open_writable_catalog, environ=os.environ, commits=True)


app = create_app(logger, writing.operations(lambda: lakes()))
aws.prepare_snapshots(lambda: lakes().prepare())
handler = api_handler(app, logger)
