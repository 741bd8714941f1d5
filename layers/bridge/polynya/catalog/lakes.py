"""The lakes of a deployment: each is opened when it is first asked for, and found by its name.

The name of a lake is in the keys of its virtual files, and in the paths of the REST catalog: each
of these belongs to one lake.
"""

import re
from collections.abc import Callable, Mapping
from functools import partial
from threading import RLock
from typing import Any, Generic, Protocol, TypeVar

from ..access.caller import Caller
from ..access.policy import AccessResolver
from ..access.vended_credentials import CredentialVending, vending_of_settings
from ..ducklake.connection.database import Database
from ..ducklake.connection.pool import ConnectionPool
from ..mapping.schemas import check_hidden_types
from ..runtime.budget import CircuitBreaker
from ..runtime.errors import BadRequest, NoSuchKey, NoSuchWarehouse, PolynyaError
from ..runtime.metrics import invocation, use_lake
from ..runtime.prefetch import map_in_parallel
from ..runtime.settings import Config
from ..storage.aws import Clients
from ..storage.file_cache import FileCache, MemoryCache, Store, file_cache
from ..storage.object_store import ObjectStore, s3_store
from ..storage.objects import reader_below
from ..storage.operator_documents import OperatorDocument
from ..virtual_files.contexts import PART_OF_A_LAKE, RunSoon
from ..virtual_files.names import UUID
from ..virtual_files.virtual_files import VirtualFiles
from .database_credentials import credentials_provider
from .lakes_document import Configs, Environment, lakes_of
from .loaded_tables import CAPACITY, LoadedTables
from .warehouse import no_such_warehouse

STATEMENT_SECONDS = 25
"""The time limit of one statement that generates a file: first builds take longer than other
requests."""

SLOW_FAILURES = 2
"""How many requests to a lake fail slowly, one after the other, before others fail at once."""


class Closable(Protocol):
    """An opened lake, which can be closed."""

    @property
    def database(self) -> Database:
        """The database of the lake."""


Opened = TypeVar("Opened", bound=Closable)


