"""GetObject, HeadObject and ListObjects behind the S3 Object Lambda access point."""

import os

from polynya.aws_lambda.function_lakes import FunctionLakes
from polynya.aws_lambda.object_handler import object_handler
from polynya.http.file_by_key import open_files
from polynya.runtime.metrics import function_logger
from polynya.storage import aws

logger = function_logger("object-lambda")
lakes = FunctionLakes(os.environ, open_files)
# Not `lakes.prepare`: it asks SSM.
aws.prepare_snapshots(lakes.aws.prepare)
handler = object_handler(lakes, logger)
