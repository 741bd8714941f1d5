"""Changes of properties as changes of DuckLake's tags, or a refusal."""

from collections.abc import Iterable, Mapping

from ...errors import BadRequest
from ..client_properties import COMMENT, PROPERTY_PREFIX, is_configuration

FORMATS = {"write.format.default": "parquet", "write.delete.format.default": "parquet"}

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
) -> dict[str, str | None]:
    """The tags that change, with their new values; None: the tag ends.

    Args:
        own: the properties of the object that are ours.

    Raises:
        BadRequest: a property configures clients, or says something else than we do.
    """
    found: dict[str, str | None] = {}
    for key, value in updates.items():
        if own.get(key) == value:
            continue  # a client that sends back what it has read
        check(key, value, own)
        if key not in IGNORED:
            found[tag(key)] = value
    for key in removals:
        if key in own:
            raise BadRequest(f"the property {key} follows from the table and cannot be removed")
        found[tag(key)] = None
    return found


def values(changed: Mapping[str, str | None]) -> dict[str, str]:
    """The tags that have a value after a change."""
    return {key: value for key, value in changed.items() if value is not None}


def check(key: str, value: str, own: Mapping[str, str]) -> None:
    """Refuse a property that cannot be kept.

    Raises:
        BadRequest: the message says why.
    """
    if key in own or is_configuration(key):
        raise BadRequest(
            f"the property {key} cannot be set on a table: it would configure the clients of "
            "other users, or is given by this catalog"
        )
    if key in FORMATS and value.lower() != FORMATS[key]:
        raise BadRequest(f"{key} must be {FORMATS[key]}: DuckLake has no other files")
    if key == "format-version" and value != "2":
        raise BadRequest(FORMAT_VERSION)
    if not key or "\0" in key + value or len(key) + len(value) > MOST_CHARACTERS:
        raise BadRequest("the name or the value of a property is empty, too long, or has a NUL")


def tag(key: str) -> str:
    """The key of the tag that keeps a property."""
    return key if key == COMMENT else PROPERTY_PREFIX + key
