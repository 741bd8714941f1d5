"""Properties of tables, views and namespaces: those in DuckLake's tags, and those for writers.

Clients read their own settings from the properties of a table: PyIceberg gives all of them to its
file system (s3.endpoint, buffer-size) and calls what some of them name (py-io-impl), Java gives
them to Hadoop, Flink takes them for options of a scan (snapshot-id). So a name is served as it is
only if it is listed here or in the setting CUSTOM_PROPERTIES, and under the prefix of a tag
otherwise.

`write_properties` tells clients how and where to write. Tables can share a directory (after a
rename), so the uuid of the table is a part of each path. A path depends on nothing else besides the
directory, so that a table that does not exist yet (stage-create) already has its paths.
"""

import json
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from typing import Any

from ..ducklake.rows.objects import IDENTIFIER_FIELDS, STAGED, Tag
from ..runtime.errors import Misconfigured

PROPERTY_PREFIX = "polynya.property."
"""The beginning of a tag's key that is an Iceberg property."""

TAG_PREFIX = "polynya.tag."
"""The beginning of the name of a property that no client takes for a setting of its own."""

COMMENT = "comment"
"""The key of the tag that COMMENT ON writes, and of the property."""

SORT_ORDER = "polynya.sort-order"
"""The key of the tag with a sort order that DuckLake has no expression for; it is no property."""

PARTITION_SPECS = "polynya.partition-specs"
"""The key of the tag with the partition specs of a table as clients gave them; it is no
property."""

STATISTICS = "polynya.statistics"
PARTITION_STATISTICS = "polynya.partition-statistics"
"""The keys of the tags with the statistics files of clients; they are no properties."""

FORMAT_VERSION = "polynya.format-version"
"""The key of the tag with the format version that a client asked for, if that was 1 or 3; it is no
property."""

VERSION_NOTE = "polynya.format-version-note"
NOTE_OF_VERSION_1 = {
    VERSION_NOTE: "format version 1 was asked for; tables have 2, or 3 while a column needs it"
}
"""The property of a table that a client asked to have format version 1."""

ADAPTED_NOTE = "polynya.adapted-files"
"""The property with the changes in data files for the clients of the settings."""
DEFAULTS_NOTE = "polynya.default-columns"
HIDDEN_NOTE = "polynya.hidden-columns"
REASONS_NOTE = "polynya.hidden-columns-reason"
"""The property with the reason for each hidden column."""

NOTES = frozenset((VERSION_NOTE, ADAPTED_NOTE, DEFAULTS_NOTE, HIDDEN_NOTE, REASONS_NOTE))
"""The properties that say what a client gets of a table; they change with it."""

REFERENCE = "polynya.reference."
"""The beginning of a tag's key that ends with the name of an Iceberg tag or branch; it is no
property."""

REQUIRED_COLUMNS = "polynya.required-columns"
"""The key of the tag with the ids of columns that are NOT NULL since they were added, when all rows
of the table ended; it is no property."""

REGISTERED = "polynya.registered-from"
"""The key of the tag with the metadata file of another catalog of which the table was made; it is
no property."""

OF_METADATA = frozenset(
    {
        *(SORT_ORDER, PARTITION_SPECS, IDENTIFIER_FIELDS),
        *(STATISTICS, PARTITION_STATISTICS, FORMAT_VERSION, REQUIRED_COLUMNS, REGISTERED),
    }
)


# In JSON a NUL is always escaped; an even number of backslashes before it is text.
NUL = re.compile(r"(?<!\\)(?:\\\\)*\\u0000")


def stored_json(text: str) -> Any:
    """A value that a client gave, and that the catalog keeps as JSON.

    Raises:
        ValueError: somebody has changed the text by hand, or it has a NUL. No request may have one
            now, because DuckDB 1.5.5 aborts its process at it; earlier ones could.
    """
    if NUL.search(text):
        raise ValueError("a text has a NUL character")
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("a text is nested too deeply") from None


def stored_texts(text: str | None) -> dict[str, str]:
    """A client's texts by key, such as the summary of a snapshot, as far as the catalog has them:
    somebody may have changed its JSON by hand."""
    with suppress(ValueError):
        document = stored_json(text or "{}")
        if isinstance(document, dict):
            return {key: value for key, value in document.items() if isinstance(value, str)}
    return {}


