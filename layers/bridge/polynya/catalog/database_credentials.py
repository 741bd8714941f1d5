"""Roles and passwords that AWS gives for the catalog database (DATABASE_CREDENTIALS)."""

import json

from ..ducklake.connection.database import CredentialsProvider
from ..runtime.errors import Misconfigured
from ..storage.aws import Clients, call

IAM = "iam"


def credentials_provider(credentials: str, aws: Clients) -> CredentialsProvider | None:
    """The source of role and password that DATABASE_CREDENTIALS names; None: the URL has them."""
    if not credentials:
        return None
    return (
        IamCredentials(aws)
        if credentials == IAM
        else SecretsManagerCredentials(credentials.removeprefix("secret:"), aws)
    )


class SecretsManagerCredentials:
    """The role and password of a secret in Secrets Manager: `{"username": …, "password": …}`, the
    form that RDS's rotation writes. The secret is read once, and again after `invalidate`."""

    def __init__(self, secret_id: str, aws: Clients) -> None:
        self._secret_id, self._aws = secret_id, aws
        self._cached: tuple[str, str] | None = None

    def __call__(self, host: str, port: int, user: str) -> tuple[str, str]:
        if self._cached is None:
            self._cached = self._read()
        return self._cached

    def invalidate(self) -> None:
        """Read the secret again for the next connection."""
        self._cached = None

    def _read(self) -> tuple[str, str]:
        answer = call(
            "the database secret",
            lambda: self._aws("secretsmanager").get_secret_value(SecretId=self._secret_id),
        )
        try:
            secret = json.loads(answer["SecretString"])
            return str(secret["username"]), str(secret["password"])
        except (KeyError, TypeError, ValueError):
            # The message quotes neither the secret nor the parser's error, which quotes the secret.
            raise Misconfigured(
                'the database secret must be JSON: {"username": …, "password": …}'
            ) from None


class IamCredentials:
    """A token of RDS's IAM authentication, which this process signs for each connection."""

    def __init__(self, aws: Clients) -> None:
        self._aws = aws

    def __call__(self, host: str, port: int, user: str) -> tuple[str, str]:
        token: str = call(
            "the database token",
            lambda: self._aws("rds").generate_db_auth_token(
                DBHostname=host, Port=port, DBUsername=user
            ),
        )
        return user, token

    def invalidate(self) -> None:
        """Do nothing: each connection gets a new token."""
