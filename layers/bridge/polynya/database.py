"""The database of the settings, and who we are to it: asked for when a connection is opened."""

import json

from .config import Config
from .ducklake.connection.database import CredentialsProvider, Database
from .errors import Misconfigured
from .storage import aws

IAM = "iam"


def open_database(config: Config, timeout_seconds: float = 12) -> Database:
    """The catalog database; no connection is made yet."""
    return Database(
        config.database_url,
        config.metadata_schema,
        timeout_seconds,
        credentials_provider(config.database_credentials),
    )


def credentials_provider(credentials: str) -> CredentialsProvider | None:
    """Who gives role and password, by what DATABASE_CREDENTIALS says; None: the URL does."""
    if not credentials:
        return None
    return (
        IamCredentials()
        if credentials == IAM
        else SecretsManagerCredentials(credentials.removeprefix("secret:"))
    )


class SecretsManagerCredentials:
    """The role and password that Secrets Manager holds, in the form that RDS's rotation keeps:
    `{"username": …, "password": …}`. They are asked for anew when the database refuses them."""

    def __init__(self, secret_id: str) -> None:
        self._secret_id = secret_id
        self._kept: tuple[str, str] | None = None

    def __call__(self, host: str, port: int, user: str) -> tuple[str, str]:
        if self._kept is None:
            self._kept = self._current()
        return self._kept

    def invalidate(self) -> None:
        self._kept = None

    def _current(self) -> tuple[str, str]:
        answer = aws.call(
            "the database secret",
            lambda: aws.client("secretsmanager").get_secret_value(SecretId=self._secret_id),
        )
        try:
            secret = json.loads(answer["SecretString"])
            return str(secret["username"]), str(secret["password"])
        except (KeyError, TypeError, ValueError):
            # Not what is in it, nor the parser's error, which quotes it.
            raise Misconfigured(
                'the database secret must be JSON: {"username": …, "password": …}'
            ) from None


class IamCredentials:
    """A token of RDS's IAM authentication: signed here, good for opening one connection."""

    def __call__(self, host: str, port: int, user: str) -> tuple[str, str]:
        token: str = aws.call(
            "the database token",
            lambda: aws.client("rds").generate_db_auth_token(
                DBHostname=host, Port=port, DBUsername=user
            ),
        )
        return user, token

    def invalidate(self) -> None:
        pass  # each is new
