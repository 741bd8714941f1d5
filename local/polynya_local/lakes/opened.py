"""Opens a lake of any address as one that Polynya can serve: in PostgreSQL, with data in S3.

`opened` copies a catalog that needs it; `readable` also serves a local folder as S3, for a command
that reads the lake in this process.
"""

import json
import os
import signal
import sqlite3
import sys
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path

import duckdb
from pg8000.exceptions import Error as PostgresError
from polynya.ducklake import queries
from polynya.ducklake.connection.database import Database
from polynya.ducklake.connection.url import connection_arguments
from polynya.runtime.errors import Misconfigured, PolynyaError, ServiceUnavailable
from polynya.storage.aws import AwsSettings, Keys
from polynya.storage.s3_locations import is_s3
from polynya_pipeline.common.errors import say
from polynya_pipeline.common.progress import waiting

from .. import reach
from ..processes.postgres import Database as MirrorDatabase
from ..processes.postgres import Server, postgres
from ..s3.local_bucket import CatalogFiles, LocalBucket
from ..s3.loopback import loopback
from ..s3.proxy import S3Proxy
from ..s3.requests import S3Address
from .address import Address, PostgresLake, parse
from .catalog_file import checked
from .catalog_source import Catalog
from .catalogs import catalog_of
from .lake_files import BUCKET, DataPath, bucket_of, data_path_of, failure, no_lake
from .mirror import Mirror, data_paths
from .mirrored_tables import SCHEMA

DEFAULT_SCHEMA = "public"

UNREADABLE = (OSError, sqlite3.Error, duckdb.Error, PostgresError)
"""What reading a catalog raises."""


@dataclass(frozen=True, slots=True)
class LocalLake:
    """A lake in PostgreSQL, which may be a mirror of another one."""

    database: str = field(repr=False)
    """Its URL, which may hold a password."""
    metadata_schema: str
    s3_endpoint: str | None = None
    """The endpoint of the S3 with its data; None: AWS."""
    folder: Path | None = None
    """The local folder with its data, which is served as a bucket; None: the data is in S3."""
    mirror: Mirror | None = None
    """The mirror in the database; None: the database is the catalog itself."""
    file: Path | None = None
    """The file of the catalog; None: it is in PostgreSQL."""
    folder_warning: str = ""
    """As the function `folder_warning` gives it."""

    @property
    def name(self) -> str:
        """What people call it: the name of its file, or of its database and schema."""
        if self.mirror is not None:
            return Path(self.mirror.name).name
        database = connection_arguments(self.database)["database"]
        is_default = self.metadata_schema == DEFAULT_SCHEMA
        return str(database) if is_default else f"{database}.{self.metadata_schema}"

    @property
    def name_of_catalog(self) -> str:
        """Where its catalog is, without a password."""
        if self.mirror is not None:
            return str(Path(self.mirror.name).resolve())
        arguments = connection_arguments(self.database)
        return f"{arguments.get('host')}:{arguments.get('port')}/{arguments['database']}"

    @property
    def aws(self) -> AwsSettings:
        """The settings with which its data is read."""
        return AwsSettings.from_s3_endpoint(self.s3_endpoint, local_keys() if self.folder else None)

    @property
    def is_mirror(self) -> bool:
        """Whether the database is a copy that this process has made."""
        return self.mirror is not None

    def staleness(self) -> str:
        """The reason why an older state is shown, and its age; empty: the newest state is shown."""
        return self.mirror.staleness() if self.mirror else ""


NewDatabase = Callable[[], MirrorDatabase]
"""Creates the empty database of a mirror."""


