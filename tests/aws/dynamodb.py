"""A DynamoDB in memory, as far as the cache of generated files needs it.

Items are read, written and deleted one by one, by the key `pk`. A condition is one comparison, or
several joined by OR; an operation or a condition that is not known here is refused, so a change of
the cache's requests shows as an error. Nothing expires: the cache compares `ttl` itself.
https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_Operations_Amazon_DynamoDB.html
"""

import json
import operator
import re
from contextlib import AbstractContextManager
from decimal import Decimal
from threading import Lock
from typing import Any

from polynya_local.messages import Request, Response
from polynya_local.server.hosts import MISDIRECTED

from .stand_in import loopback

TABLE = "polynya-cache"
"""The table of the cache in `polynya serve`, and in the tests."""

COMPARISONS = {"=": operator.eq, "<=": operator.le}
COMPARISON = re.compile(r"([\w#]+) (=|<=) (:\w+)")
NOT_EXISTS = re.compile(r"attribute_not_exists\(([\w#]+)\)")

Item = dict[str, dict[str, str]]
"""Attributes by name, each `{type: value}` as in DynamoDB's JSON; binary values are base64."""


class DynamoDBError(Exception):
    """An error answer; `code` is the name of DynamoDB's exception."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class DynamoDB:
    """All tables exist, and are empty at first."""

    def __init__(self) -> None:
        self._items: dict[tuple[str, str], Item] = {}
        self._lock = Lock()

    def answer(self, request: Request) -> Response:
        """The answer to one request of a client such as boto3."""
        operation = request.header("x-amz-target").rpartition(".")[2]
        try:
            with self._lock:
                body = self._run(operation, json.loads(request.body.read()))
        except DynamoDBError as error:
            name = f"com.amazonaws.dynamodb.v20120810#{error.code}"
            return _json_response(400, {"__type": name, "message": str(error)})
        return _json_response(200, body)

    def _run(self, operation: str, parameters: dict[str, Any]) -> dict[str, Any]:
        key = parameters.get("Item") or parameters.get("Key") or {}
        place = parameters.get("TableName", ""), key.get("pk", {}).get("S", "")
        item = self._items.get(place)
        if operation == "GetItem":
            return {"Item": item} if item else {}
        if operation not in ("PutItem", "DeleteItem"):
            raise DynamoDBError("UnknownOperationException", f"{operation} is not implemented")
        if not condition_holds(parameters, item or {}):
            message = "The conditional request failed"
            raise DynamoDBError("ConditionalCheckFailedException", message)
        if operation == "PutItem":
            self._items[place] = parameters["Item"]
        else:
            self._items.pop(place, None)
        return {}


def dynamodb() -> AbstractContextManager[str]:
    """Serve an empty DynamoDB on a free port of the loopback interface; yields its endpoint."""

    def refused(reason: str) -> Response:
        return Response(MISDIRECTED, (("Content-Type", "text/plain"),), reason.encode())

    return loopback(DynamoDB().answer, refused)


def condition_holds(parameters: dict[str, Any], item: Item) -> bool:
    """Whether an item fulfils the ConditionExpression of a request; an empty item is a missing one.

    Raises:
        DynamoDBError: the expression has a form that is not known here.
    """
    expression = parameters.get("ConditionExpression")
    return expression is None or any(
        _term_holds(term, parameters, item) for term in expression.split(" OR ")
    )


def _term_holds(term: str, parameters: dict[str, Any], item: Item) -> bool:
    names = parameters.get("ExpressionAttributeNames", {})
    if match := NOT_EXISTS.fullmatch(term):
        return names.get(match[1], match[1]) not in item
    if match := COMPARISON.fullmatch(term):
        attribute = item.get(names.get(match[1], match[1]))
        value = parameters["ExpressionAttributeValues"][match[3]]
        if attribute is None or attribute.keys() != value.keys():
            return False
        return bool(COMPARISONS[match[2]](_value(attribute), _value(value)))
    raise DynamoDBError("ValidationException", f"the condition {term!r} is not implemented")


def _value(attribute: dict[str, str]) -> str | Decimal:
    [(type_, text)] = attribute.items()
    return Decimal(text) if type_ == "N" else text


def _json_response(status: int, body: dict[str, Any]) -> Response:
    headers = (("Content-Type", "application/x-amz-json-1.0"),)
    return Response(status, headers, json.dumps(body).encode())