def is_of_metadata(key: str) -> bool:
    """Whether the tag of this key is shown elsewhere in the table metadata, and is no property."""
    return key in OF_METADATA or key.startswith((REFERENCE, STAGED))


def is_unknown_to_ducklake(key: str) -> bool:
    """Whether the tag of this key is not about the table's rows or layout, so that a change of it
    is no conflict with native writers."""
    return key in {STATISTICS, PARTITION_STATISTICS} or key.startswith((REFERENCE, STAGED))


def required_columns(tags: Iterable[Tag]) -> frozenset[int]:
    """The ids of the columns that no file from before they were added lacks."""
    texts = [tag.value or "" for tag in tags if tag.key == REQUIRED_COLUMNS]
    return frozenset(int(id_) for text in texts for id_ in re.findall(r"\b[0-9]{1,18}\b", text))


def is_registered(tags: Iterable[Tag]) -> bool:
    """Whether the table was made of one of another catalog, whose files may lack any column."""
    return any(tag.key == REGISTERED for tag in tags)


def least_version(tags: Iterable[Tag]) -> int:
    """The format version that a client asked for: 3, or 2 if none did.

    Such a table shows every column that needs version 3, whatever the settings say.
    """
    # The client that created the table must see its columns.
    return 3 if stored_version(tags) == "3" else 2


def stored_version(tags: Iterable[Tag]) -> str | None:
    """The text of the tag with the format version; None: a table has none."""
    return next((tag.value for tag in tags if tag.key == FORMAT_VERSION), None)


def log_length(tags: Iterable[Tag]) -> int:
    """How many earlier documents the metadata log of a table names at most; 0: all."""
    key = tag_key("write.metadata.previous-versions-max")
    text = next((tag.value or "" for tag in tags if tag.key == key), "")
    # Java takes a number below 1 for 1.
    return max(1, int(text)) if re.fullmatch("-?[0-9]{1,9}", text) else 0


def version_note(tags: Iterable[Tag]) -> dict[str, str]:
    """The property that says why a table does not have the format version 1 that a client asked
    for; none if nobody did."""
    return NOTE_OF_VERSION_1 if stored_version(tags) == "1" else {}


IsServed = Callable[[str], bool]
"""Whether a property of one kind of object is served under its own name."""

OF_FILE_FORMATS = (
    *("parquet.row-group-size-bytes", "parquet.page-size-bytes", "parquet.page-row-limit"),
    *("parquet.page-version", "parquet.dict-size-bytes", "parquet.compression-codec"),
    *("parquet.compression-level", "parquet.row-group-check-min-record-count"),
    *("parquet.row-group-check-max-record-count", "avro.compression-codec"),
    *("avro.compression-level", "orc.stripe-size-bytes", "orc.block-size-bytes"),
    *("orc.vectorized.batch-size", "orc.compression-codec", "orc.compression-strategy"),
    *("format.default", "target-file-size-bytes", "distribution-mode"),
)
"""Settings that data files have after `write.`, and delete files after `write.delete.`."""

OF_OPERATIONS = tuple(
    f"{operation}.{setting}"
    for operation in ("delete", "update", "merge")
    for setting in ("mode", "isolation-level", "distribution-mode")
)

