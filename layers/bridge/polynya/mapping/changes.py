"""What each snapshot changed, read from `changes_made`, with the names that things had then.

`changes_made` is a comma list of `type:value`. A value is an id, or quoted names, in which a quote
is doubled: https://ducklake.select/docs/stable/specification/tables/ducklake_snapshot_changes
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..ducklake.rows.listing import NamedFrom
from ..runtime.namespaces import Namespace

LARGEST_ID = 2**63 - 1

QUOTED = re.compile(r'"((?:[^"]|"")*)"')
CHANGE = re.compile(r'(?P<kind>\w+):(?:(?P<id>\d+)|(?P<names>"(?:[^"]|"")*"(?:\."(?:[^"]|"")*")*))')


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a table, a view, a macro or a schema."""

    kind: str
    """DuckLake's word."""
    object_id: int | None
    """Its id; None: it is new, and `changes_made` has only its name."""
    names: Namespace
    """All levels of its full name at the snapshot, or of the last one that it had; empty: the
    catalog has none any more."""
    naming: NamedFrom | None = None
    """The row with its name at the snapshot; None: the snapshot does not have it."""
    before: Namespace = ()
    """The full name that it had until this snapshot, which renamed it."""


def looked_up(texts: Iterable[str]) -> tuple[list[int], list[str]]:
    """The ids, and the names without their schemas, of what `changes_made` names.

    Args:
        texts: of several snapshots.
    """
    matches = [match for text in texts for match in CHANGE.finditer(text)]
    ids = {int(match["id"]) for match in matches if match["id"]}
    names = {_names(match)[-1] for match in matches if match["names"]}
    # PostgreSQL refuses a number that is no bigint.
    return [id_ for id_ in sorted(ids) if id_ <= LARGEST_ID], sorted(names)


def renamed_ids(ids: Sequence[int], names: Sequence[str], namings: list[NamedFrom]) -> list[int]:
    """The ids of tables and views that have one of the names and are not among the ids.

    A rename is recorded as `created_…` with the new name: the id tells that it is none.
    """
    return sorted({naming.object_id for naming in namings if naming.name in names} - set(ids))


def named_changes(
    snapshot_id: int, changes_made: str, namings: list[NamedFrom]
) -> Iterator[Change]:
    """The changes of a snapshot, in the order of the text.

    Args:
        namings: the rows of what `looked_up` gives, oldest first.
    """
    for match in CHANGE.finditer(changes_made):
        yield _change(match, snapshot_id, namings)


def _change(match: re.Match[str], snapshot_id: int, namings: list[NamedFrom]) -> Change:
    kind = match["kind"]
    if match["id"] is not None:
        same = [naming for naming in namings if naming.object_id == int(match["id"])]
        object_id, names, before = int(match["id"]), same[-1].names if same else (), None
    else:
        object_id, names = None, tuple(_names(match))
        same = [n for n in namings if kind == f"created_{n.kind}" and n.names == names]
        before = _name_before(snapshot_id, same, namings)
    visible = [naming for naming in same if naming.visible_at(snapshot_id)]
    naming = visible[-1] if visible else None
    return Change(
        kind,
        object_id,
        naming.names if naming else names,
        naming,
        before.names if before else (),
    )


def _name_before(
    snapshot_id: int, same: list[NamedFrom], namings: list[NamedFrom]
) -> NamedFrom | None:
    """The name that a table or view had until a snapshot gave it another; None: it is new."""
    begun = {
        (naming.kind, naming.object_id) for naming in same if naming.begin_snapshot == snapshot_id
    }
    before = [
        naming
        for naming in namings
        if (naming.kind, naming.object_id) in begun and naming.end_snapshot == snapshot_id
    ]
    return before[-1] if before else None


def _names(match: re.Match[str]) -> list[str]:
    return [part.replace('""', '"') for part in QUOTED.findall(match["names"])]
