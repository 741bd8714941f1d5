"""Credentials of the store itself for clients: its STS limits them to one table."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from polynya.runtime.errors import Misconfigured, ServiceUnavailable
from polynya.runtime.settings import ROLE

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

StsRole = Annotated[
    str | None,
    typer.Option(
        metavar="ARN",
        show_default=False,
        help="Vend credentials of the store, which its STS gives for this role (AssumeRole) with a "
        "policy for the table alone, so that data does not pass through the server. For stores "
        "that have STS, with --delivery materialize, and with --tokens or --oidc-issuer.",
    ),
]
StsEndpoint = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        show_default=False,
        help="The STS of the store, if it has another address than --s3-endpoint.",
    ),
]

PROBE = "polynya-has-no-such-file"
"""The key that the policy of a probe permits."""


@dataclass(frozen=True, slots=True)
class StoreSessions:
    """The sessions for which a store gives credentials."""

    role: str
    s3_endpoint: str
    sts_endpoint: str

    @classmethod
    def from_options(
        cls,
        role: str | None,
        sts_endpoint: str | None,
        s3_endpoint: str | None,
        *,
        is_materialized: bool,
        has_callers: bool,
    ) -> "StoreSessions | None":
        """The sessions of the options; None: the server gives keys of its own.

        Raises:
            Misconfigured: an option needs another one, or the role is not an ARN.
        """
        if role is None:
            if sts_endpoint is not None:
                raise Misconfigured("--sts-endpoint is for --sts-role: give both")
            return None
        if not ROLE.fullmatch(role):
            raise Misconfigured(
                f"--sts-role takes the ARN of a role, such as arn:aws:iam::123456789012:role/lake, "
                f"not {role!r}"
            )
        if not has_callers:
            raise Misconfigured(
                "--sts-role is for --tokens or --oidc-issuer: without them everybody would get "
                "credentials of the store"
            )
        if not is_materialized:
            raise Misconfigured(
                "--sts-role needs --delivery materialize: with object-lambda clients read files "
                "that the store does not have"
            )
        if s3_endpoint is None:
            raise Misconfigured("--sts-role needs --s3-endpoint, the address of the store")
        return cls(role, s3_endpoint, sts_endpoint or s3_endpoint)

    def settings(self) -> Mapping[str, str]:
        """The settings of the application with which it vends credentials."""
        return {"VENDING_ROLE": self.role, "WRITER_ROLE": self.role}

    def check(self, bucket: str, key: str | None) -> None:
        """Check that the store limits a session to what its policy permits.

        A store that does not limit it would give each client all rights of the role.

        Args:
            key: of a file of the lake; None: there is none.

        Raises:
            Misconfigured: the STS gives no credentials, or they permit less or more.
            ServiceUnavailable: it does not answer.
        """
        from botocore.exceptions import BotoCoreError

        location = f"{bucket}/{key or PROBE}"
        try:
            if key is not None and (code := self._refusal(location, bucket, key)):
                raise Misconfigured(
                    f"with credentials of {self.role} the newest file of the lake cannot be read "
                    f"from {self.s3_endpoint} ({code}): the role needs the rights of "
                    "docs/object-stores.md"
                )
            code = self._refusal(f"{bucket}/{PROBE}", bucket, key)
        except BotoCoreError as error:
            message = f"the STS at {self.sts_endpoint} does not answer: {type(error).__name__}"
            raise ServiceUnavailable(message) from None
        if code not in ("AccessDenied", "403"):
            raise Misconfigured(
                f"{self.s3_endpoint} does not limit credentials to the policy of their session "
                f"({code or 'it gave another file'}): clients could read all that "
                f"{self.role} may"
            )

    def _refusal(self, permitted: str, bucket: str, key: str | None) -> str:
        """The error code of reading a file, or of listing the bucket without one; empty: success.

        Args:
            permitted: the only object that the credentials permit to read, as `<bucket>/<key>`.
            key: of the file; None: the bucket is listed.
        """
        from botocore.exceptions import ClientError

        client = self._client("s3", self.s3_endpoint, self._credentials(permitted))
        try:
            if key is None:
                client.list_objects_v2(Bucket=bucket, MaxKeys=1)
            else:
                client.head_object(Bucket=bucket, Key=key)
        except ClientError as error:
            return _code(error)
        return ""

    def _credentials(self, permitted: str) -> Mapping[str, str]:
        from botocore.exceptions import ClientError
        from polynya.access.table_scope import S3Scope
        from polynya.access.vended_credentials import session_policy

        partition = self.role.split(":")[1]
        policy = session_policy([S3Scope(f"s3://{permitted}", False)], (), (), partition, None)
        try:
            answer = self._client("sts", self.sts_endpoint).assume_role(
                RoleArn=self.role, RoleSessionName="polynya-check", Policy=policy
            )
        except ClientError as error:
            raise Misconfigured(
                f"the STS at {self.sts_endpoint} gives no credentials for {self.role} "
                f"({_code(error)}): the server's own credentials must be allowed to assume it"
            ) from None
        credentials: Mapping[str, str] = answer["Credentials"]
        return credentials

    def _client(
        self, service: str, endpoint: str, credentials: Mapping[str, str] | None = None
    ) -> Any:
        import boto3
        from botocore.config import Config
        from polynya.storage.aws import region_of, send_hash_of_body

        keys = (
            {}
            if credentials is None
            else {
                "aws_access_key_id": credentials["AccessKeyId"],
                "aws_secret_access_key": credentials["SecretAccessKey"],
                "aws_session_token": credentials["SessionToken"],
            }
        )
        config = Config(connect_timeout=5, read_timeout=10, s3={"addressing_style": "path"})
        region = region_of(os.environ)
        client = boto3.client(service, region, endpoint_url=endpoint, config=config, **keys)
        if service == "sts":
            send_hash_of_body(client)
        return client


def _code(error: "ClientError") -> str:
    return str(error.response.get("Error", {}).get("Code", ""))