class Shared:
    """The resources that all lakes of a process share: connections to databases, generated files,
    and results that were read in the last states of a catalog."""

    def __init__(
        self,
        most_idle: int = 1,
        new_cache: Callable[[Config, Clients, MemoryCache], FileCache] | None = None,
        objects: ObjectStore | None = None,
        build_elsewhere: Callable[[str, str], object] | None = None,
        run_soon: RunSoon | None = None,
        searches: Callable[[Config], Store | None] = lambda config: None,
        aws: Clients | None = None,
        new_vending: Callable[[Config, Clients], CredentialVending | None] = vending_of_settings,
        client_properties: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        """Nothing is opened before it is needed.

        Args:
            most_idle: how many connections to a PostgreSQL are kept open between requests.
            new_cache: makes the cache of a lake's generated files; None: it is in the service that
                the settings name.
            objects: where the lakes' own files are; None: in S3.
            build_elsewhere: builds a large file of a lake in another process, given the lake as
                `Config.lake` and the key; None: this process builds all.
            run_soon: runs work for the next request beside this one; None: there is no such work.
            searches: keeps the rows that a long search by key has found in a lake for the next
                request; None: they are not kept.
            aws: None: the clients of the environment.
            new_vending: makes the vending of credentials for the files of a lake's tables; None:
                none are vended.
            client_properties: gives the properties of the host that getConfig sends to clients.
        """
        self.aws = aws or Clients()
        self.searches = searches
        self.new_vending, self.client_properties = new_vending, client_properties
        self.objects = objects or s3_store(self.aws)
        """Where the lakes' own files are."""
        self._most_idle, self._new_cache = most_idle, new_cache or _cache_of_settings
        self._build_elsewhere, self._run_soon = build_elsewhere, run_soon
        self._pools: dict[tuple[str, str, float], ConnectionPool] = {}
        self._files: dict[str, tuple[Config, VirtualFiles]] = {}
        self._loaded: dict[str, tuple[Config, LoadedTables]] = {}
        self._memory = MemoryCache()
        self._lock = RLock()

    def pool(self, config: Config, timeout_seconds: float) -> ConnectionPool:
        """The connections with these credentials and this time limit of a statement."""
        key = (config.database_url, config.database_credentials, timeout_seconds)
        with self._lock:
            return self._pools.setdefault(key, ConnectionPool(self._most_idle))

    def virtual_files(self, config: Config, new_database: Callable[[], Database]) -> VirtualFiles:
        """The virtual files of a lake with these settings.

        Args:
            new_database: gives the one in which they are generated when they are read.
        """
        with self._lock:
            config_before, files = self._files.get(config.lake, (None, None))
            if files is None or config_before != config:
                reader = reader_below(self.objects, config.data_path)
                elsewhere = self._build_elsewhere and partial(self._build_elsewhere, config.lake)
                database, cache = new_database(), self._new_cache(config, self.aws, self._memory)
                files = VirtualFiles(config, database, cache, reader, elsewhere, self._run_soon)
                self._files[config.lake] = config, files
            return files

    def loaded_tables(self, config: Config) -> LoadedTables:
        """The answers to loadTable that are kept for a lake with these settings."""
        with self._lock:
            config_before, loaded = self._loaded.get(config.lake, (None, None))
            if loaded is None or config_before != config:
                loaded = LoadedTables(CAPACITY // (PART_OF_A_LAKE if config.lake else 1))
                self._loaded[config.lake] = config, loaded
            return loaded


def _cache_of_settings(config: Config, clients: Clients, memory: MemoryCache) -> FileCache:
    return file_cache(config.storage, clients, memory)


class Lakes(Generic[Opened]):
    """The lakes of the deployment. Each is opened when it is first asked for."""

    def __init__(
        self,
        config: Config,
        open_lake: "Callable[[Config, Lakes[Any]], Opened]",
        *,
        environ: Environment,
        commits: bool = False,
        shared: Shared | None = None,
    ) -> None:
        """Nothing is read before it is needed.

        Args:
            config: the settings of the deployment, with the name of the virtual bucket.
            open_lake: opens a lake; no connection is made yet.
            environ: where the settings come from.
            commits: for the function that writes.
            shared: the resources that the lakes share with those of other operations in this
                process; None: none.
        """
        self.config = config
        """The settings of the deployment, and of its own lake, if they name a database."""
        self._open = open_lake
        self.shared = shared or Shared()
        self.access = AccessResolver(config, self.shared.aws)
        """The rights of callers."""
        self._document: OperatorDocument[Configs] | None = None
        if config.lakes:
            environ = {**environ, "VIRTUAL_BUCKET": config.storage.virtual_bucket}
            self._document = OperatorDocument(
                "the document of the lakes",
                config.lakes,
                lambda text: lakes_of(text, environ, commits=commits),
                self.shared.aws,
            )
        self._opened: dict[str, tuple[Config, Opened]] = {}
        self._lock = RLock()

    @property
    def are_several(self) -> bool:
        """Whether there is a document: then callers do not see lakes in which they have no
        rights."""
        return self._document is not None

    def prepare(self) -> None:
        """Open all that needs no request: the lake of the settings, if there is no document."""
        if not self.are_several:
            self.named(None)

    def names(self) -> list[str]:
        """The names of all lakes. Raises: as `named`."""
        documented = self._documented()
        own = [self.config.warehouse] if self.has_own else []
        return [*dict.fromkeys([*own, *documented])]

    def named(self, name: str | None) -> Opened:
        """The lake of this name; None: the default one, for a client that names none.

        Raises:
            NoSuchWarehouse: there is none.
            BadRequest: the client has to name one.
            Misconfigured: the document, or its entry for this lake, is not usable.
            ServiceUnavailable: the document cannot be read now.
        """
        with self._lock:
            return self._opened_with(self._config(name))

    def failures(self, ask: Callable[[Opened], object]) -> dict[str, PolynyaError]:
        """The errors of `ask` for lakes, by their names. Raises: as `named`, about the document.

        Lakes of one database are asked one after the other, with one connection, and databases in
        parallel.
        """

        def failures_in(names: list[str]) -> dict[str, PolynyaError]:
            failures = {}
            for name in names:
                try:
                    with invocation():  # each has metrics of its own
                        ask(self.named(name))
                except PolynyaError as error:
                    failures[name] = error
            return failures

        databases: dict[str, list[str]] = {}
        for name in self.names():
            config = self._documented().get(name, self.config)
            url = config.database_url if isinstance(config, Config) else ""
            databases.setdefault(url, []).append(name)
        by_database = map_in_parallel(failures_in, [*databases.values()])
        return {name: error for failures in by_database for name, error in failures.items()}

    def visible(self, name: str | None, caller: Caller) -> Opened:
        """The lake of this name, for a caller of the REST catalog. Args: as `named`.

        Raises:
            NoSuchWarehouse: there is none, or there are several and the caller has no rights in it.
            BadRequest, Misconfigured, ServiceUnavailable: as `named`, or the policy.
        """
        if not self.are_several:
            return self.named(name)
        lake = "" if name is None else self.config_name(name)
        # Before the lake is looked up, so that a hidden one cannot be distinguished from a missing
        # one.
        if not self.access.catalog_rights(caller, lake).tables:
            raise no_such_warehouse(name or self.config.warehouse)
        return self.named(name)

    def config_name(self, name: str) -> str:
        """The name as `Config.lake`: empty for the lake of the settings."""
        is_own = not self.are_several or (self.has_own and name == self.config.warehouse)
        return "" if is_own else name

    def config_name_of_key(self, key: str) -> str:
        """The lake that the key of a virtual file names, as `Config.lake`.

        Raises:
            NoSuchKey: it names none.
        """
        # <prefix>/<name of the lake>/<uuid of the table>/…; without a name in the own lake's keys.
        first = key.removeprefix(f"{self.config.files.virtual_prefix}/").partition("/")[0]
        if not self.are_several or re.fullmatch(UUID, first):
            return ""
        if not self.config_name(first):
            raise no_such_file()
        return first

    def lake_of_key(self, key: str, caller: Caller) -> Opened:
        """The lake of a virtual file.

        Raises:
            NoSuchKey: there is none, or there are several and the caller has no rights in it.
            Misconfigured, ServiceUnavailable: as `named`.
        """
        name = self.config_name_of_key(key)
        # As in `visible`.
        if self.are_several and not self.access.file_rights(caller, name).tables:
            raise no_such_file()
        try:
            return self.named(name or None)
        except (NoSuchWarehouse, BadRequest):
            raise no_such_file() from None

    def database(self, config: Config, timeout_seconds: float = 12) -> Database:
        """The database of a lake. Lakes in schemas of one PostgreSQL share the connections."""
        # A lake that does not answer delays no others.
        breaker = CircuitBreaker(SLOW_FAILURES) if self.are_several else None
        pool = self.shared.pool(config, timeout_seconds)
        return open_database(config, self.shared.aws, timeout_seconds, pool, breaker)

    def virtual_files(self, config: Config) -> VirtualFiles:
        """The virtual files of a lake."""
        return self.shared.virtual_files(config, lambda: self.database(config, STATEMENT_SECONDS))

    def close(self) -> None:
        """Close all databases that are open."""
        with self._lock:
            for name in [*self._opened]:
                self._close(name)

    @property
    def has_own(self) -> bool:
        """Whether the settings of the deployment are those of a lake."""
        return bool(self.config.database_url)

    def _documented(self) -> Configs:
        """The settings of the lakes of the document."""
        with self._lock:
            return {} if self._document is None else self._document.current()

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


def no_such_file() -> NoSuchKey:
    """The error for a virtual file that does not exist, or that the caller may not see."""
    return NoSuchKey("no virtual file has this name")


def open_database(
    config: Config,
    aws: Clients,
    timeout_seconds: float = 12,
    pool: ConnectionPool | None = None,
    breaker: CircuitBreaker | None = None,
) -> Database:
    """The catalog database; no connection is made yet."""
    return Database(
        config.database_url,
        config.metadata_schema,
        timeout_seconds,
        credentials_provider(config.database_credentials, aws),
        pool,
        breaker,
    )