TABLE_PROPERTIES = frozenset(
    {
        *(f"write.{setting}" for setting in (*OF_FILE_FORMATS, *OF_OPERATIONS)),
        *(f"write.delete.{setting}" for setting in (*OF_FILE_FORMATS, "granularity")),
        *("write.parquet.bloom-filter-max-bytes", "write.parquet.row-group-limit"),
        *("write.parquet.shred-variants", "write.parquet.variant-inference-buffer-size"),
        "write.parquet.content-defined-chunking.enabled",
        "write.parquet.content-defined-chunking.min-chunk-size",
        "write.parquet.content-defined-chunking.max-chunk-size",
        "write.parquet.content-defined-chunking.norm-level",
        *("write.orc.bloom.filter.columns", "write.orc.bloom.filter.fpp"),
        *("write.manifest.compression-codec", "write.manifest.compression-level"),
        # Not `write.metadata.delete-after-commit.enabled`: PyIceberg deletes the documents that
        # fall out of the metadata log then.
        *("write.metadata.compression-codec", "write.metadata.previous-versions-max"),
        "write.metadata.metrics.default",
        # Directories below `write.data.path`.
        *("write.object-storage.enabled", "write.object-storage.partitioned-paths"),
        "write.metadata.metrics.max-inferred-column-defaults",
        *("write.summary.partition-limit", "write.wap.enabled", "write.upsert.enabled"),
        *("write.spark.fanout.enabled", "write.spark.accept-any-schema"),
        "write.spark.auto-schema-evolution.enabled",
        "write.spark.advisory-partition-size-bytes",
        "write.datafusion.fanout.enabled",
        *("read.split.target-size", "read.split.metadata-target-size"),
        *("read.split.planning-lookback", "read.split.open-file-cost"),
        *("read.split.adaptive-size.enabled", "read.parquet.vectorization.enabled"),
        *("read.parquet.vectorization.batch-size", "read.parquet.batch-size"),
        *("read.orc.vectorization.enabled", "read.orc.vectorization.batch-size"),
        *("read.data-planning-mode", "read.delete-planning-mode"),
        *("commit.retry.num-retries", "commit.retry.min-wait-ms", "commit.retry.max-wait-ms"),
        *("commit.retry.total-timeout-ms", "commit.status-check.num-retries"),
        *("commit.status-check.min-wait-ms", "commit.status-check.max-wait-ms"),
        *("commit.status-check.total-timeout-ms", "commit.manifest.target-size-bytes"),
        *("commit.manifest.min-count-to-merge", "commit.manifest-merge.enabled"),
        "commit.manifest-merge.max-concurrency",
        *("history.expire.max-snapshot-age-ms", "history.expire.min-snapshots-to-keep"),
        *("history.expire.max-ref-age-ms", "gc.enabled", "schema.name-mapping.default"),
        "compatibility.snapshot-id-inheritance.enabled",
        "owner",  # Spark sets it on each table that it creates, and shows it
        *("olake_2pc", "flow_checkpoints_v1"),  # by which OLake and Estuary know what they wrote
    }
)
"""The names that the clients of tests/unit/mapping/property_names.py read, and that neither load
code, nor say where files are or how to reach them, nor which rows of the table to read."""

OF_COLUMNS = (
    "write.metadata.metrics.column.",
    "write.parquet.bloom-filter-enabled.column.",
    "write.parquet.bloom-filter-fpp.column.",
    "write.parquet.bloom-filter-ndv.column.",
    "write.parquet.dict-encoding-enabled.column.",
    "write.parquet.stats-enabled.column.",
)
"""The beginnings of names that end with the name of a column."""

VIEW_PROPERTIES = frozenset({"version.history.num-entries", "replace.drop-dialect.allowed"})

PLAIN = re.compile(r"[A-Za-z0-9_-]+")

CUSTOM = re.compile(r"[A-Za-z0-9._-]+")

LOADS_CODE = re.compile(r".*(impl|class|factory)", re.IGNORECASE | re.DOTALL)

CONFIGURATION = re.compile(
    r"(s3|s3a|client|gcs|adls|hdfs|hadoop|fs|oss|glue|dynamodb|rest|credential|token|oauth2?"
    r"|auth|header|uri|warehouse|encryption|kms|io|py-io|metrics-reporter|polynya)([.-].*)?"
    r"|write\.(py-)?location-provider\..*|write\.(object|folder)-storage\.path"
    r"|write\.(data|metadata)\.(path|location)",
    re.IGNORECASE | re.DOTALL,
)

OF_CLIENTS = re.compile(
    r"(write|read|commit|history|gc|schema|compatibility|engine|parquet|orc|avro|spark|flink|trino"
    r"|hive|iceberg|pyiceberg|mapreduce|yarn|java|jdbc|sql|hf|azure|gcp|http-client"
    r"|signer|credentials|cache|lock|lakeformation|external|identifier-fields"
    r"|(table|view)-(default|override))\..*",
    re.IGNORECASE | re.DOTALL,
)
"""Beginnings of names of clients' settings, of which later versions may have more."""

