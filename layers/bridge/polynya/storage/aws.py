"""boto3 clients with timeouts, and AWS's errors as Polynya's.

boto3 is imported when it is first needed, because the import is slow; with SnapStart, before the
snapshot.
"""

import os
import random
import re
import ssl
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from hashlib import sha256
from importlib import import_module
from threading import RLock
from typing import Any, NamedTuple

from ..runtime import budget
from ..runtime.errors import Misconfigured, PolynyaError, ServiceUnavailable
from ..runtime.metrics import observe
from ..runtime.prefetch import AT_A_TIME

ATTEMPTS = 2
"""How often a request is sent at most, if it fails for a transient reason."""

CONNECT_SECONDS = 1.0

DEFAULT_REGION = "us-east-1"

READ_SECONDS = (5.0, 2.0, 1.0, 0.5, 0.25)
"""The read timeouts of clients, longest first; a request gets the longest that fits its budget."""

LONGEST_READ_SECONDS = {"dynamodb": 2.0}
"""Services with a shorter limit: a cache that is slower is of no use."""


def read_seconds(service: str) -> float:
    """The read timeout of a request that fits the time budget, also if it is sent twice."""
    limit = LONGEST_READ_SECONDS.get(service, READ_SECONDS[0])
    longest = min(limit, budget.seconds_left() / ATTEMPTS)
    return next((s for s in READ_SECONDS if s <= longest), READ_SECONDS[-1])


class Keys(NamedTuple):
    """A key of AWS, or of a store that stands in for it."""

    access_key: str
    secret_key: str


@dataclass(frozen=True, slots=True)
class AwsSettings:
    """Where clients find AWS, or a service in its place. boto3 finds missing values in the
    variables of the environment and in files."""

    region: str | None = None
    endpoints: Mapping[str, str] = field(default_factory=dict)
    """By service."""
    keys: Keys | None = field(default=None, repr=False)

    @classmethod
    def from_s3_endpoint(cls, endpoint: str | None, keys: Keys | None = None) -> "AwsSettings":
        """The settings for an S3, in the region that the environment names.

        Args:
            endpoint: None: AWS.
            keys: None: those of the environment.
        """
        return cls(region_of(os.environ), {"s3": endpoint} if endpoint else {}, keys)


class Clients:
    """boto3 clients, one per service and read timeout, each made when first needed.

    boto3 fixes the timeout when a client is made.
    """

    def __init__(self, settings: AwsSettings | None = None) -> None:
        """Make none yet.

        Args:
            settings: None: boto3 finds all of them.
        """
        self._settings = settings or AwsSettings()
        self._clients: dict[tuple[str, float], Any] = {}
        self._held_session: Any = None
        self._lock = RLock()

    def __call__(self, service: str) -> Any:
        """The client of a service, with a read timeout that fits the request's time budget.

        Raises:
            OutOfTime: no time is left in the budget.
        """
        budget.check()
        seconds = read_seconds(service)
        with self._lock:  # boto3 cannot make two at once
            if (service, seconds) not in self._clients:
                self._clients[service, seconds] = self._new_client(service, seconds)
            return self._clients[service, seconds]

    def object_lambda(self, endpoint: str) -> Any:
        """The client for WriteGetObjectResponse.

        Args:
            endpoint: of a stand-in on one machine; empty: AWS.
        """
        from botocore.config import Config as ClientConfig

        with self._lock:
            if (endpoint, 0) not in self._clients:
                # A streamed body cannot be signed: its hash would have to be known first.
                config = ClientConfig(
                    signature_version="s3v4",
                    s3={"payload_signing_enabled": False},
                    inject_host_prefix=not endpoint,
                )
                client = self._session().client("s3", endpoint_url=endpoint or None, config=config)
                self._clients[endpoint, 0] = client
            return self._clients[endpoint, 0]

    def credentials(self) -> Any:
        """The credentials of all clients as they are now; None: there are none.

        Raises:
            BotoCoreError: boto3 cannot get them.
        """
        held = self._session().get_credentials()
        return None if held is None else held.get_frozen_credentials()

    def region(self) -> str:
        """The region of all services."""
        return str(self._session().region_name or DEFAULT_REGION)

    def prepare(self) -> None:
        """Read the files that all clients need, without a request."""
        for service in SERVICES:
            # The session keeps the models that this reads. Without keys boto3 would request the
            # role's.
            self._session().client(service, aws_access_key_id="none", aws_secret_access_key="none")

    def _new_client(self, service: str, read_seconds: float) -> Any:
        from botocore.config import Config as ClientConfig

        config = ClientConfig(
            connect_timeout=min(CONNECT_SECONDS, read_seconds),
            read_timeout=read_seconds,
            retries={"total_max_attempts": ATTEMPTS, "mode": "standard"},
            max_pool_connections=AT_A_TIME,
            # Otherwise signed URLs have an older signature, which not every S3 accepts.
            signature_version="s3v4" if service == "s3" else None,
        )
        endpoint = self._settings.endpoints.get(service)
        client = self._session().client(service, endpoint_url=endpoint, config=config)
        if service == "sts":
            send_hash_of_body(client)
        # Also called before a second attempt.
        client.meta.events.register("before-send", lambda **_: budget.check())
        client.meta.events.register("before-call", _started)
        for event in ("after-call", "after-call-error"):
            client.meta.events.register(event, partial(_ended, service))
        return client

    def _session(self) -> Any:
        """The session of all clients, which reads timestamps fast.

        botocore leaves each to dateutil: 0.14 s for a list of a thousand objects. The AWS CLI
        replaces the parser in the same way.
        """
        with self._lock:
            if self._held_session is None:
                import boto3
                from botocore.session import get_session

                session = get_session()
                parsers = session.get_component("response_parser_factory")
                parsers.set_parser_defaults(timestamp_parser=timestamp)
                keys = self._settings.keys or (None, None)
                region = self._settings.region
                self._held_session = boto3.Session(
                    *keys, region_name=region, botocore_session=session
                )
            return self._held_session


