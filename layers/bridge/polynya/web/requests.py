"""What both functions behind API Gateway read in requests."""

import json


def asks_for_credentials(access_delegation: str) -> bool:
    """Whether a client wants credentials with a table.

    Args:
        access_delegation: the header `X-Iceberg-Access-Delegation`.
    """
    return "vended-credentials" in map(str.strip, access_delegation.split(","))


def is_commit(body: bytes) -> bool:
    """Whether a body is that of updateTable, and not of reportMetrics.

    API Gateway decodes the path: that of a commit to the table `a/metrics` is the path of a report
    about the table `a`.
    """
    try:
        found = json.loads(body or b"null")
    except ValueError:
        return False
    return isinstance(found, dict) and {"requirements", "updates"} <= found.keys()
