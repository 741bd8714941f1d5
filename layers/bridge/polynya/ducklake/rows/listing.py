"""The changes of snapshots, the names of what changed, and sums over inlined rows of several
tables.

What each snapshot changed is in `changes_made`, a comma list of `type:value`. A value is an id, or
quoted names in which a quote is doubled:
https://ducklake.select/docs/stable/specification/tables/ducklake_snapshot_changes
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from ...runtime.namespaces import Namespace as Levels
from ...runtime.namespaces import dotted
from .lifetimes import is_visible
from .objects import ID


@dataclass(frozen=True, slots=True)
class NamedFrom:
    """A name of a table or a view, and the snapshots at which it had it."""

    kind: str
    """`table` or `view`."""
    object_id: int
    schema_name: str
    name: str
    begin_snapshot: int
    end_snapshot: int | None
    parents: Levels = ()
    """The names of the schemas that its schema is in, outermost first."""

    @property
    def names(self) -> Levels:
        """All levels of its full name."""
        return (*self.parents, self.schema_name, self.name)

    @property
    def namespace(self) -> str:
        """All levels of its schema's name, as people write them."""
        return dotted(*self.names[:-1])

    @property
    def full_name(self) -> str:
        """Its full name for people."""
        return dotted(*self.names)

    def visible_at(self, snapshot_id: int) -> bool:
        """Whether it had the name at a snapshot."""
        return is_visible(self.begin_snapshot, self.end_snapshot, snapshot_id)


@dataclass(frozen=True, slots=True)
class InlinedNames:
    """A PostgreSQL table of inlined rows, or of inlined deletes."""

    table_id: int
    table_name: str
    is_deletes: bool
    system_columns: tuple[str, str, str]
    """row_id, begin_snapshot, end_snapshot; for deletes: data file, position, begin_snapshot."""


@dataclass(frozen=True, slots=True)
class Changed:
    """How many rows of a table are inlined, or deleted in data files."""

    table_id: int
    inlined: int
    deleted: int
    """As the catalog counts them."""
    changed_at: int
    """The newest snapshot at which such a row began or ended; 0: there is none."""


@dataclass(frozen=True, slots=True)
class Change:
    """A snapshot of the lake, with its author and message."""

    snapshot_id: int
    snapshot_time: datetime
    changes_made: str
    author: str | None
    commit_message: str | None


LARGEST_ID = 2**63 - 1

QUOTED = re.compile(r'"((?:[^"]|"")*)"')
CHANGE = re.compile(
    rf'(?P<kind>\w+):(?:(?P<id>{ID}(?![0-9]))|(?P<names>"(?:[^"]|"")*"(?:\."(?:[^"]|"")*")*))'
)


@dataclass(frozen=True, slots=True)
class NamedChange:
    """One change of a table, a view, a macro or a schema."""

    kind: str
    """DuckLake's word."""
    object_id: int | None
    """Its id; None: it is new, and `changes_made` has only its name."""
    names: Levels
    """All levels of its full name at the snapshot, or of the last one that it had; empty: the
    catalog has none any more."""
    naming: NamedFrom | None = None
    """The row with its name at the snapshot; None: the snapshot does not have it."""
    before: Levels = ()
    """The full name that it had until this snapshot, which renamed it."""


def looked_up(texts: Iterable[str]) -> tuple[list[int], list[str]]:
    """The ids, and the names without their schemas, of what `changes_made` names.

    Args:
        texts: of several snapshots.
    """
    matches = [match for text in texts for match in CHANGE.finditer(text)]
    ids = {int(match["id"]) for match in matches if match["id"]}
    names = {_names(match)[-1] for match in matches if match["names"]}
    return sorted(ids), sorted(names)


def renamed_ids(ids: Sequence[int], names: Sequence[str], namings: list[NamedFrom]) -> list[int]:
    """The ids of tables and views that have one of the names and are not among the ids.

    A rename is recorded as `created_…` with the new name: only the id shows that nothing was
    created.
    """
    return sorted({naming.object_id for naming in namings if naming.name in names} - set(ids))


def named_changes(
    snapshot_id: int, changes_made: str, namings: list[NamedFrom]
) -> Iterator[NamedChange]:
    """The changes of a snapshot, in the order of the text.

    Args:
        namings: the rows for the ids and names of `looked_up`, oldest first.
    """
    for match in CHANGE.finditer(changes_made):
        yield _change(match, snapshot_id, namings)


def _change(match: re.Match[str], snapshot_id: int, namings: list[NamedFrom]) -> NamedChange:
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
    return NamedChange(
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
