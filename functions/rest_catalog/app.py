"""The Iceberg REST catalog behind API Gateway, as far as it reads.

Without `Writes=yes` this function gets the requests that write, too, and refuses each; otherwise
functions/commits gets them.
"""

import os
from functools import cache

from polynya.aws_lambda.api_handler import api_handler
from polynya.catalog.lakes import Lakes
from polynya.catalog.reader import Catalog, open_catalog
from polynya.http import reading
from polynya.http.application import create_app
from polynya.runtime.metrics import function_logger
from polynya.runtime.settings import Config
from polynya.storage import aws

logger = function_logger("rest-catalog")


@cache
def lakes() -> Lakes[Catalog]:
    """The lakes of the settings; no database is connected yet.

    Raises:
        Misconfigured: a setting is missing or not usable.
    """
    return Lakes(Config.from_env(os.environ), open_catalog, environ=os.environ)


app = create_app(logger, reading.operations(lambda: lakes()))
aws.prepare_snapshots(lambda: lakes().prepare())
handler = api_handler(app, logger)
