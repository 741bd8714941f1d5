"""The Iceberg REST catalog behind API Gateway, as far as it reads.

Without `Writes=yes` this function gets the requests that write, too, and refuses each; otherwise
functions/commits gets them.
"""

import os

from polynya.aws_lambda.api_handler import api_handler
from polynya.aws_lambda.function_lakes import FunctionLakes
from polynya.catalog.reader import open_catalog
from polynya.http import reading
from polynya.http.application import create_app
from polynya.runtime.metrics import function_logger
from polynya.storage import aws

logger = function_logger("rest-catalog")
lakes = FunctionLakes(os.environ, open_catalog)
app = create_app(logger, reading.operations(lakes))
aws.prepare_snapshots(lakes.aws.prepare, lakes.prepare)
handler = api_handler(app, logger)
