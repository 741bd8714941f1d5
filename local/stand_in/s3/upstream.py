"""The S3 behind the stand-in: its endpoint, and signatures for it."""

from collections.abc import Mapping

import botocore.session
from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials

from .address import S3Address

# GET and HEAD have no body to hash.
UNSIGNED_PAYLOAD = Config(s3={"payload_signing_enabled": False})
URL_EXPIRES_S = 900


class S3Upstream:
    """An S3 to which requests go in path style, with the credentials of this process."""

    def __init__(self, endpoint: str | None, region: str) -> None:
        self.endpoint = (endpoint or f"https://s3.{region}.amazonaws.com").rstrip("/")
        self._region = region
        self._credentials = own_credentials()

    def signature(
        self, method: str, address: S3Address, headers: Mapping[str, str]
    ) -> dict[str, str]:
        """The headers that sign a request with `headers`; none without credentials."""
        if self._credentials is None:
            return {}
        request = AWSRequest(method, self.endpoint + address.canonical_target, dict(headers))
        request.context["client_config"] = UNSIGNED_PAYLOAD
        credentials = self._credentials.get_frozen_credentials()
        S3SigV4Auth(credentials, "s3", self._region).add_auth(request)
        return {name: value for name, value in request.headers.items() if name not in headers}

    def presigned_url(self, method: str, address: S3Address, headers: Mapping[str, str]) -> str:
        """A URL that needs no credentials if `headers` are sent with it; valid for 15 minutes."""
        url = self.endpoint + address.canonical_target
        if self._credentials is None:
            return url
        request = AWSRequest(method, url, dict(headers))
        credentials = self._credentials.get_frozen_credentials()
        S3SigV4QueryAuth(credentials, "s3", self._region, expires=URL_EXPIRES_S).add_auth(request)
        return str(request.url)


def own_credentials() -> Credentials | None:
    """Credentials from the usual AWS variables and profiles; None: there are none."""
    provider = botocore.session.get_session().get_component("credential_provider")
    # It would ask the network for the role of an EC2 instance, which takes seconds elsewhere.
    provider.remove("iam-role")
    return provider.load_credentials()