@contextmanager
def opened(
    address: str,
    metadata_schema: str,
    data_path: str | None,
    bucket: str = BUCKET,
    new_database: NewDatabase | None = None,
) -> Iterator[LocalLake]:
    """Open a lake for the block; a local folder is not served yet, and no S3 endpoint is set.

    Args:
        address: as `address.parse` reads it.
        metadata_schema: where DuckLake's tables are; in a file they are in `main`, unless they
            are in `public`.
        data_path: replaces the one that the catalog names; None: that one.
        bucket: the bucket as which a local folder with the data is served.
        new_database: creates the database of a mirror; None: a server is started for it.

    Raises:
        PolynyaError: the lake cannot be read; the message says what to do.
    """
    lake = checked(parse(address))
    if isinstance(lake, PostgresLake):
        reach.check(lake.url, metadata_schema)
        if data_path is None and _is_in_s3(lake.url, metadata_schema):
            yield LocalLake(lake.url, metadata_schema)
            return
    with ExitStack() as stack:
        new_database = new_database or partial(_databases(stack), "mirror")
        yield stack.enter_context(_mirrored(lake, metadata_schema, data_path, bucket, new_database))


Failures = dict[str, str]
"""Why lakes are not served, by their names."""


def report_not_served(name: str, error: PolynyaError, failures: Failures) -> None:
    """Say that one of several lakes is left out, and why."""
    failures[name] = str(error)
    say(f"the lake {name} is not served: {error}")


def _databases(stack: ExitStack) -> Callable[[str], MirrorDatabase]:
    """Creates databases in a server that is started for the first, and stopped with the stack."""
    server = cache(lambda: stack.enter_context(_server()))
    return lambda name: server().create_database(name)


@contextmanager
def opened_lakes(
    lakes: Mapping[str, Mapping[str, str]], failures: Failures | None = None
) -> Iterator[dict[str, LocalLake]]:
    """Open several lakes, as far as they can be opened; the others are named on stderr.

    Args:
        lakes: the settings of each by its name, as in the document LAKES; `database_url` is an
            address.
        failures: gets those that cannot be opened.

    Raises:
        PolynyaError: none of them can be opened.
    """
    with ExitStack() as stack:
        databases = _databases(stack)
        by_name: dict[str, LocalLake] = {}
        failures = {} if failures is None else failures
        failure: PolynyaError = Misconfigured("no lake is named")
        for name, settings in lakes.items():
            try:
                lake = opened(
                    settings["database_url"],
                    settings.get("metadata_schema", DEFAULT_SCHEMA),
                    _data_path(settings),
                    bucket_of(name),
                    partial(databases, f"mirror_{name}"),
                )
                by_name[name] = stack.enter_context(lake)
            except PolynyaError as error:
                report_not_served(name, error, failures)
                failure = error
        if not by_name:
            raise failure
        yield by_name


def _data_path(settings: Mapping[str, str]) -> str | None:
    """The data path that replaces the catalog's, of one of several lakes; None: there is none."""
    data_path = settings.get("data_path")
    if data_path and is_s3(data_path) and isinstance(parse(settings["database_url"]), PostgresLake):
        return None  # where its files have to be, as on AWS
    return data_path


def _is_in_s3(url: str, schema: str) -> bool:
    """Whether the data is in S3; True if the catalog cannot be read."""
    try:
        with closing(Database(url, schema)) as database, database.transaction() as con:
            stored = queries.lake().run(con).data_path
        return data_path_of(stored, None).folder is None
    except PolynyaError:
        # The command itself reads the lake without a mirror, and says what is wrong.
        return True


@contextmanager
def _mirrored(
    lake: Address,
    metadata_schema: str,
    data_path: str | None,
    bucket: str,
    new_database: NewDatabase,
) -> Iterator[LocalLake]:
    catalog = catalog_of(lake)
    with closing(catalog), ExitStack() as stack:
        with translate_read_errors(catalog.name):
            stored = data_paths(catalog)
        schema = _schema(metadata_schema, catalog, stored)
        data = data_path_of(stored[schema], data_path, bucket)
        with waiting(f"Copying the catalog of {catalog.name}"):
            database = new_database()
            mirror = Mirror(catalog, schema, database, data.renamed)
            stack.callback(mirror.close)
            with translate_read_errors(catalog.name):
                mirror.begin()
        _check_folder(data, mirror, catalog.name, is_alone=bucket == BUCKET)
        warning = "" if data_path else folder_warning(lake, data.folder)
        if warning:
            say(warning)
        file = None if isinstance(lake, PostgresLake) else lake.file
        yield LocalLake(database.url, SCHEMA, None, data.folder, mirror, file, warning)


