"""The settings: each is an environment variable of the functions, read once into frozen records.

`template.yaml` and docs/settings.md name the same settings; a test checks that.
"""

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import NamedTuple

from .errors import Misconfigured


@dataclass(frozen=True, slots=True)
class Setting:
    """One environment variable: its name, its default (None: it is required), and what it does."""

    name: str
    default: str | None
    help: str


SETTINGS = (
    Setting(
        "DATABASE_URL",
        None,
        "the PostgreSQL database of the DuckLake: postgresql://user:password@host:port/database, "
        "with ?sslmode=disable|require|verify-ca|verify-full&sslrootcert=FILE (verify-full unless "
        "the host is this machine; the file `rds` is Amazon RDS's own)",
    ),
    Setting(
        "DATABASE_CREDENTIALS",
        "",
        "where role and password come from at run time: `secret:` and the name or ARN of a secret "
        "in Secrets Manager, or `iam` for RDS's IAM authentication; empty: from DATABASE_URL",
    ),
    Setting("METADATA_SCHEMA", "public", "the PostgreSQL schema that holds DuckLake's tables"),
    Setting("WAREHOUSE", "lake", "the name of the lake: clients give it as `warehouse`"),
    Setting(
        "LAKES",
        "",
        "more lakes: `ssm:NAME` or `s3://bucket/key` of a document, or its JSON; empty: there is "
        "one lake",
    ),
    Setting("DELIVERY", "object-lambda", "where virtual files are: `object-lambda`, `materialize`"),
    Setting(
        "VIRTUAL_BUCKET",
        None,
        "the bucket of the virtual files: the alias of the Object Lambda access point, or with "
        "`materialize` a real bucket; `ssm:NAME` reads it from an SSM parameter",
    ),
    Setting("VIRTUAL_PREFIX", "polynya", "the key prefix of the virtual files"),
    Setting("CACHE_TABLE", "", "the DynamoDB table that caches generated files; empty: none"),
    Setting("CACHE_BUCKET", "", "the bucket that caches generated files over 350 KB; empty: none"),
    Setting("CACHE_TTL_DAYS", "7", "days that a generated file is kept"),
    Setting(
        "SNAPSHOT_LIMIT",
        "0",
        "how many snapshots a table lists, newest first; 0: 1000, with `materialize` 20 and those "
        "before them that Iceberg clients have committed, together at most 200",
    ),
    Setting(
        "BUILD_SECONDS",
        "0",
        "how long one request may generate files; the answer is then 503, and the next request "
        "continues; 0: 45, because S3 waits 60 s, or with `materialize` 20, because API Gateway "
        "waits 30 s",
    ),
    Setting(
        "CHUNK_FILES",
        "2048",
        "how many data files a manifest lists, on average; a sixteenth of that where new files "
        "arrive",
    ),
    Setting(
        "HIDDEN_TYPES",
        "",
        "DuckLake column types to hide, comma-separated: for clients that cannot read a table "
        "which has them, such as Spark with `time`",
    ),
    Setting(
        "FORMAT_VERSION_3",
        "when-needed",
        "columns that need Iceberg's format version 3: shown `when-needed`, where the table would "
        "be refused otherwise; `always-shown`; or `never`. The warehouse `lake+v3` shows them all",
    ),
    Setting(
        "INEXACT_COLUMNS",
        "hide",
        "columns without an exact Iceberg form: `hide` them, or `refuse` the table, and leave out "
        "its older snapshots that have some",
    ),
    Setting(
        "COLUMN_DEFAULTS",
        "serve",
        "tables with files that lack a column which has a default: `serve` them, or `refuse` the "
        "table, and leave out its older snapshots that have some, for clients that read NULL there",
    ),
    Setting(
        "CLIENTS",
        "none",
        "the clients whose faults are made up for, comma-separated, such as `spark,trino`; `all`; "
        "or `none`. Data files that lack a column with a default have it when these read them. "
        "What nothing makes up for is hidden for clients that are named one by one. With "
        "`materialize` only if COPY_DATA_FILES is `yes`",
    ),
    Setting(
        "COPY_DATA_FILES",
        "no",
        "`yes`: with `materialize` S3 copies the data files that CLIENTS changes, when a table is "
        "loaded: it stores them twice",
    ),
    Setting(
        "CUSTOM_PROPERTIES",
        "",
        "properties of tables that keep their names, comma-separated: names that your users gave, "
        "such as `team`, or beginnings, such as `pii.*`. No name that clients take for a setting "
        "of their own is served",
    ),
    Setting(
        "SCAN_PLANNING",
        "client",
        "who finds the files of a scan, unless the client's user says otherwise: `client`, from "
        "manifests, or `server`, by one request to the catalog",
    ),
    Setting(
        "AUTHORIZATION",
        "",
        "who may read which tables: `ssm:NAME` or `s3://bucket/key` of the policy, or its JSON; "
        "empty: all callers may read all tables",
    ),
    Setting(
        "VENDING_ROLE",
        "",
        "the ARN of the role whose credentials are vended, limited to one table; empty: none are",
    ),
    Setting("VENDING_SECONDS", "3600", "how long vended credentials are valid, 900 to 3600 s"),
    Setting("WRITES", "no", "`yes`: Iceberg clients may write, as far as AUTHORIZATION permits"),
    Setting(
        "VIEW_DIALECTS",
        "",
        "the dialects that a view may have SQL for besides DuckDB's, comma-separated, such as "
        "`spark,trino`. Nobody checks these texts, and whoever queries a view runs one",
    ),
    Setting(
        "STAGING_LOCATION",
        "",
        "s3://bucket/prefix where clients put the Avro files of a commit, which are read once; "
        "empty: `.polynya-staging` below the lake's data path",
    ),
    Setting(
        "EQUALITY_DELETE_KEYS",
        "2000000",
        "how many different keys the equality delete files of a commit may have",
    ),
    Setting(
        "EQUALITY_DELETE_FILES",
        "20000",
        "how many data files may be searched for them",
    ),
    Setting(
        "EQUALITY_DELETE_GB",
        "8",
        "how many GB of these files' key columns may be read",
    ),
    Setting(
        "WRITER_ROLE",
        "",
        "the ARN of the role whose credentials are vended to writers, limited to one table; empty: "
        "they get those of readers",
    ),
    Setting(
        "LOG_VALUES",
        "no",
        "`yes`: log lines of scans and plans have the values that a filter compares with, which "
        "may be rows; `no`: columns and operators only",
    ),
    Setting("EVENT_BUS", "", "the bus of EventBridge for the lake's events; only for `events`"),
    Setting(
        "EVENTS_TABLE",
        "",
        "the DynamoDB table that says which events are published; only for `events`",
    ),
    Setting(
        "REQUEST_MB",
        "64",
        "how many MB the body of a request to the catalog may have; only for `polynya serve`",
    ),
    Setting(
        "OBJECT_LAMBDA_ENDPOINT",
        "",
        "where WriteGetObjectResponse goes, and the S3 that clients are told to use; only for "
        "stand-ins on one machine",
    ),
)


