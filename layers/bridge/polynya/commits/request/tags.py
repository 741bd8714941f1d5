"""Tags of DuckLake for what it lacks: properties, references and statistics files."""

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from ...ducklake.rows.objects import Tag
from ...iceberg.parquet.metadata import CODECS
from ...mapping.properties import (
    DATA_PATH,
    DEFAULTS_OF_WRITERS,
    NOTES,
    REFERENCE,
    TAG_PREFIX,
    IsServed,
    is_configuration,
    is_table_property,
    property_name,
    tag_key,
)
from ...mapping.references import reference_text, references
from ...mapping.tables import KINDS, MOST_FILES, files_text, stored_files
from ...runtime.errors import BadRequest
from ..client_locations import relative
from .table_commit import TableCommit

PARQUET = "parquet: DuckLake has no other files"
READABLE_CODECS = tuple(codec.lower() for codec in CODECS)
READABLE = f"one of {', '.join(READABLE_CODECS)}: DuckDB, and so DuckLake, reads no other"
VALUES = {
    "write.format.default": (("parquet",), PARQUET),
    "write.delete.format.default": (("parquet",), PARQUET),
    "write.parquet.compression-codec": (READABLE_CODECS, READABLE),
    "write.delete.parquet.compression-codec": (READABLE_CODECS, READABLE),
    "write.parquet.shred-variants": (
        ("false",),
        "false: DuckDB, and so DuckLake, may read shredded fields under other names",
    ),
}
"""The values that a property may have in lower case, and what the message says that it must be."""

IGNORED = {"format-version"}
"""Properties that are no tags; `requested_version` reads them."""

FORMAT_VERSIONS = {"1", "2", "3"}
WRONG_VERSION = "a table has format version 2 or 3: set format-version to one of these"


def requested_version(properties: Mapping[str, str], upgrade: int | None = None) -> int | None:
    """The format version that a client asks for, which may be 1; None if it does not say.

    Args:
        upgrade: what its commit upgrades the table to.

    Raises:
        BadRequest: DuckLake has no such tables.
    """
    texts = {str(upgrade)} if upgrade is not None else set()
    texts |= {properties["format-version"]} if "format-version" in properties else set()
    if not texts <= FORMAT_VERSIONS:
        raise BadRequest(WRONG_VERSION)
    return max(map(int, texts), default=None)


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
        BadRequest: a property configures clients, or contradicts one of Polynya's own.
    """
    fixed = own.keys() - DEFAULTS_OF_WRITERS.keys()
    # A client that creates or replaces a table sends back all properties that it has read, this
    # path among them. Another commit may have changed the notes since.
    is_sent_back = DATA_PATH in own and updates.get(DATA_PATH) == own[DATA_PATH]
    changed: dict[str, str | None] = {}
    for key, value in updates.items():
        served = served_name(key, is_served)
        if value in (own.get(key), own.get(served)) or (is_sent_back and key in NOTES):
            continue  # a client that sends back what it has read
        check(key, value, fixed & {key, served})
        if key not in IGNORED:
            changed[tag_key(key)] = value
    for key in removals:
        if fixed & {key, served_name(key, is_served)}:
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
        own: the names of the property if it is one of Polynya's own; otherwise empty.

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
    if key == "format-version" and value not in FORMAT_VERSIONS:
        raise BadRequest(WRONG_VERSION)
    if not name or "\0" in key + value or len(key) + len(value) > MOST_CHARACTERS:
        raise BadRequest("the name or the value of a property is empty, too long, or has a NUL")


def changed_references(
    commit: TableCommit, tags: Sequence[Tag], listed: Collection[int]
) -> dict[str, str | None]:
    """The tags of DuckLake that change, with their new values; None: the tag ends.

    Args:
        tags: of the table now.
        listed: the ids of its snapshots that Iceberg lists, and of those that the commit adds.

    Raises:
        BadRequest: a name is to be given to another snapshot, or is not there to be removed.
    """
    stored = references(tags)
    changed: dict[str, str | None] = {}
    for name, reference in commit.references.items():
        if reference is None:
            if name not in stored:
                raise BadRequest(f"the table has no reference {name!r}")
            changed[REFERENCE + name] = None
        elif reference.snapshot_id not in listed:
            raise BadRequest(
                f"the {reference.type} {name!r} is for the snapshot {reference.snapshot_id}, which "
                "the table does not list: it has expired, is older than those that are listed "
                "(SNAPSHOT_LIMIT), or was never there"
            )
        elif stored.get(name) != reference:
            changed[REFERENCE + name] = reference_text(reference)
    return changed


STATISTICS_CHARACTERS = 1_000_000
LONGEST_DESCRIPTION = 900_000


def changed_statistics(
    commit: TableCommit, tags: Sequence[Tag], staging: str
) -> dict[str, str | None]:
    """The tags that change, with their new values; None: the tag ends.

    Args:
        tags: of the table now.
        staging: where clients write metadata files, with a slash at its end.

    Raises:
        BadRequest: a file is elsewhere, or its description is too long.
    """
    now_ms = round(time.time() * 1000)
    changed: dict[str, str | None] = {}
    for kind, key in KINDS.items():
        before = stored_files(kind, tags)
        # A snapshot has one file of each kind.
        files = {file["snapshot-id"]: (file, set_ms) for file, set_ms in reversed(before)}
        for removed, snapshot_id in commit.removed_statistics:
            if removed == kind:
                files.pop(snapshot_id, None)
        for file in commit.statistics.get(kind, []):
            _check_statistics(file, staging)
            same, _ = files.get(file["snapshot-id"], (None, 0))
            if same != file:
                files.pop(file["snapshot-id"], None)
                files[file["snapshot-id"]] = file, now_ms
        newest = list(reversed(files.values()))[:MOST_FILES]
        while len(files_text(newest)) > STATISTICS_CHARACTERS:
            newest.pop()
        if newest != before:
            changed[key] = files_text(newest) if newest else None
    return changed


def _check_statistics(file: Mapping[str, Any], staging: str) -> None:
    # Readers open what the table metadata names, with their own credentials.
    relative(file["statistics-path"], staging, "the statistics file")
    if len(files_text([(dict(file), 0)])) > LONGEST_DESCRIPTION:
        raise BadRequest(
            "the description of the statistics file has more than "
            f"{LONGEST_DESCRIPTION:,} characters: compute statistics for fewer columns"
        )
