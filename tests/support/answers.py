"""Answers of a Lambda function to API Gateway."""

import base64
import gzip
import json
from typing import Any


def json_of(answer: dict[str, Any]) -> Any:
    """The JSON of the body, which may be compressed, or an empty object without a body."""
    body = answer.get("body") or "{}"
    if not answer.get("isBase64Encoded"):
        return json.loads(body)
    assert answer["headers"]["content-encoding"] == "gzip"
    return json.loads(gzip.decompress(base64.b64decode(body, validate=True)))