SECONDS_PER_DAY = 86_400

ROLE = re.compile(r"arn:[a-z-]+:iam::[^:\s]*:role/\S+")
"""The ARN of a role; in stores other than AWS's, the account is a name, or empty."""


class Delivery(NamedTuple):
    """The defaults of a delivery."""

    snapshot_limit: int
    """For each listed snapshot, `materialize` keeps its files; with `object-lambda` it takes about
    0.5 KB of the 6 MB of an answer of Lambda."""
    client_snapshot_limit: int
    """The files of a snapshot that a client has committed were made then. If a commit takes longer
    than those of others, the client has to find the snapshot at which it began."""
    build_seconds: int


DELIVERIES = {
    "object-lambda": Delivery(1000, 1000, 45),
    "materialize": Delivery(20, 200, 20),
}

FORMAT_VERSION_3 = ("when-needed", "always-shown", "never")

INEXACT_COLUMNS = ("hide", "refuse")

COLUMN_DEFAULTS = ("serve", "refuse")

CLIENTS = frozenset(
    (
        *("clickhouse", "daft", "datafusion", "duckdb", "flink", "iceberg-go", "polars"),
        *("pyiceberg", "sail", "spark", "trino"),
    )
)
"""The clients whose faults are known (docs/clients/)."""

ALL, NONE = "all", "none"
"""Other values of the setting CLIENTS."""

