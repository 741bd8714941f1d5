"""Amazon API Gateway's HTTP API before the Lambda functions, payload format 2.0.

https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-integrations-lambda.html

`ROUTES` are the routes of template.yaml; a test compares them. Which one API Gateway selects:
https://docs.aws.amazon.com/apigateway/latest/developerguide/http-api-develop-routes.html
"""

import base64
import json
import logging
import re
import time
from collections.abc import Collection, Mapping
from typing import Any
from urllib.parse import parse_qsl, unquote
from uuid import uuid4

from polynya_local.messages import PER_CONNECTION, Headers, Request, Response, to_text

from .http_server import from_text
from .lambda_function import ACCOUNT, FunctionError, LambdaFunction

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
    routes = [
        route
        for route, function in ROUTES.items()
        if function in functions and _matches(route, method, path)
    ]
    # Without one API Gateway answers 404; `ANY /{proxy+}` leaves out the path "/" only.
    return ROUTES[max(routes, key=_specificity)] if routes else READING


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


logger = logging.getLogger(__name__)

API_ID = "local"
# An HTTP API has no such name, and Mangum 0.21 takes what follows the first colon for a port.
IPV6 = re.compile(r"\[[^\]]*\]")
# The answer of HTTP APIs if the function fails, or its answer is not in format 2.0.
FAILED = Response(
    500, (("Content-Type", "application/json"),), b'{"message":"Internal Server Error"}'
)


class ApiGateway:
    """Answers each request with the answer of its route's function to its event.

    `keep_encoded_path`: whether `rawPath` keeps its percent-encoding. An HTTP API decodes it once;
    a Function URL, which sends the same payload, keeps it (both captured on 2026-07-10 in
    github.com/hotsock/voker, vokerhttp/testdata). So behind an HTTP API a name with a slash
    (`a%2Fb`) arrives as two segments, which no router can find; `%1F`, which separates namespace
    levels, works both ways. The default is the HTTP API, which template.yaml deploys.
    Mangum decodes once more, from `requestContext.http.path`.
    """

    def __init__(
        self, functions: Mapping[str, LambdaFunction], *, keep_encoded_path: bool = False
    ) -> None:
        """Take the functions by their names in `routes`."""
        self._functions = functions
        self._keep_encoded_path = keep_encoded_path

    def answer(self, request: Request) -> Response:
        """The answer to one request; 500 if the function fails."""
        path = request.path if self._keep_encoded_path else unquote(request.path)
        function = self._functions[function_of(request.method, path, self._functions)]
        try:
            return response(function.invoke(payload(request, path)))
        except FunctionError:
            return FAILED  # LambdaFunction has logged it
        except (ValueError, TypeError, AttributeError):
            logger.exception("the function's answer to %s is not in format 2.0", request.path)
            return FAILED


def payload(request: Request, path: str) -> dict[str, Any]:
    """The event for a request, with `path` as its path."""
    headers = event_headers(request)
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": "$default",
        "rawPath": path,
        "rawQueryString": request.query,
        "headers": headers,
        "requestContext": {
            "accountId": ACCOUNT,
            "apiId": API_ID,
            "domainName": headers.get("host", ""),
            "domainPrefix": API_ID,
            "http": {
                "method": request.method,
                "path": path,
                "protocol": "HTTP/1.1",
                "sourceIp": "127.0.0.1",
                "userAgent": headers.get("user-agent", ""),
            },
            "requestId": str(uuid4()),
            "routeKey": "$default",
            "stage": "$default",
            "time": time.strftime("%d/%b/%Y:%H:%M:%S +0000", time.gmtime()),
            "timeEpoch": int(time.time() * 1000),
        },
        "isBase64Encoded": False,
    }
    if cookies := to_text(request.header("cookie")):
        event["cookies"] = [cookie.strip() for cookie in cookies.split(";")]
    if parameters := query_string_parameters(request.query):
        event["queryStringParameters"] = parameters
    if body := request.body.read():
        try:
            event["body"] = body.decode()
        except UnicodeDecodeError:
            event["body"] = base64.b64encode(body).decode()
            event["isBase64Encoded"] = True
    return event


def event_headers(request: Request) -> dict[str, str]:
    """The headers of an event: names in lower case, repeated ones joined by commas, no cookies."""
    headers: dict[str, str] = {}
    for name, value in request.headers:
        name = name.lower()
        if name not in PER_CONNECTION - {"content-length"} and name != "cookie":
            value = to_text(value)
            headers[name] = f"{headers[name]},{value}" if name in headers else value
    if host := headers.get("host"):
        headers["host"] = IPV6.sub("localhost", host)
    headers["x-forwarded-for"] = "127.0.0.1"
    headers["x-forwarded-proto"] = "http"
    headers["x-forwarded-port"] = headers.get("host", "").partition(":")[2] or "80"
    return headers


def query_string_parameters(query: str) -> dict[str, str]:
    """The decoded parameters, repeated ones joined by commas."""
    parameters: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        parameters[name] = f"{parameters[name]},{value}" if name in parameters else value
    return parameters


def response(answer: Any) -> Response:
    """The HTTP answer of a function's return value.

    Raises:
        ValueError, TypeError, AttributeError: it is not in format 2.0.
    """
    if not isinstance(answer, dict) or "statusCode" not in answer:
        # In format 2.0 any JSON without a statusCode is the body of a 200.
        text = answer if isinstance(answer, str) else json.dumps(answer)
        return Response(200, (("Content-Type", "application/json"),), text.encode())
    body = answer.get("body") or ""
    if answer.get("isBase64Encoded"):
        content = base64.b64decode(body, validate=True)
    else:
        content = body.encode()
    return Response(int(answer["statusCode"]), response_headers(answer), content)


def response_headers(answer: dict[str, Any]) -> Headers:
    """The headers and cookies of a function's return value."""
    headers = [
        (name, from_text(str(value))) for name, value in (answer.get("headers") or {}).items()
    ]
    cookies = [("Set-Cookie", from_text(cookie)) for cookie in answer.get("cookies") or ()]
    return (*headers, *cookies)
