"""What a request to S3 Object Lambda asks for, of the event that has it.

Source: https://docs.aws.amazon.com/AmazonS3/latest/userguide/olap-event-context.html
"""

from urllib.parse import parse_qs

from .events import ObjectLambdaEvent


def key_of(event: ObjectLambdaEvent, virtual_bucket: str) -> str:
    """The object's key."""
    # A request in path style (Spark, DuckDB with an endpoint) has the bucket's name before it, and
    # AWS does not say whether it removes that.
    return path_of(event).removeprefix(f"{virtual_bucket}/")


def path_of(event: ObjectLambdaEvent) -> str:
    """The path of the URL, which S3 has already decoded."""
    # Not urlsplit, which drops tabs, newlines and what follows a '#': a key may hold them.
    url, _, _ = event["userRequest"]["url"].partition("?")
    # MiniStack sends the path alone.
    path: str = url if url.startswith("/") else url.partition("://")[2]
    return path.partition("/")[2]


def range_of(event: ObjectLambdaEvent) -> str | None:
    """The requested range: a header, or a parameter of the URL."""
    query = parse_qs(event["userRequest"]["url"].partition("?")[2])
    return header_of(event, "Range") or next(iter(query.get("Range", [])), None)


def header_of(event: ObjectLambdaEvent, name: str) -> str | None:
    """A header of the request, if it has it."""
    # AWS passes the names on in the case in which the client wrote them.
    headers = event["userRequest"]["headers"].items()
    return next((value for key, value in headers if key.lower() == name.lower()), None)