NOT_MATERIALIZED = (
    "to make up for faults of clients needs the delivery object-lambda, or with materialize the "
    "setting COPY_DATA_FILES (--copy-data-files), with which S3 stores data files that are changed "
    "for them twice"
)

SCAN_PLANNING = ("client", "server")

WRITES = ("no", "yes")

COPY_DATA_FILES = ("no", "yes")

LOG_VALUES = ("no", "yes")

Texts = Mapping[str, str]
"""The text of each setting, by its name; defaults are filled in."""


class EqualityDeleteLimits(NamedTuple):
    """The limits of a commit that deletes rows by key."""

    keys: int
    files: int
    """The most data files that are searched."""
    gigabytes: int
    """The most that is read of their key columns."""


NAMES_KEY = "NAMES_KEY"
"""What a host calls `FileSettings.names_key`. It is no setting of docs/settings.md."""


@dataclass(frozen=True, slots=True)
class FileSettings:
    """The settings on which the virtual files of a table depend, besides the catalog's rows."""

    virtual_prefix: str
    """The key prefix of all virtual files, without slashes around it."""
    snapshot_limit: int
    client_snapshot_limit: int
    """As `snapshot_limit`, if Iceberg clients have committed all snapshots beyond that."""
    build_seconds: int
    chunk_files: int
    hidden_types: frozenset[str]
    """DuckLake column types."""
    format_version_3: str
    """`when-needed`, `always-shown` or `never`."""
    inexact_columns: str
    """`hide` or `refuse`."""
    column_defaults: str
    """`serve` or `refuse`."""
    clients: frozenset[str]
    """Some of `CLIENTS`."""
    custom_properties: frozenset[str]
    """Names of properties of tables, or beginnings of names that end with an asterisk."""
    names_key: str = field(default="", repr=False)
    """As `mapping.hidden_columns.Hidden`: a host that can hide columns from callers sets it, and no
    user. Empty: it cannot."""

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> "FileSettings":
        """Read these settings; all others may be missing.

        Raises:
            Misconfigured: a value is not usable.
        """
        texts = _texts(cls, environ)
        defaults = DELIVERIES[_one_of(DELIVERIES, texts, "DELIVERY")]
        snapshot_limit = _number(texts, "SNAPSHOT_LIMIT")
        return cls(
            virtual_prefix=texts["VIRTUAL_PREFIX"].strip("/"),
            snapshot_limit=snapshot_limit or defaults.snapshot_limit,
            client_snapshot_limit=snapshot_limit or defaults.client_snapshot_limit,
            build_seconds=_number(texts, "BUILD_SECONDS") or defaults.build_seconds,
            chunk_files=max(1, _number(texts, "CHUNK_FILES")),
            hidden_types=_names(texts["HIDDEN_TYPES"]),
            format_version_3=_one_of(FORMAT_VERSION_3, texts, "FORMAT_VERSION_3"),
            inexact_columns=_one_of(INEXACT_COLUMNS, texts, "INEXACT_COLUMNS"),
            column_defaults=_one_of(COLUMN_DEFAULTS, texts, "COLUMN_DEFAULTS"),
            clients=clients_of(texts["CLIENTS"], can_adapt=_can_adapt(texts)),
            custom_properties=_names(texts["CUSTOM_PROPERTIES"]),
            names_key=environ.get(NAMES_KEY, ""),
        )


