"""Changes of properties as changes of DuckLake's tags, or a refusal."""

from collections.abc import Iterable, Mapping

from ...errors import BadRequest
from ...iceberg.parquet.metadata import CODECS
from ..client_properties import (
    TAG_PREFIX,
    IsServed,
    is_configuration,
    is_table_property,
    property_name,
    tag_key,
)

PARQUET = "parquet: DuckLake has no other files"
READABLE_CODECS = tuple(codec.lower() for codec in CODECS)
READABLE = f"one of {', '.join(READABLE_CODECS)}: DuckDB, and so DuckLake, reads no other"
VALUES = {
    "write.format.default": (("parquet",), PARQUET),
    "write.delete.format.default": (("parquet",), PARQUET),
    "write.parquet.compression-codec": (READABLE_CODECS, READABLE),
    "write.delete.parquet.compression-codec": (READABLE_CODECS, READABLE),
}
"""The values that a property may have in lower case, and what the message says that it must be."""

IGNORED = {"format-version"}
"""What a client may give at the creation, and what follows from the columns."""

FORMAT_VERSION = (
    "a table has format version 2, which becomes 3 by itself if a column needs a default: leave "
    "format-version out, or set it to 2"
)

MOST_CHARACTERS = 100_000


NO_PROPERTIES: Mapping[str, str] = {}


def tags(
    updates: Mapping[str, str],
    removals: Iterable[str] = (),
    own: Mapping[str, str] = NO_PROPERTIES,
    is_served: IsServed = is_table_property,
) -> dict[str, str | None]:
    """The tags that change, with their new values; None: the tag ends.

    Args:
        own: the properties of the object that are ours.
        is_served: which names are served as they are; those of a table, if nothing is said.

    Raises:
        BadRequest: a property configures clients, or says something else than we do.
    """
    changed: dict[str, str | None] = {}
    for key, value in updates.items():
        served = served_name(key, is_served)
        if value in (own.get(key), own.get(served)):
            continue  # a client that sends back what it has read
        check(key, value, own.keys() & {key, served})
        if key not in IGNORED:
            changed[tag_key(key)] = value
    for key in removals:
        if own.keys() & {key, served_name(key, is_served)}:
            raise BadRequest(f"the property {key} follows from the table and cannot be removed")
        changed[tag_key(key)] = None
    return changed


def served_name(key: str, is_served: IsServed) -> str:
    """The name under which a property that a client sets is served."""
    return property_name(tag_key(key), is_served)


def values(changed: Mapping[str, str | None]) -> dict[str, str]:
    """The tags that have a value after a change."""
    return {key: value for key, value in changed.items() if value is not None}


def check(key: str, value: str, own: Iterable[str]) -> None:
    """Refuse a property that cannot be kept.

    Args:
        own: its names, if it is ours.

    Raises:
        BadRequest: the message says why.
    """
    name = key.removeprefix(TAG_PREFIX)
    if list(own) or is_configuration(name):
        raise BadRequest(
            f"the property {key} cannot be set: it would configure the clients of other users or "
            "load code in them, or is given by this catalog; set it in the client's own "
            "configuration"
        )
    allowed, must_be = VALUES.get(name, ((value.lower(),), ""))
    if value.lower() not in allowed:
        raise BadRequest(f"{name} must be {must_be}")
    if key == "format-version" and value != "2":
        raise BadRequest(FORMAT_VERSION)
    if not name or "\0" in key + value or len(key) + len(value) > MOST_CHARACTERS:
        raise BadRequest("the name or the value of a property is empty, too long, or has a NUL")
