"""The AWS clients: made when first needed, because boto3 is slow to import."""

import re
from collections.abc import Callable
from functools import cache
from threading import Lock
from typing import Any

from .. import budget
from ..errors import Misconfigured, ServiceUnavailable
from .parallel import AT_A_TIME

TRIES = 2
"""Of each request, where it fails in a way that may pass."""

CONNECT_SECONDS = 1.0

READ_SECONDS = (5.0, 2.0, 1.0, 0.5, 0.25)
"""How long a client waits for an answer: the first, or what the budget of a request allows."""

LONGEST = {"dynamodb": 2.0}
"""Where it is another than the first: a cache that is slower is none."""


class Clients:
    """boto3 clients, made when first needed; one per service and time to wait, for boto3 fixes that
    when a client is made. Endpoints come from AWS_ENDPOINT_URL_<…>."""

    def __init__(self) -> None:
        self._made: dict[tuple[str, float], Any] = {}
        self._lock = Lock()

    def __call__(self, service: str) -> Any:
        """Raises:
        OutOfTime: no time is left in the budget of the request.
        """
        budget.check()
        longest = min(LONGEST.get(service, READ_SECONDS[0]), budget.left() / TRIES)
        seconds = next((s for s in READ_SECONDS if s <= longest), READ_SECONDS[-1])
        with self._lock:  # boto3 cannot make two at once
            if (service, seconds) not in self._made:
                self._made[service, seconds] = _made(service, seconds)
            return self._made[service, seconds]

    def cache_clear(self) -> None:
        self._made.clear()


def _made(service: str, read_seconds: float) -> Any:
    import boto3
    from botocore.config import Config as ClientConfig

    config = ClientConfig(
        connect_timeout=min(CONNECT_SECONDS, read_seconds),
        read_timeout=read_seconds,
        retries={"total_max_attempts": TRIES, "mode": "standard"},
        max_pool_connections=AT_A_TIME,
    )
    made = boto3.client(service, config=config)
    # Before a second try too.
    made.meta.events.register("before-send", lambda **_: budget.check())
    return made


client = Clients()


NOT_THERE = re.compile("AccessDenied|NotFound|NoSuch|UnrecognizedClient")


def call(what: str, question: Callable[[], Any]) -> Any:
    """The answer of AWS to a question that is asked to get at `what`.

    Raises:
        Misconfigured: it is not there, or may not be had.
        ServiceUnavailable: not now.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return question()
    except ClientError as error:
        code = error.response["Error"]["Code"]
        if NOT_THERE.search(code):
            raise Misconfigured(f"{what} cannot be had: {code}") from None
        raise ServiceUnavailable(f"{what} cannot be had now: {code}") from None
    except BotoCoreError as error:
        raise ServiceUnavailable(f"{what} cannot be had now: {type(error).__name__}") from None


@cache
def object_lambda_client(endpoint: str) -> Any:
    """The client for WriteGetObjectResponse; `endpoint` only for a stand-in on this machine."""
    import boto3
    from botocore.config import Config as ClientConfig

    # A streamed body cannot be signed: its hash would have to be known first.
    config = ClientConfig(
        signature_version="s3v4",
        s3={"payload_signing_enabled": False},
        inject_host_prefix=not endpoint,
    )
    return boto3.client("s3", endpoint_url=endpoint or None, config=config)