@dataclass(frozen=True, slots=True)
class StorageSettings:
    """Where virtual files are for clients, and which store holds them."""

    delivery: str
    """`object-lambda` or `materialize`."""
    virtual_bucket: str
    cache_table: str
    cache_bucket: str
    cache_ttl_days: int
    copy_data_files: bool
    """With `materialize`, data files that are changed for clients are objects of their own."""

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> "StorageSettings":
        """Read these settings; all others may be missing.

        Raises:
            Misconfigured: VIRTUAL_BUCKET is missing, or a value is not usable.
        """
        texts = _texts(cls, environ)
        return cls(
            delivery=_one_of(DELIVERIES, texts, "DELIVERY"),
            virtual_bucket=texts["VIRTUAL_BUCKET"],
            cache_table=texts["CACHE_TABLE"],
            cache_bucket=texts["CACHE_BUCKET"],
            cache_ttl_days=_number(texts, "CACHE_TTL_DAYS"),
            copy_data_files=_one_of(COPY_DATA_FILES, texts, "COPY_DATA_FILES") == "yes",
        )

    @property
    def is_materialized(self) -> bool:
        """Whether virtual files are real objects in a real bucket."""
        return self.delivery == "materialize"

    @property
    def can_adapt(self) -> bool:
        """Whether clients may get other data files than those of the lake."""
        return self.copy_data_files or not self.is_materialized

    @property
    def ttl_seconds(self) -> int:
        """The lifetime of a generated file."""
        return self.cache_ttl_days * SECONDS_PER_DAY

    def location(self, key: str) -> str:
        """Where clients find a virtual file, by its key: `s3://bucket/key`."""
        return f"s3://{self.virtual_bucket}/{key}"


@dataclass(frozen=True, slots=True)
class Config:
    """All settings of a function: its files, their storage, and where the function runs."""

    files: FileSettings
    storage: StorageSettings
    database_url: str = field(repr=False)
    """It may contain a password."""
    database_credentials: str = field(repr=False)
    metadata_schema: str
    warehouse: str
    lakes: str = field(repr=False)
    """Where the other lakes of the deployment are described; empty: there is one lake."""
    scan_planning: str
    """`client` or `server`: the default for clients."""
    authorization: str
    vending_role: str
    vending_seconds: int
    writes: bool
    """Whether Iceberg clients may write, as far as `authorization` permits."""
    view_dialects: frozenset[str]
    """In lower case."""
    staging_location: str
    """Without a slash at its end; empty: a directory below the lake's data path."""
    equality_delete_keys: int
    equality_delete_files: int
    equality_delete_gb: int
    writer_role: str
    log_values: bool
    """Whether log lines have the values that a filter compares with."""
    event_bus: str
    events_table: str
    request_mb: int
    object_lambda_endpoint: str
    lake: str = ""
    """The name of a lake of the document LAKES; empty: it is the lake of the settings."""
    data_path: str = ""
    """Where all files of the lake are: the functions neither read nor write others, and vend no
    credentials for them. With a slash at its end; empty: they may be anywhere."""

    @property
    def equality_deletes(self) -> EqualityDeleteLimits:
        """The limits of a commit that deletes rows by key."""
        keys, files = self.equality_delete_keys, self.equality_delete_files
        return EqualityDeleteLimits(keys, files, self.equality_delete_gb)

    def check_data_path(self, data_path: str) -> None:
        """Check the data path in the lake's catalog.

        Raises:
            Misconfigured: it is not the one in the settings.
        """
        if self.data_path and not f"{data_path.rstrip('/')}/".startswith(self.data_path):
            raise Misconfigured(
                f"the catalog of the lake {self.warehouse!r} has another data path than "
                "`data_path` in the document of the lakes: correct it there"
            )

    @classmethod
    def from_env(cls, environ: Mapping[str, str]) -> "Config":
        """Read every setting.

        Raises:
            Misconfigured: a required setting is missing or a value is not usable.
        """
        texts = {setting.name: _text(setting, environ) for setting in SETTINGS}
        files, storage = FileSettings.from_env(environ), StorageSettings.from_env(environ)
        return cls(
            files=files,
            storage=storage,
            database_url=texts["DATABASE_URL"],
            database_credentials=_credentials(texts["DATABASE_CREDENTIALS"]),
            metadata_schema=texts["METADATA_SCHEMA"],
            warehouse=_warehouse(texts["WAREHOUSE"]),
            lakes=_document_source(texts, "LAKES"),
            scan_planning=_one_of(SCAN_PLANNING, texts, "SCAN_PLANNING"),
            authorization=_document_source(texts, "AUTHORIZATION"),
            vending_role=texts["VENDING_ROLE"],
            vending_seconds=_vending_seconds(texts),
            writes=_one_of(WRITES, texts, "WRITES") == "yes",
            view_dialects=_names(texts["VIEW_DIALECTS"].lower()),
            staging_location=_staging_location(texts["STAGING_LOCATION"], files, storage),
            equality_delete_keys=_number(texts, "EQUALITY_DELETE_KEYS"),
            equality_delete_files=_number(texts, "EQUALITY_DELETE_FILES"),
            equality_delete_gb=_number(texts, "EQUALITY_DELETE_GB"),
            writer_role=_writer_role(texts),
            log_values=_one_of(LOG_VALUES, texts, "LOG_VALUES") == "yes",
            event_bus=texts["EVENT_BUS"],
            events_table=texts["EVENTS_TABLE"],
            request_mb=_number(texts, "REQUEST_MB", 1),
            object_lambda_endpoint=texts["OBJECT_LAMBDA_ENDPOINT"],
        )


