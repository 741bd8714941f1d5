"""The Iceberg REST routes that write, behind API Gateway: one commit is one DuckLake snapshot.

Deployed only with `Writes=yes`, with a role and credentials of its own.
"""

import gc
import os

from polynya.aws_lambda.api_handler import api_handler
from polynya.aws_lambda.function_lakes import FunctionLakes
from polynya.catalog.writer import open_writable_catalog
from polynya.http import writing
from polynya.http.application import create_app
from polynya.runtime.metrics import function_logger
from polynya.storage import aws

# A commit of thousands of files makes millions of rows that are in no cycle. To look for cycles
# among them after each 700 new objects, Python's default, takes a fifth of the CPU time.
gc.set_threshold(50_000, 10, 10)

logger = function_logger("commits")
lakes = FunctionLakes(os.environ, open_writable_catalog, commits=True)
app = create_app(logger, writing.operations(lakes))
aws.prepare_snapshots(lakes.aws.prepare, lakes.prepare)
handler = api_handler(app, logger)
