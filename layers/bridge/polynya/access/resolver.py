"""The rights of a caller, by the policy that the settings name."""

import time
from collections.abc import Callable
from dataclasses import replace

from ..config import Config
from ..storage import aws
from ..storage.s3 import body_of, bucket_and_key
from ..web.events import RequestContext, UserIdentity
from . import principals
from .policy import EVERYTHING, Policy, Rights
from .vended_credentials import table_of_session

REFRESH_SECONDS = 60
"""A permission that is taken away is gone a minute later."""


class AccessResolver:
    """Reads the policy, again every minute, and looks up callers in it."""

    def __init__(self, config: Config, clock: Callable[[], float] = time.monotonic) -> None:
        """Nothing is read yet; `clock` gives seconds."""
        self._source = config.authorization
        self._vended_roles = [one for one in (config.vending_role, config.writer_role) if one]
        self._clock = clock
        self._policy: Policy | None = None
        self._read_at = 0.0

    def api_rights(self, request_context: RequestContext) -> Rights:
        """What a caller of the REST catalog may read and write.

        Raises:
            Misconfigured: the policy is missing or wrong.
            ServiceUnavailable: the policy cannot be read now.
        """
        policy = self._current_policy()
        if policy is None:
            return EVERYTHING
        names = principals.principals_of_api_caller(request_context, policy.list_claims)
        return policy.rights(names)

    def s3_rights(self, user_identity: UserIdentity) -> Rights:
        """What a caller of S3 Object Lambda may read.

        Raises:
            Misconfigured, ServiceUnavailable: as `api_rights`.
        """
        for role in self._vended_roles:
            session = principals.session_name(user_identity.get("arn", ""), role)
            if session is not None:
                return _session_rights(session)
        policy = self._current_policy()
        if policy is None:
            return EVERYTHING
        return policy.rights(principals.principals_of_s3_caller(user_identity))

    def _current_policy(self) -> Policy | None:
        """The policy; None if the settings name none."""
        if not self._source:
            return None
        if self._policy is None or self._clock() - self._read_at > REFRESH_SECONDS:
            self._policy = None  # nothing is served while it cannot be read
            self._policy = Policy.parse(_document(self._source))
            self._read_at = self._clock()
        return self._policy


def _session_rights(session: str) -> Rights:
    """The rights of vended credentials, also of a writer's: to read one table, which the catalog
    checked when it vended."""
    table_uuid = table_of_session(session)
    return replace(EVERYTHING, table_uuid=table_uuid) if table_uuid else Rights(())


def _document(source: str) -> str:
    """The policy's document, which AUTHORIZATION holds or names."""
    what = "the authorization policy"
    if source.startswith("ssm:"):
        return aws.ssm_parameter(what, source.removeprefix("ssm:"))
    if found := bucket_and_key(source):
        text: str = aws.call(what, lambda: _object_text(*found))
        return text
    return source


def _object_text(bucket: str, key: str) -> str:
    return body_of(aws.client("s3").get_object(Bucket=bucket, Key=key)).decode()