@contextmanager
def translate_read_errors(name: str) -> Iterator[None]:
    """Turn errors of reading or writing a catalog into errors for the user.

    Raises:
        PolynyaError: the catalog cannot be read or written.
    """
    try:
        yield
    except UNREADABLE as error:
        raise failure(name, error) from None


def folder_warning(lake: Address, folder: Path | None) -> str:
    """A warning if the catalog names a data folder that is not beside it; empty: it does not."""
    if folder is None:
        return ""
    real = folder.resolve()
    if not isinstance(lake, PostgresLake) and real.is_relative_to(lake.file.resolve().parent):
        return ""
    return (
        f"the catalog says that the lake's data is in {real}, which is not beside the catalog: "
        "clients could read the files in this folder. If that is right, give --data-path with "
        "this folder; if somebody else made the catalog, look at it first"
    )


def _schema(metadata_schema: str, catalog: Catalog, schemas: Collection[str]) -> str:
    """The schema with DuckLake's tables; `public`, the option's default, means a file's default.

    Args:
        schemas: those that have them.
    """
    is_default = metadata_schema == DEFAULT_SCHEMA and metadata_schema not in schemas
    schema = catalog.default_schema if is_default else metadata_schema
    if schema not in schemas:
        raise no_lake(catalog.name, schema, sorted(schemas))
    return schema


def _check_folder(data: DataPath, mirror: Mirror, catalog: str, *, is_alone: bool) -> None:
    """Raise if the data folder is missing; a lake whose rows are all inlined has none yet.

    Args:
        is_alone: no other lake is served with it, which may want another folder to start in.
    """
    if data.folder is not None and not data.folder.is_dir() and mirror.row_count("data_file"):
        beside = f"{catalog}.files"  # DuckLake's default place for the data
        path = beside if Path(beside).is_dir() else "PATH"
        remedy = (
            f"If the lake was moved, give --data-path {path}. A relative data path is relative to "
            "the folder where a command starts: start polynya where you start DuckDB"
            if is_alone
            else "A relative data path is relative to the folder where a command starts: write "
            f"data_path = {json.dumps(str(Path(path).absolute()) if path == beside else path)} "
            "into the table of this lake in a file for --lakes"
        )
        raise Misconfigured(
            f"there is no folder {data.folder}, in which the lake's data should be. {remedy}"
        )


@contextmanager
def _server() -> Iterator[Server]:
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        # The default would end this process, and leave PostgreSQL running.
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    with ExitStack() as stack:
        try:
            server = stack.enter_context(postgres())
        except RuntimeError as error:
            raise ServiceUnavailable(str(error)) from None
        yield server


LOCAL_KEYS = Keys("local", "local")
"""The local S3 accepts any keys, and S3 clients need some."""


def local_keys() -> Keys | None:
    """Keys for a local S3; None: the environment has some."""
    return None if "AWS_ACCESS_KEY_ID" in os.environ else LOCAL_KEYS


@contextmanager
def readable(
    address: str, metadata_schema: str, data_path: str | None, s3_endpoint: str | None
) -> Iterator[LocalLake]:
    """Open a lake for the block, as of now.

    Args:
        s3_endpoint: of data that is not in a local folder; None: AWS.

    Raises:
        PolynyaError: as `opened`.
    """
    with opened(address, metadata_schema, data_path) as lake:
        if lake.folder is None:
            yield replace(lake, s3_endpoint=s3_endpoint)
            return
        files = [lake.file] if lake.file else []
        with local_s3(lake.folder, CatalogFiles.from_paths(files)) as endpoint:
            yield replace(lake, s3_endpoint=endpoint)


def local_s3(folder: Path, catalogs: CatalogFiles | None = None) -> AbstractContextManager[str]:
    """Serve a folder as a bucket of S3 on the loopback interface; yields the endpoint."""
    bucket = S3Proxy(LocalBucket(BUCKET, folder, catalogs))
    return loopback(lambda request: bucket.answer(request, S3Address.from_request(request)))