def settings_in(environ: Mapping[str, str]) -> dict[str, str]:
    """The settings of an environment, without its other variables."""
    return {s.name: environ[s.name] for s in SETTINGS if s.name in environ}


def _texts(group: type[FileSettings | StorageSettings], environ: Mapping[str, str]) -> Texts:
    """The settings that are fields of a group, and those that set defaults."""
    names = {"DELIVERY", "COPY_DATA_FILES", *(setting.name.upper() for setting in fields(group))}
    return {setting.name: _text(setting, environ) for setting in SETTINGS if setting.name in names}


def _text(setting: Setting, environ: Mapping[str, str]) -> str:
    text = environ.get(setting.name) or setting.default
    if text is None and setting.name == "DATABASE_URL" and environ.get("LAKES"):
        return ""  # all lakes are in the document
    if text is None:
        raise Misconfigured(f"the setting {setting.name} is missing: {setting.help}")
    return text


def _credentials(text: str) -> str:
    if text not in {"", "iam"} and not re.fullmatch("secret:.+", text):
        # Without the text, because this is logged: the setting may have the secret itself.
        raise Misconfigured("DATABASE_CREDENTIALS must be `iam`, or `secret:` and a name or ARN")
    return text


def _document_source(texts: Texts, name: str) -> str:
    """A setting that names a document, or contains one (`OperatorDocument`)."""
    if texts[name] and not re.match(r"ssm:.|s3://[^/]+/.|file:.|\s*\{", texts[name]):
        raise Misconfigured(f"{name} must be ssm:NAME, s3://bucket/key, file:PATH or a JSON object")
    return texts[name]


def _warehouse(text: str) -> str:
    # It becomes the path prefix of the REST routes, which clients leave unescaped.
    if not re.fullmatch(r"[A-Za-z0-9_-]+", text):
        raise Misconfigured(f"WAREHOUSE may hold letters, digits, _ and - only, not {text!r}")
    return text


def _one_of(values: Collection[str], texts: Mapping[str, str], name: str) -> str:
    if texts[name] not in values:
        raise Misconfigured(f"{name} must be one of {', '.join(values)}, not {texts[name]!r}")
    return texts[name]


