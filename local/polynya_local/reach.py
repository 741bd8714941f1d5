"""Checks that a command can reach the catalog database and S3, and says precisely why it cannot.

The Lambda functions give fewer details to their clients. No message holds the password.
"""

import os
import socket
import ssl
from contextlib import closing
from typing import Any
from urllib.parse import urlsplit

from pg8000.exceptions import DatabaseError, InterfaceError
from pg8000.native import Connection
from polynya.ducklake.connection.url import connection_arguments
from polynya.runtime.errors import Misconfigured, PolynyaError, ServiceUnavailable
from polynya.storage.aws import region_of
from polynya.storage.objects import body_of

SECONDS = 10

SCHEMAS = """
SELECT n.nspname FROM pg_catalog.pg_class AS c
JOIN pg_catalog.pg_namespace AS n ON n.oid = c.relnamespace
WHERE c.relname = 'ducklake_metadata' ORDER BY n.nspname"""

REASONS: list[tuple[type[BaseException], str]] = [
    (ConnectionRefusedError, "connection refused"),
    (socket.gaierror, "unknown host"),
    (TimeoutError, f"no answer within {SECONDS} s"),
    (FileNotFoundError, "no such socket"),
    (UnicodeError, "not a host name"),
]


def check(url: str, metadata_schema: str) -> None:
    """Connect once, and look for a DuckLake in the schema.

    Args:
        url: the URL of the catalog database.

    Raises:
        Misconfigured: the server refuses the connection, or the schema has no DuckLake.
        ServiceUnavailable: no connection, or no answer within 10 seconds; with host and port.
    """
    arguments = connection_arguments(url)
    try:
        con = Connection(**arguments, timeout=SECONDS, application_name="polynya")
        with closing(con):
            schemas = [name for [name] in con.run(SCHEMAS)]
    # Errors of TLS are not reported here, like missing grants: the first query reports them.
    except ssl.SSLError:
        return
    except (DatabaseError, InterfaceError, OSError, UnicodeError) as error:
        if error.args == ("Server refuses SSL",):  # pg8000's text
            return
        raise _failure(url, arguments, error) from None
    if metadata_schema not in schemas:
        where = f"of the database {arguments['database']!r} at {_place(arguments)}"
        names = ", ".join(map(repr, schemas))
        raise Misconfigured(
            f"no DuckLake catalog in the PostgreSQL schema {metadata_schema!r} {where}; "
            + (f"schemas that have one: {names}" if names else "no other schema has one")
        )


NO_CREDENTIALS = (
    "there are no credentials for S3, where the lake's data is: set AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
)
NOT_ACCEPTED = frozenset(
    ("ExpiredToken", "InvalidAccessKeyId", "InvalidToken", "SignatureDoesNotMatch")
)
"""What S3 answers to credentials that are wrong or too old."""


def check_store(bucket: str, key: str | None, s3_endpoint: str | None) -> str | None:
    """Read one byte of a file of the lake.

    Args:
        key: of the file; None: the lake has none, and only the bucket is checked.
        s3_endpoint: None: Amazon's.

    Returns:
        What is wrong with that file alone; None: nothing.

    Raises:
        Misconfigured: there are no credentials, or S3 does not let them read the file.
        ServiceUnavailable: S3 cannot be reached.
    """
    import boto3
    from botocore.config import Config
    from botocore.exceptions import BotoCoreError, ClientError

    from .s3.proxy import own_credentials

    where = f"S3 at {s3_endpoint}" if s3_endpoint else "Amazon S3"
    config = Config(connect_timeout=5, read_timeout=10, retries={"total_max_attempts": 2})
    try:
        credentials = own_credentials()
        if credentials is None:
            raise Misconfigured(NO_CREDENTIALS)
        keys = credentials.get_frozen_credentials()
        client = boto3.client(
            "s3",
            region_of(os.environ),
            endpoint_url=s3_endpoint,
            aws_access_key_id=keys.access_key,
            aws_secret_access_key=keys.secret_key,
            aws_session_token=keys.token,
            config=config,
        )
        if key is None:
            client.head_bucket(Bucket=bucket)
        else:
            body_of(client.get_object(Bucket=bucket, Key=key, Range="bytes=0-0"))
    except ClientError as error:
        return _answered(where, bucket, key, error.response)
    except (BotoCoreError, ValueError) as error:  # ValueError: an endpoint is not a URL
        remedy = "" if s3_endpoint else "; --s3-endpoint names an S3 that is not Amazon's"
        words = " ".join(str(error).split()).rstrip(".")
        raise ServiceUnavailable(f"{where} cannot be read: {words}{remedy}") from None
    return None


def _answered(where: str, bucket: str, key: str | None, response: dict[str, Any]) -> str | None:
    """What is wrong with the file alone; raises if no file of the lake can be read."""
    code = str(response.get("Error", {}).get("Code", ""))
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    if code in NOT_ACCEPTED:
        raise Misconfigured(f"{where} does not accept the credentials ({code}): correct AWS_…")
    if code == "NoSuchBucket" or (status == 404 and key is None):
        raise Misconfigured(
            f"{where} has no bucket {bucket!r}, in which the lake's data should be: "
            "--s3-endpoint names another S3, and --data-path another bucket"
        )
    # 416: the file is empty, and has no first byte.
    if status in (404, 416):
        return f"a file that the catalog names is gone from the bucket {bucket!r} ({code})"
    if status == 403 and key is not None:
        raise Misconfigured(
            f"{where} does not let these credentials read the newest file of the lake in the "
            f"bucket {bucket!r} ({code}): they need s3:GetObject on it, or the file is gone"
        )
    if status == 403:
        return None  # who may read files need not be allowed to list them
    raise ServiceUnavailable(f"{where} answers {code or status} for the bucket {bucket!r}")


def _failure(url: str, arguments: dict[str, Any], error: Exception) -> PolynyaError:
    """The error to raise for a connection that failed."""
    parts = urlsplit(url)
    if "@" in parts.path + parts.query + parts.fragment:  # the host may be part of the password
        return Misconfigured(
            "the catalog database cannot be reached, and DATABASE_URL has an @ after its host: in "
            "a password / ? # @ are written %2F %3F %23 %40"
        )
    database = f"the catalog database at {_place(arguments)}"
    if isinstance(error, DatabaseError):
        # Before the login succeeds the server's message cannot hold rows.
        words = error.args[0]["M"] if isinstance(error.args[0], dict) else ""
        missing = "" if arguments["password"] else "; DATABASE_URL has no password"
        return Misconfigured(
            f"{database} refuses the connection: {' '.join(words.split())}{missing}"
        )
    return ServiceUnavailable(f"{database} cannot be reached: {_reason(error)}")


def _reason(error: Exception) -> str:
    cause = error.__cause__ or error
    for type_, words in REASONS:
        if isinstance(cause, type_):
            return words
    if isinstance(cause, OSError):
        return cause.strerror or type(cause).__name__
    return "it closed the connection, or is not PostgreSQL"


def _place(arguments: dict[str, Any]) -> str:
    return arguments.get("unix_sock") or f"{arguments['host']}:{arguments['port']}"
