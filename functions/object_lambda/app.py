"""GetObject, HeadObject and ListObjects behind the S3 Object Lambda access point."""

import os
from dataclasses import replace

from polynya.aws_lambda.function_lakes import FunctionLakes
from polynya.aws_lambda.object_handler import object_handler
from polynya.http.file_by_key import open_files
from polynya.runtime.metrics import function_logger
from polynya.runtime.settings import Config
from polynya.storage import aws
from polynya.storage.file_cache import resolve_bucket

logger = function_logger("object-lambda")


def config_with_bucket(config: Config, clients: aws.Clients) -> Config:
    """The settings with the name of the virtual bucket, read from SSM.

    Raises:
        Misconfigured: the parameter cannot be read.
        ServiceUnavailable: SSM does not answer.
    """
    return replace(config, storage=resolve_bucket(config.storage, clients))


lakes = FunctionLakes(os.environ, open_files, config_with_bucket)
# Not `lakes.prepare`: it asks SSM.
aws.prepare_snapshots(lakes.aws.prepare)
handler = object_handler(lakes, logger)
