"""X-Ray, where it is asked for: the time of an answer, and of what it asks of AWS.

The packages come with a layer of their own; without it nothing of them is imported.
"""

import os
from collections.abc import Callable
from typing import Any

Handler = Callable[[dict[str, Any], Any], Any]


def traced(handler: Handler) -> Handler:
    """The handler; with POWERTOOLS_TRACE_DISABLED=false each invocation is a subsegment."""
    if os.environ.get("POWERTOOLS_TRACE_DISABLED", "true").lower() not in {"false", "0"}:
        return handler
    from aws_lambda_powertools import Tracer

    tracer = Tracer(patch_modules=("botocore",))
    # An answer may hold vended credentials.
    wrapped: Handler = tracer.capture_lambda_handler(handler, capture_response=False)
    return wrapped
