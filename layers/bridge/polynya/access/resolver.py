"""What a caller may read, by the policy that the settings name; it is read again every minute."""

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from ..config import Config
from ..storage import aws
from . import principals
from .policy import EVERYTHING, Policy, Rights
from .vended_credentials import table_of_session

KEPT_SECONDS = 60
"""A permission that is taken away is gone a minute later."""


class AccessResolver:
    def __init__(self, config: Config, clock: Callable[[], float] = time.monotonic) -> None:
        self._source = config.authorization
        self._vending_role = config.vending_role
        self._clock = clock
        self._policy: Policy | None = None
        self._read_at = 0.0

    def of_api(self, request_context: Mapping[str, Any]) -> Rights:
        """What the caller of the REST catalog may read.

        Raises:
            Misconfigured: the policy is missing or wrong.
            ServiceUnavailable: it cannot be read now.
        """
        policy = self._current()
        if policy is None:
            return EVERYTHING
        return policy.rights_of(
            principals.principals_of_api_caller(request_context, policy.list_claims)
        )

    def of_s3(self, user_identity: Mapping[str, Any]) -> Rights:
        """What somebody may read who asks S3 Object Lambda. Raises: as `of_api`."""
        if self._vending_role:
            session = principals.session_name(user_identity.get("arn", ""), self._vending_role)
            if session is not None:
                return _vended(session)
        policy = self._current()
        if policy is None:
            return EVERYTHING
        return policy.rights_of(principals.principals_of_s3_caller(user_identity))

    def _current(self) -> Policy | None:
        """None: the settings name none."""
        if not self._source:
            return None
        if self._policy is None or self._clock() - self._read_at > KEPT_SECONDS:
            self._policy = None  # if it cannot be read, nothing is served
            self._policy = Policy.parse(_text(self._source))
            self._read_at = self._clock()
        return self._policy


def _vended(session: str) -> Rights:
    """The catalog has looked at the policy before it vended; this is for one table only."""
    table_uuid = table_of_session(session)
    return replace(EVERYTHING, table_uuid=table_uuid) if table_uuid else Rights(())


def _text(source: str) -> str:
    """The document that AUTHORIZATION is, or names."""
    scheme, _, name = source.partition(":")
    if scheme not in SOURCES:
        return source
    text: str = aws.call("the authorization policy", lambda: SOURCES[scheme](name))
    return text


def _parameter(name: str) -> str:
    answer = aws.client("ssm").get_parameter(Name=name, WithDecryption=True)
    return str(answer["Parameter"]["Value"])


def _object(name: str) -> str:
    bucket, _, key = name.removeprefix("//").partition("/")
    body: bytes = aws.client("s3").get_object(Bucket=bucket, Key=key)["Body"].read()
    return body.decode()


SOURCES: dict[str, Callable[[str], str]] = {"ssm": _parameter, "s3": _object}
