"""How a job tells that it has failed."""

import json
import sys

from .errors import JobError


def fail(error: JobError, as_json: bool) -> int:
    """Say it; gives the exit code."""
    if as_json:
        document = {"error": type(error).__name__, "message": str(error)}
        print(json.dumps(document, ensure_ascii=False))
    print(f"polynya: {error}", file=sys.stderr)
    return error.exit_code