def send_hash_of_body(client: Any) -> None:
    """Let a client sign the hash of each body as a header, as AWS's other SDKs do.

    The STS of SeaweedFS accepts no signature without it.
    """

    def add(request: Any, **_: Any) -> None:
        request.headers["X-Amz-Content-SHA256"] = sha256(request.body or b"").hexdigest()

    client.meta.events.register("before-sign", add)


def _started(context: dict[str, Any], **_: Any) -> None:
    context["polynya_started"] = time.perf_counter()


def _ended(service: str, context: dict[str, Any], **_: Any) -> None:
    observe("AwsCalls", time.perf_counter() - context["polynya_started"], service=service)


NOT_AVAILABLE = re.compile("AccessDenied|NotFound|NoSuch|UnrecognizedClient")
"""Error codes that only the operator can correct."""


def call(what: str, request: Callable[[], Any], use: str = "read") -> Any:
    """Send a request to AWS, and return the answer.

    Args:
        what: what the request reads, for the error's message.
        use: the use that the request makes of it: `read` or `written to`.

    Raises:
        Misconfigured: it does not exist, or this role may not use it so.
        ServiceUnavailable: AWS does not answer now.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        return request()
    except ClientError as error:
        raise failure(what, error.response["Error"]["Code"], use) from None
    except BotoCoreError as error:
        raise ServiceUnavailable(f"{what} cannot be {use} now: {type(error).__name__}") from None


def failure(what: str, code: str, use: str = "read") -> PolynyaError:
    """The error for a code of AWS. Arguments: as `call`."""
    if NOT_AVAILABLE.search(code):
        return Misconfigured(f"{what} cannot be {use}: {code}")
    return ServiceUnavailable(f"{what} cannot be {use} now: {code}")


def ssm_parameter(what: str, name: str, clients: Clients) -> str:
    """The value of a parameter of SSM's Parameter Store, decrypted.

    Args:
        what: what the parameter holds, for the error's message.

    Raises:
        Misconfigured: it does not exist, or this role may not read it.
        ServiceUnavailable: SSM does not answer now.
    """
    answer = call(what, lambda: clients("ssm").get_parameter(Name=name, WithDecryption=True))
    return str(answer["Parameter"]["Value"])


def timestamp(value: Any) -> datetime:
    """The time of a timestamp of AWS: ISO 8601, a number of seconds since 1970, or a date of HTTP.

    Raises:
        ValueError: it is none of these.
    """
    from botocore.utils import parse_timestamp

    if isinstance(value, str) and value.endswith("Z"):
        with suppress(ValueError):
            return datetime.fromisoformat(value)
    parsed: datetime = parse_timestamp(value)
    return parsed


def region_of(environ: Mapping[str, str]) -> str:
    """The region that an environment names; boto3 does not read AWS_REGION."""
    return environ.get("AWS_DEFAULT_REGION") or environ.get("AWS_REGION") or DEFAULT_REGION


SLOW_MODULES = ("boto3", "numpy", "duckdb")
"""The modules that functions import when they first need them; not each function has all."""

SERVICES = ("dynamodb", "rds", "s3", "secretsmanager", "ssm", "sts")
"""The services that requests use; botocore reads 10 MB of JSON about them."""


def prepare_snapshots(*opens: Callable[[], object]) -> None:
    """With SnapStart, do before the snapshot what each instance would do before its first answer.

    Lambda starts one instance, keeps a snapshot of its memory, and starts all others from it, even
    weeks later. So the snapshot must not contain anything that is secret, ends, or must differ
    between instances: no connection, no credentials, no time. The seeds of random numbers are
    renewed afterwards.

    Args:
        opens: functions that read the settings and make the objects that serve requests, without a
            request of their own.
    """
    if os.environ.get("AWS_LAMBDA_INITIALIZATION_TYPE") != "snap-start":
        return
    # A package of Lambda's runtime.
    from snapshot_restore_py import register_after_restore, register_before_snapshot

    register_before_snapshot(_prepare_snapshot, opens)
    register_after_restore(_reseed)


def _prepare_snapshot(opens: Iterable[Callable[[], object]]) -> None:
    for name in SLOW_MODULES:
        with suppress(ImportError):
            import_module(name)
    for open_ in opens:
        with suppress(PolynyaError):  # a wrong setting: the first request gets this error
            open_()


def _reseed() -> None:
    # It is seeded at its import, and chooses how long writers wait for each other.
    random.seed()
    # OpenSSL gets its seed from the kernel once, and then seldom.
    ssl.RAND_add(os.urandom(48), 48)
