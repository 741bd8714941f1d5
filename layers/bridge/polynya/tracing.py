"""X-Ray, if it is switched on: the time of an answer, and of its requests to AWS.

The packages come with a layer of their own; unless it is switched on they are not imported.
"""

import os
from collections.abc import Callable
from typing import Any

Handler = Callable[[Any, Any], Any]
"""A Lambda handler: (event, context) -> answer."""


def traced(handler: Handler) -> Handler:
    """Decorate a Lambda handler: with POWERTOOLS_TRACE_DISABLED=false each invocation is a
    subsegment."""
    if os.environ.get("POWERTOOLS_TRACE_DISABLED", "true").lower() not in {"false", "0"}:
        return handler
    from aws_lambda_powertools import Tracer

    tracer = Tracer(patch_modules=("botocore",))
    # An answer may hold vended credentials.
    wrapped: Handler = tracer.capture_lambda_handler(handler, capture_response=False)
    return wrapped