_NAMES_OF_CLIENTS = """
format-version current-schema current-schema-id current-snapshot-id current-snapshot-summary
current-snapshot-timestamp current-snapshot-timestamp-ms default-partition-spec default-spec-id
default-sort-order last-assigned-field-id last-partition-id partition-spec partition-specs
sort-orders snapshot-count snapshot-id snapshot-property snapshot-loading-mode spec-id tag
branch as-of-timestamp timestampasof versionasof start-tag end-tag start-snapshot-id
end-snapshot-id start-timestamp end-timestamp start-snapshot-timestamp starting-strategy
stream-from-timestamp validate-from-snapshot-id scan-planning-mode streaming monitor-interval
limit case-sensitive streaming-max-files-per-micro-batch streaming-max-rows-per-micro-batch
streaming-skip-delete-snapshots streaming-skip-overwrite-snapshots
streaming-snapshot-polling-interval-ms async-micro-batch-planning-enabled
async-queue-preload-file-limit async-queue-preload-row-limit max-planning-snapshot-count
max-allowed-planning-failures watermark-column watermark-column-time-unit include-column-stats

split-size split-lookback lookback locality split-file-open-cost file-open-cost
advisory-partition-size batch-size aggregate-push-down-enabled vectorization-enabled buffer-size
cache-enabled fanout-enabled check-nullability check-ordering merge-schema mergeschema
compression-codec compression-level compression-strategy compact-enabled delete-format
delete-granularity distribution-mode downcast-ns-timestamp-to-us-on-write isolation-level
output-sort-order-id output-spec-id overwrite-enabled overwrite-mode upsert-enabled
copy-on-write merge-on-read range-distribution-sort-key-base-weight
range-distribution-statistics-type shred-variants table-refresh-interval
target-delete-file-size-bytes target-file-size-bytes write-format
use-table-distribution-and-ordering variant-inference-buffer-size write-parallelism

location metadata_location previous_metadata_location default_scheme default_netloc connector
catalog-name catalog-type catalog-database catalog-table catalog_id table_type table-name
table_bucket_arn unique-table-location namespace-identifier namespace-separator app-id app-name
view-endpoints-supported vended-credentials endpoint_url profile_name region_name user.name
aws_access_key_id aws_secret_access_key aws_session_token botocore_session client_id
client_secret scope audience resource ssl cert cabundle ugi echo pool_pre_ping
init_catalog_tables sql_bind_style schema_version thrift_transport disable-header-redaction
lock-check-min-wait-time lock-check-max-wait-time lock-check-retries path type catalog
"""

NAMES_OF_CLIENTS = frozenset(_NAMES_OF_CLIENTS.split())
"""Names of clients' settings that no expression above matches, in lower case: which rows are read,
how, and where files and catalogs are. Flink and PyIceberg look for some among a table's
properties."""


def is_configuration(name: str) -> bool:
    """Whether a property could configure clients or load code, or is ours.

    Setting one is an error, because the client expects an effect of it. Other properties that are
    not served under their own name may mean anything, and are kept under a prefix.
    """
    return bool(CONFIGURATION.fullmatch(name) or LOADS_CODE.fullmatch(name))


def is_table_property(name: str) -> bool:
    """Whether a table has this property under its own name."""
    is_listed = name in TABLE_PROPERTIES or name.startswith(OF_COLUMNS)
    return is_listed and not LOADS_CODE.fullmatch(name)


def is_of_a_client(name: str) -> bool:
    """Whether clients have a setting of this name, or may have: only the list above serves it."""
    is_known = OF_CLIENTS.fullmatch(name) or name.lower() in NAMES_OF_CLIENTS
    return bool(is_known) or is_configuration(name)


@lru_cache
def table_properties(custom: frozenset[str]) -> IsServed:
    """Which properties a table has under their own names.

    Args:
        custom: the setting CUSTOM_PROPERTIES: names of the users' own, and beginnings that end
            with an asterisk.

    Raises:
        Misconfigured: one of them cannot be served.
    """
    names = frozenset(name for name in custom if not name.endswith("*"))
    beginnings = tuple(name.removesuffix("*") for name in custom - names)
    for name in sorted(custom):
        of_a_client = name in names and is_of_a_client(name) and not is_table_property(name)
        if of_a_client or not CUSTOM.fullmatch(name.removesuffix("*") or "-"):
            raise Misconfigured(
                f"CUSTOM_PROPERTIES may not have {name!r}: a name has letters, digits, `.`, `_` "
                "and `-`, with `*` at its end only, and is none of a client's own settings"
            )

    def is_served(name: str) -> bool:
        is_custom = name in names or name.startswith(beginnings)
        return is_table_property(name) or (
            is_custom and CUSTOM.fullmatch(name) is not None and not is_of_a_client(name)
        )

    return is_served


