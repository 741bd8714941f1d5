"""The catalog of the settings: its database, and the source of the role and the password."""

import json

from ..ducklake.connection.database import CredentialsProvider, Database
from ..runtime.errors import Misconfigured
from ..runtime.settings import Config
from ..storage import aws
from ..storage.file_cache import file_cache
from ..storage.objects import ObjectReader
from ..virtual_files.virtual_files import VirtualFiles
from .reader import Catalog

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
    """The source of role and password that DATABASE_CREDENTIALS names; None: the URL has them."""
    if not credentials:
        return None
    return (
        IamCredentials()
        if credentials == IAM
        else SecretsManagerCredentials(credentials.removeprefix("secret:"))
    )


class SecretsManagerCredentials:
    """The role and password of a secret in Secrets Manager: `{"username": …, "password": …}`, the
    form that RDS's rotation writes. The secret is read once, and again after `invalidate`."""

    def __init__(self, secret_id: str) -> None:
        self._secret_id = secret_id
        self._cached: tuple[str, str] | None = None

    def __call__(self, host: str, port: int, user: str) -> tuple[str, str]:
        if self._cached is None:
            self._cached = self._read()
        return self._cached

    def invalidate(self) -> None:
        """Read the secret again for the next connection."""
        self._cached = None

    def _read(self) -> tuple[str, str]:
        answer = aws.call(
            "the database secret",
            lambda: aws.client("secretsmanager").get_secret_value(SecretId=self._secret_id),
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

    def __call__(self, host: str, port: int, user: str) -> tuple[str, str]:
        token: str = aws.call(
            "the database token",
            lambda: aws.client("rds").generate_db_auth_token(
                DBHostname=host, Port=port, DBUsername=user
            ),
        )
        return user, token

    def invalidate(self) -> None:
        """Do nothing: each connection gets a new token."""


def catalog_of(config: Config, reader: ObjectReader) -> Catalog:
    """The lake of the settings; the database is not connected yet.

    Args:
        reader: of the lake's own files.

    Raises:
        Misconfigured: a setting is not usable.
    """
    database = open_database(config)
    virtual_files = VirtualFiles(config, database, file_cache(config.storage), reader)
    return Catalog(config, database, virtual_files)
