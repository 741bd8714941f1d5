"""The lakes of a deployment, by name: their settings, databases, and sources of passwords.

One lake is that of the settings. A deployment with the setting LAKES has more, which a document
describes, by name:

    {"sales":    {"metadata_schema": "sales", "data_path": "s3://data/sales/"},
     "research": {"database_url": "postgresql://polynya@other:5432/research?sslrootcert=rds",
                  "database_credentials": "secret:research-reader",
                  "commits": {"database_credentials": "secret:research-writer"},
                  "data_path": "s3://research/", "hidden_types": "time", "writes": "yes"}}

An entry has settings of the lake under their names in lower case (`OF_A_LAKE`), and `data_path`:
where all files of the lake are. `commits` has what differs in the function that writes. All others
are those of the deployment. The lake of the settings may have an entry with its `data_path` alone.

The name of a lake is in the keys of its virtual files, and in the paths of the REST catalog: what
is found by one of them belongs to one lake.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from threading import RLock
from typing import Any, Generic, Protocol, TypeVar

from ..ducklake.connection.database import CredentialsProvider, Database, IdleConnection
from ..mapping.schemas import check_hidden_types
from ..runtime.budget import CircuitBreaker
from ..runtime.errors import BadRequest, Misconfigured, NoSuchKey, NoSuchWarehouse, PolynyaError
from ..runtime.metrics import use_lake
from ..runtime.settings import Config, StorageSettings
from ..storage import aws
from ..storage.file_cache import FileCache, MemoryCache, file_cache
from ..storage.objects import (
    ObjectReader,
    OperatorDocument,
    bucket_and_key,
    json_of,
    object_reader,
    reader_below,
)
from ..virtual_files.names import UUID
from ..virtual_files.virtual_files import VirtualFiles
from .reader import Catalog
from .warehouse import Warehouse

IAM = "iam"

OF_A_LAKE = frozenset(
    (
        *("database_url", "database_credentials", "metadata_schema", "delivery"),
        *("virtual_bucket", "snapshot_limit", "build_seconds", "chunk_files", "hidden_types"),
        *("format_version_3", "inexact_columns", "column_defaults", "scan_planning", "writes"),
        *("staging_location", "custom_properties", "view_dialects"),
    )
)
"""The settings that an entry of the document may have."""

OF_COMMITS = frozenset(("database_url", "database_credentials"))
"""The settings that may differ in the function that writes."""

SLOW_FAILURES = 2
"""How many requests to a lake fail slowly, one after the other, before others fail at once."""

Environment = Mapping[str, str]
Configs = Mapping[str, Config | PolynyaError]
"""The settings of each lake by its name, or what is wrong with them."""

DATA_PATH = re.compile(r"s3://[^/\s]+(/(?!\.{1,2}(/|$))[^/\0-\x1f]+)*/?")
"""Without a part that a client may take for a way to another directory."""


def lakes_of(document: str, environ: Environment, *, commits: bool = False) -> Configs:
    """The lakes of the document LAKES.

    Args:
        environ: the settings of the deployment.
        commits: for the function that writes.

    Raises:
        Misconfigured: the document is wrong as a whole.
    """
    entries = json_of(document, _wrong)
    if not isinstance(entries, dict):
        raise _wrong("it must be an object: the name of a lake to its settings")
    configs: dict[str, Config | PolynyaError] = {}
    for name, entry in entries.items():
        try:
            configs[name] = _config(name, entry, environ, commits=commits)
        except PolynyaError as error:
            # The other lakes are served.
            configs[name] = error
    _check_data_paths(configs)
    return configs


def _config(name: str, entry: Any, environ: Environment, *, commits: bool) -> Config:
    # A table's uuid follows the prefix in the keys of the lake of the settings.
    if not name or Warehouse.of_prefix(name) != Warehouse(name) or re.fullmatch(UUID, name):
        raise _wrong(f"{name!r} cannot be the name of a lake")
    own = dict(entry) if isinstance(entry, dict) else {}
    data_path = own.pop("data_path", None)
    if not isinstance(data_path, str) or not DATA_PATH.fullmatch(data_path):
        raise _wrong(f"{name}: data_path must be s3://bucket/prefix/")
    data_path = f"{data_path.rstrip('/')}/"
    if environ.get("DATABASE_URL") and name == (environ.get("WAREHOUSE") or "lake"):
        if own:
            raise _wrong(f"{name}: the entry of the lake of the settings may have data_path only")
        return replace(Config.from_env(environ), data_path=data_path)
    of_commits = own.pop("commits", {})
    if not isinstance(of_commits, dict) or not of_commits.keys() <= OF_COMMITS:
        raise _wrong(f"{name}: `commits` may have {' and '.join(sorted(OF_COMMITS))}")
    if unknown := own.keys() - OF_A_LAKE:
        raise _wrong(f"{name}: a lake has no setting {min(unknown)!r}")
    own |= of_commits if commits else {}
    if not all(isinstance(value, str) for value in own.values()):
        raise _wrong(f"{name}: each setting must be a text")
    texts = {setting.upper(): value for setting, value in own.items()}
    settings = _inherited(name, texts, environ)
    if texts.get("DELIVERY") == "materialize" and "VIRTUAL_BUCKET" not in settings:
        settings["VIRTUAL_BUCKET"] = (bucket_and_key(data_path) or ("",))[0]
    config = Config.from_env(settings | texts | {"WAREHOUSE": name})
    return replace(config, lake=name, data_path=data_path)


def _inherited(name: str, texts: Environment, environ: Environment) -> dict[str, str]:
    """The settings of the deployment, as they are for a lake of the document."""
    settings = {key: value for key, value in environ.items() if key != "LAKES"}
    if "DATABASE_URL" in texts:  # those of the deployment are for its own database
        settings.pop("DATABASE_CREDENTIALS", None)
    settings |= settings_of_lake(name, {}, environ)
    delivery = settings.get("DELIVERY") or "object-lambda"
    if texts.get("DELIVERY", delivery) != delivery:
        settings.pop("VIRTUAL_BUCKET", None)  # it is for the other delivery
    return settings


def settings_of_lake(name: str, own: Mapping[str, Any], environ: Environment) -> dict[str, str]:
    """The settings of one of several lakes: where its files are by its name, and its own ones.

    Args:
        own: its entry in the document, or a part of it.
        environ: the settings of the deployment.
    """
    settings = {"VIRTUAL_PREFIX": f"{virtual_prefix(environ)}/{name}"}
    if staging := environ.get("STAGING_LOCATION"):
        settings["STAGING_LOCATION"] = f"{staging.rstrip('/')}/{name}"
    return settings | {key.upper(): text for key, text in own.items() if key != "commits"}


def virtual_prefix(environ: Environment) -> str:
    """The key prefix of the virtual files of all lakes, without slashes around it."""
    return (environ.get("VIRTUAL_PREFIX") or "polynya").strip("/")


def _check_data_paths(configs: dict[str, Config | PolynyaError]) -> None:
    """Replace the settings of lakes whose data path is within another one's, or around it."""
    paths = sorted((c.data_path, name) for name, c in configs.items() if isinstance(c, Config))
    # In this order those within a path follow it.
    around = ("", "")
    for path, name in paths:
        if around[0] and path.startswith(around[0]):
            for wrong in (name, around[1]):
                configs[wrong] = _wrong(f"{wrong}: its data path is within that of another lake")
        else:
            around = path, name