def _number(texts: Mapping[str, str], name: str, least: int = 0) -> int:
    # Python refuses to read very many digits.
    if not re.fullmatch("[0-9]{1,18}", texts[name]):
        raise Misconfigured(f"{name} must be a whole number, not {texts[name]!r}")
    if int(texts[name]) < least:
        raise Misconfigured(f"{name} must be at least {least}")
    return int(texts[name])


def _vending_seconds(texts: Mapping[str, str]) -> int:
    seconds = _number(texts, "VENDING_SECONDS")
    if not 900 <= seconds <= 3600:  # AssumeRole by a role: "role chaining"
        raise Misconfigured("VENDING_SECONDS must be from 900 to 3600")
    return seconds


def _staging_location(text: str, files: FileSettings, storage: StorageSettings) -> str:
    """The location without a slash at its end."""
    if text and not re.fullmatch(r"s3://[^/\s]+(/[^/\s]+)+/?", text):
        raise Misconfigured("STAGING_LOCATION must be s3://bucket/prefix")
    staging = text.rstrip("/")
    if not staging:
        return ""
    if not storage.is_materialized and staging.startswith(storage.location("")):
        raise Misconfigured(
            "STAGING_LOCATION must name a real bucket: writers may not put it through the access "
            "point that VIRTUAL_BUCKET names"
        )
    virtual = storage.location(files.virtual_prefix)
    if staging == virtual or staging.startswith(f"{virtual}/") or virtual.startswith(f"{staging}/"):
        raise Misconfigured(
            "STAGING_LOCATION and the virtual files (VIRTUAL_BUCKET, VIRTUAL_PREFIX) must not be "
            "within each other: clients could replace virtual files"
        )
    return staging


def _writer_role(texts: Mapping[str, str]) -> str:
    text = texts["WRITER_ROLE"]
    if text and not ROLE.fullmatch(text):
        raise Misconfigured("WRITER_ROLE must be the ARN of a role")
    if text and not texts["VENDING_ROLE"]:
        raise Misconfigured("WRITER_ROLE requires VENDING_ROLE, the role for those who only read")
    return text


def clients_of(text: str, *, can_adapt: bool = True) -> frozenset[str]:
    """The clients that the setting CLIENTS names; none if `all` has no effect.

    Args:
        can_adapt: as `StorageSettings.can_adapt`.

    Raises:
        Misconfigured: a client is unknown, or the delivery cannot make up for faults.
    """
    text = text.strip().lower()
    if text in ("", NONE):
        return frozenset()
    if text == ALL:
        return CLIENTS if can_adapt else frozenset()
    clients = _names(text)
    if unknown := sorted(clients - CLIENTS):
        raise Misconfigured(
            f"CLIENTS (--clients) names {', '.join(unknown)}; known are all, none, or some of "
            f"{', '.join(sorted(CLIENTS))}"
        )
    if not can_adapt:
        raise Misconfigured(f"CLIENTS (--clients): {NOT_MATERIALIZED}")
    return clients


def _can_adapt(texts: Texts) -> bool:
    is_copying = _one_of(COPY_DATA_FILES, texts, "COPY_DATA_FILES") == "yes"
    return is_copying or _one_of(DELIVERIES, texts, "DELIVERY") != "materialize"


def words_for(clients: frozenset[str]) -> list[str]:
    """Clients as the setting CLIENTS names them."""
    return sorted(clients) if clients and clients != CLIENTS else [ALL if clients else NONE]


def chosen(clients: frozenset[str]) -> frozenset[str]:
    """The clients that the setting names one by one; none if it names all of them.

    Columns are hidden for these alone: with `all`, no client would see the columns.
    """
    return clients if clients != CLIENTS else frozenset()


def _names(text: str) -> frozenset[str]:
    return frozenset(name.strip() for name in text.split(",") if name.strip())
