"""What a caller sees of a lake: which tables, schemas and snapshots, by the policy."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import Any

from pg8000.native import Connection
from polynya.access.policy import Rights
from polynya.ducklake.rows.objects import quoted

from ..queries.visible_rows import (
    End,
    Naming,
    SchemaNaming,
    VisibleRows,
    ends,
    namings,
    newest_time,
    schema_namings,
    touching,
    unnamed_changes,
)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What the caller sees of a state of the catalog."""

    ends: list[End]
    objects: list[int]
    touched: dict[int, bool]
    """The snapshots that touched something visible; true: they touched nothing else."""
    parameters: dict[str, Any]

    @property
    def newest(self) -> int:
        """The newest snapshot of the lake; -1: there is none."""
        return self.ends[-1].snapshot_id if self.ends else -1


class Sight:
    """What a caller with some rights sees of a lake."""

    def __init__(self, rights: Rights) -> None:
        """Read nothing yet."""
        self._rights = rights
        self._last: _Seen | None = None
        self._lock = Lock()

    def limited(self, con: Connection) -> Connection:
        """A connection that has only what the caller sees of the lake, for its transaction."""
        if self._rights.all_tables:
            return con
        now = ends().run(con)
        with self._lock:
            visible = self._last
        if visible is None or visible.ends != now:
            visible = self._read(con, now, visible)
            with self._lock:
                self._last = visible
        return VisibleRows(con, visible.parameters)

    def _read(self, con: Connection, now: list[End], last: _Seen | None) -> _Seen:
        names, schemas = namings().run(con), schema_namings().run(con)
        objects = sorted(_visible(names, self._rights))
        parameters = self._parameters(objects, names, schemas)
        # What older snapshots touched stays the same as long as the same objects are visible.
        since, touched = -1, dict[int, bool]()
        if last is not None and last.objects == objects:
            since, touched = last.newest, dict(last.touched)
        touched |= touching(parameters, since).run(con)
        has_commits = bool(now) and now[0].has_commits
        for snapshot_id in unnamed_changes(parameters, has_commits=has_commits).run(con):
            touched.setdefault(snapshot_id, False)
        parameters |= {
            "seen_touching": sorted(touched),
            "seen_whole": sorted(id_ for id_, is_whole in touched.items() if is_whole),
            "seen_snapshots": sorted({*touched, *(end.snapshot_id for end in now)}),
        }
        oldest = now[0].time if now else None
        parameters["seen_time"] = newest_time(parameters).run(con) or oldest
        return _Seen(now, objects, touched, parameters)

    def _parameters(
        self, objects: Sequence[int], names: list[Naming], schemas: list[SchemaNaming]
    ) -> dict[str, Any]:
        """The parameters of `QUERIES` for what is visible, without the snapshots."""
        ids = set(objects)
        own = [naming for naming in names if naming.object_id in ids]
        visible = _with_parents(schemas, {naming.schema_id for naming in own}, self._rights)
        created = [(naming.kind, naming.begin_snapshot, naming.levels) for naming in own]
        created += [
            ("schema", schema.begin_snapshot, schema.levels)
            for schema in schemas
            if schema.schema_id in visible
        ]
        return {
            "seen_objects": list(objects),
            "seen_schemas": sorted(visible),
            "seen_uuids": sorted({n.uuid for n in own if n.kind == "table" and n.uuid}),
            "seen_creations": [
                f"{begin} created_{kind}:{quoted(*levels)}"
                for kind, begin, levels in created
                if levels
            ],
        }


def _visible(namings: Iterable[Naming], rights: Rights) -> set[int]:
    """The ids of the tables and views that the caller may read under their newest names.

    Tables with columns that the policy hides are left out: no report hides single columns.
    """
    namings = [*namings]
    newest = {(naming.kind, naming.object_id): naming for naming in namings}
    visible, hidden = set[int](), set[int]()
    hiding = {(n.kind, n.object_id) for n in namings if _hides_columns(n, rights)}
    for naming in newest.values():
        levels = naming.levels
        may_read = levels is not None and rights.may_read_table(levels[:-1], levels[-1])
        may_read = may_read and (naming.kind, naming.object_id) not in hiding
        (visible if may_read else hidden).add(naming.object_id)
    # The catalog may give a table and a view the same id.
    return visible - hidden


def _hides_columns(naming: Naming, rights: Rights) -> bool:
    """Whether the policy hides columns of a table of this name; true if the name is not known."""
    if naming.kind != "table" or not rights.hidden:
        return False
    levels = naming.levels
    return levels is None or bool(rights.hidden_columns([(levels[:-1], levels[-1])]))


def _with_parents(
    schemas: Iterable[SchemaNaming], having_seen: set[int], rights: Rights
) -> set[int]:
    """The ids of the schemas that the caller sees, with their parents; as `AuthorizedLake.schemas`.

    Args:
        having_seen: the ids of the schemas of visible tables and views.
    """
    names = {schema.schema_id: schema.levels for schema in schemas if schema.levels}
    visible = {
        levels
        for schema_id, levels in names.items()
        if levels and (schema_id in having_seen or rights.may_read_namespace(levels))
    }
    visible |= {levels[:level] for levels in visible for level in range(1, len(levels))}
    return {schema_id for schema_id, levels in names.items() if levels in visible}