def is_label(name: str) -> bool:
    """Whether a view or a namespace has this property under its own name.

    No client takes these for its settings, so that words of the user's own stay as they are.
    """
    return name in VIEW_PROPERTIES or (
        PLAIN.fullmatch(name) is not None and not is_configuration(name)
    )


def is_of_clients(key: str) -> bool:
    """Whether the tag of this key is a property that clients have set, or may set."""
    return key == COMMENT or key.startswith(PROPERTY_PREFIX)


def property_name(key: str, is_served: IsServed) -> str:
    """The name of the property that a tag becomes.

    Args:
        key: the key of the tag; a tag that no client has set keeps its whole key.
    """
    name = key.removeprefix(PROPERTY_PREFIX)
    if key == COMMENT or (name not in (key, COMMENT) and is_served(name)):
        return name
    return TAG_PREFIX + name


def tag_key(name: str) -> str:
    """The key of the tag that keeps a property, by its own name or the one it is served under."""
    return name if name == COMMENT else PROPERTY_PREFIX + name.removeprefix(TAG_PREFIX)


STAGING_DIRECTORY = ".polynya-staging/"
"""DuckLake names no directory like this: in a name with a dot it takes the uuid instead."""


def data_path(table_location: str, table_uuid: str) -> str:
    """The property `write.data.path`: where data files and delete files are, without a slash.

    Args:
        table_location: the directory of the table, with a slash at its end.
    """
    return f"{table_location}{table_uuid}"


def staging_path(staging_location: str, lake_data_path: str, table_uuid: str) -> str:
    """The property `write.metadata.path`: where manifests and manifest lists are, without a slash.

    A commit reads them once, and no row of DuckLake names them. Args: as `staging_root`.
    """
    return f"{staging_root(staging_location, lake_data_path)}{table_uuid}"


def staging_root(staging_location: str, lake_data_path: str) -> str:
    """The directory of these files of all tables, with a slash at its end.

    Args:
        staging_location: the setting; empty: a directory below the lake's data path.
        lake_data_path: DuckLake's option `data_path`.
    """
    return _add_slash(staging_location or _add_slash(lake_data_path) + STAGING_DIRECTORY)


def upload_location(virtual_location: str, lake_data_path: str) -> str:
    """Where S3 puts what clients upload to an Object Lambda access point.

    It passes uploads on, under the same key, to its supporting access point, which is one of the
    data's bucket (template.yaml). DuckDB puts the delete files of inlined rows there.
    """
    bucket = lake_data_path.partition("://")[2].partition("/")[0]
    key = virtual_location.partition("://")[2].partition("/")[2]
    return f"s3://{bucket}/{key}"


def _add_slash(location: str) -> str:
    return location if location.endswith("/") else f"{location}/"


RULES = {
    # Otherwise Java deletes files of older snapshots, which DuckLake's history needs.
    "gc.enabled": "false",
    # Otherwise Java rewrites Polynya's small manifests at every append.
    "commit.manifest-merge.enabled": "false",
}

DEFAULTS_OF_WRITERS = {
    # Otherwise clients give up after 4, as some of 16 that append to one table do.
    "commit.retry.num-retries": "20",
    # Clients wait twice as long each time, up to a minute: 12 minutes for a permanent conflict, as
    # when a commit of Java deletes rows of a file that a merge has ended.
    "commit.retry.max-wait-ms": "1000",
}
"""Properties of a table that clients may write to, unless a client has set them."""


DATA_PATH = "write.data.path"
"""The property of a table that says where clients put its data files."""


def write_properties(
    table_location: str, table_uuid: str, staging_location: str, lake_data_path: str
) -> dict[str, str]:
    """The properties of a table that clients may write to.

    Args:
        table_location: the directory of the table, with a slash at its end.
        staging_location: the setting; empty: below the lake's data path.
    """
    return {
        **RULES,
        DATA_PATH: data_path(table_location, table_uuid),
        "write.metadata.path": staging_path(staging_location, lake_data_path, table_uuid),
    }