def _wrong(reason: str) -> Misconfigured:
    return Misconfigured(f"the document of the lakes (LAKES) is wrong: {reason}")


class Closable(Protocol):
    """What is opened for a lake."""

    @property
    def database(self) -> Database:
        """The database of the lake."""


Opened = TypeVar("Opened", bound=Closable)


class Lakes(Generic[Opened]):
    """The lakes of the deployment. Each is opened when it is first asked for."""

    def __init__(
        self,
        config: Config,
        open_lake: "Callable[[Config, Lakes[Any]], Opened]",
        *,
        environ: Environment = os.environ,
        commits: bool = False,
    ) -> None:
        """Read nothing yet.

        Args:
            config: the settings of the deployment, with the name of the virtual bucket.
            open_lake: opens a lake; no connection is made yet.
            environ: where the settings come from.
            commits: for the function that writes.
        """
        self.config = config
        """The settings of the deployment, and of its own lake, if they name a database."""
        self._open = open_lake
        self._document: OperatorDocument[Configs] | None = None
        if config.lakes:
            environ = {**environ, "VIRTUAL_BUCKET": config.storage.virtual_bucket}
            self._document = OperatorDocument(
                "the document of the lakes",
                config.lakes,
                lambda text: lakes_of(text, environ, commits=commits),
            )
        self._opened: dict[str, tuple[Config, Opened]] = {}
        self._idle: dict[tuple[str, str, float], IdleConnection] = {}
        self._caches: dict[StorageSettings, FileCache] = {}
        self._memory = MemoryCache()
        self._lock = RLock()

    @property
    def are_several(self) -> bool:
        """Whether there is a document: callers do not see lakes in which they have no rights."""
        return self._document is not None

    def prepare(self) -> None:
        """Open what can be opened without asking anybody anything: a lake without a document."""
        if not self.are_several:
            self.named(None)

    def names(self) -> list[str]:
        """The names of all lakes. Raises: as `named`."""
        with self._lock:
            of_document = {} if self._document is None else self._document.current()
        own = [self.config.warehouse] if self.has_own else []
        return [*dict.fromkeys([*own, *of_document])]

    def named(self, name: str | None) -> Opened:
        """The lake of this name; None: the one that is meant if the client names none.

        Raises:
            NoSuchWarehouse: there is none.
            BadRequest: the client has to name one.
            Misconfigured: the document is not usable, or what it says of this lake.
            ServiceUnavailable: the document cannot be read now.
        """
        with self._lock:
            return self._opened_with(self._config(name))

    def of_document(self, name: str) -> str:
        """The name as `Config.lake`: empty for the lake of the settings."""
        is_own = not self.are_several or (self.has_own and name == self.config.warehouse)
        return "" if is_own else name

    def of_key(self, key: str) -> str:
        """The lake that the key of a virtual file names, as `Config.lake`.

        Raises:
            NoSuchKey: it names none.
        """
        # <prefix>/<name of the lake>/<uuid of the table>/…; without a name in the own lake's keys.
        first = key.removeprefix(f"{self.config.files.virtual_prefix}/").partition("/")[0]
        if not self.are_several or re.fullmatch(UUID, first):
            return ""
        if not self.of_document(first):
            raise no_such_file()
        return first

    def with_key(self, key: str) -> Opened:
        """The lake of a virtual file.

        Raises:
            NoSuchKey: there is none.
            Misconfigured, ServiceUnavailable: as `named`.
        """
        try:
            return self.named(self.of_key(key) or None)
        except (NoSuchWarehouse, BadRequest):
            raise no_such_file() from None

    def database(self, config: Config, timeout_seconds: float = 12) -> Database:
        """The database of a lake. Lakes in schemas of one PostgreSQL share the connection."""
        if not self.are_several:
            return open_database(config, timeout_seconds)
        key = (config.database_url, config.database_credentials, timeout_seconds)
        idle = self._idle.setdefault(key, IdleConnection())
        return open_database(config, timeout_seconds, idle, CircuitBreaker(SLOW_FAILURES))

    def cache(self, config: Config) -> FileCache:
        """The cache of a lake's generated files, whose keys name the lake."""
        if config.storage not in self._caches:
            self._caches[config.storage] = file_cache(config.storage, self._memory)
        return self._caches[config.storage]

    def close(self) -> None:
        """Close all databases that are open."""
        with self._lock:
            for name in [*self._opened]:
                self._close(name)

    @property
    def has_own(self) -> bool:
        """Whether the settings of the deployment are those of a lake."""
        return bool(self.config.database_url)

    def _config(self, name: str | None) -> Config:
        if self._document is None:
            use_lake(self.config.warehouse, is_one_of_several=False)
            return self.config  # the one lake, which refuses other names itself
        if name is None and not self.has_own:
            raise BadRequest("this catalog has several lakes: name one of them as the warehouse")
        name = name or self.config.warehouse
        own = self.config if self.has_own and name == self.config.warehouse else None
        config = self._document.current().get(name, own)
        if config is None:
            self._close(name)
            raise no_such_warehouse(name)
        use_lake(name, is_one_of_several=True)
        if isinstance(config, PolynyaError):
            raise config
        return config

    def _opened_with(self, config: Config) -> Opened:
        if config.lake in self._opened:
            config_before, opened = self._opened[config.lake]
            if config_before == config:
                return opened
            self._close(config.lake)
        check_hidden_types(config.files.hidden_types)
        opened = self._open(config, self)
        self._opened[config.lake] = config, opened
        return opened

    def _close(self, lake: str) -> None:
        if (entry := self._opened.pop(lake, None)) is not None:
            entry[1].database.close()


