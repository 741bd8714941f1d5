"""The routes of the HTTP API: which function answers which request.

These are the routes of template.yaml; a test compares them. Which one API Gateway selects:
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-routes.html
"""

import re
from collections.abc import Collection

READING = "rest-catalog"
WRITING = "commits"

TABLE = "/v1/{prefix}/namespaces/{namespace}/tables/{table}"

ROUTES = {
    "ANY /{proxy+}": READING,
    "POST /{proxy+}": WRITING,
    "PUT /{proxy+}": WRITING,
    "PATCH /{proxy+}": WRITING,
    "DELETE /{proxy+}": WRITING,
    # These change nothing.
    f"POST {TABLE}/metrics": READING,
    f"POST {TABLE}/plan": READING,
    f"POST {TABLE}/tasks": READING,
}
"""The name of the function for each route; routes of functions that are not deployed are not."""


def function_of(method: str, path: str, functions: Collection[str]) -> str:
    """The name of the function that answers a request.

    Args:
        functions: the names of the deployed functions.
    """
    found = [
        route
        for route, function in ROUTES.items()
        if function in functions and _matches(route, method, path)
    ]
    # Without one API Gateway answers 404; `ANY /{proxy+}` leaves out the path "/" only.
    return ROUTES[max(found, key=_specificity)] if found else READING


def _matches(route: str, method: str, path: str) -> bool:
    of_method, _, template = route.partition(" ")
    if of_method not in {"ANY", method}:
        return False
    parts = (
        ".+" if part.endswith("+}") else "[^/]+" if part.startswith("{") else re.escape(part)
        for part in re.split(r"(\{[^}]+\})", template)
    )
    return re.fullmatch("".join(parts), path) is not None


def _specificity(route: str) -> tuple[bool, bool]:
    """A full match wins over a greedy one, then a method over ANY."""
    return "+}" not in route, not route.startswith("ANY ")
