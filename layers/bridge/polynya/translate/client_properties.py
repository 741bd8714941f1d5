"""Properties that Iceberg clients set on tables, as DuckLake's tags.

Clients read their own settings from the properties of a table (PyIceberg: s3.endpoint, py-io-impl),
so that a property could make another user's client load code or send credentials elsewhere.
"""

import re

PROPERTY_PREFIX = "polynya.property."
"""The beginning of a tag's key that is an Iceberg property."""

COMMENT = "comment"
"""The key of the tag that COMMENT ON writes, and of the property."""

SORT_ORDER = "polynya.sort-order"
"""The key of the tag with a sort order that DuckLake has no expression for; it is no property."""

STATISTICS = "polynya.statistics"
PARTITION_STATISTICS = "polynya.partition-statistics"
"""The keys of the tags with the statistics files of clients; they are no properties."""

NO_PROPERTIES = frozenset({SORT_ORDER, STATISTICS, PARTITION_STATISTICS})

CONFIGURATION = re.compile(
    r"(s3|s3a|client|gcs|adls|hdfs|hadoop|fs|oss|glue|dynamodb|rest|credential|token|oauth2?"
    r"|auth|header|uri|warehouse|encryption|kms|io|py-io|metrics-reporter|polynya)([.-].*)?"
    r"|.*-impl|write\.(location-provider|object-storage|folder-storage)\..*|.*\.py-impl",
    re.IGNORECASE,
)
"""Names that configure clients, load code, or are ours."""


def is_configuration(key: str) -> bool:
    """Whether a property could configure clients, or is ours."""
    return CONFIGURATION.fullmatch(key) is not None