def no_such_warehouse(name: str) -> NoSuchWarehouse:
    """The answer if there is no lake, or if the caller has no rights in it."""
    return NoSuchWarehouse(f"Warehouse does not exist: {name}")


def no_such_file() -> NoSuchKey:
    """The same for a virtual file."""
    return NoSuchKey("no virtual file has this name")


def open_database(
    config: Config,
    timeout_seconds: float = 12,
    idle: IdleConnection | None = None,
    breaker: CircuitBreaker | None = None,
) -> Database:
    """The catalog database; no connection is made yet."""
    return Database(
        config.database_url,
        config.metadata_schema,
        timeout_seconds,
        credentials_provider(config.database_credentials),
        idle,
        breaker,
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


def catalog_of(config: Config, lakes: Lakes[Any], reader: ObjectReader) -> Catalog:
    """A lake as a catalog; the database is not connected yet.

    Args:
        reader: of the lake's own files.
    """
    database = lakes.database(config)
    reader = reader_below(reader, config.data_path)
    return Catalog(config, database, VirtualFiles(config, database, lakes.cache(config), reader))


def catalogs(config: Config) -> Lakes[Catalog]:
    """The lakes of the settings as catalogs; no database is connected yet."""
    return Lakes(config, lambda config, lakes: catalog_of(config, lakes, object_reader()))
