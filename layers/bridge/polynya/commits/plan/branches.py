"""Snapshots of other branches than main: what a commit stages, publishes and removes.

Clients read a staged snapshot by its own manifest list. So this may name the virtual manifests of
the snapshot of main at which the branch began, and no others. When main is set to it, its net
change becomes a snapshot of DuckLake, if main is still where the branch began.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ...ducklake.rows.objects import STAGED
from ...ducklake.writes.staged_files import StagedFile
from ...iceberg.avro.client_manifests import ListedManifest, WrittenFile
from ...iceberg.table_metadata import Reference
from ...iceberg.table_metadata import Snapshot as ListedSnapshot
from ...mapping.properties import REFERENCE, data_path
from ...mapping.references import (
    StagedSnapshot,
    references,
    schema_print,
    spec_print,
    staged_snapshots,
)
from ...rest.updates import Snapshot
from ...runtime.errors import BadRequest, CommitFailed
from ..client_locations import normalised, relative
from ..request.client_files import ClientFiles, rewritten
from ..request.table_commit import TableCommit
from ..request.tags import changed_references
from .changed_files import net_change
from .current_table import TableState
from .table_plan import StagedFiles

MOST_STAGED = 1_000
"""All readers of the table read them."""

MOST_CHARACTERS = 100_000
"""The longest text of a staged snapshot, with its summary."""

LARGEST_STEP = 10_000
"""How much greater than the last one a sequence number may be: clients add one for each
snapshot."""

SOURCE = "source-snapshot-id"
"""In the summary of a snapshot of main: the id of the staged snapshot that a client has picked."""


@dataclass(frozen=True, slots=True)
class Branches:
    """The references and the staged snapshots of a table, and what a commit does to them."""

    state: TableState
    commit: TableCommit

    @property
    def has_staged(self) -> bool:
        """Whether the table has staged snapshots already, also if clients do not see them."""
        return bool(self._stored)

    @property
    def _stored(self) -> dict[int, StagedSnapshot]:
        """All staged snapshots, also those that clients do not see."""
        return staged_snapshots(self.state.files.history.tags)

    @property
    def _shown(self) -> dict[int, StagedSnapshot]:
        """The staged snapshots that clients see."""
        ids = {snapshot.snapshot_id for snapshot in self.state.document.staged}
        return {id_: staged for id_, staged in self._stored.items() if id_ in ids}

    @property
    def _listed(self) -> dict[int, ListedSnapshot]:
        """The snapshots of main."""
        return {snapshot.snapshot_id: snapshot for snapshot in self.state.document.snapshots}

    @property
    def _names(self) -> Mapping[str, Reference]:
        """The references after the commit."""
        before = references(self.state.files.history.tags)
        after = {**before, **self.commit.references}
        return {name: reference for name, reference in after.items() if reference is not None}

    def main_snapshots(self) -> list[Snapshot]:
        """The snapshots that become those of main, oldest first: new ones, or staged ones.

        Raises:
            BadRequest: main is set back, or staged snapshots are left behind.
        """
        head = self.state.head
        head_id = None if self.commit.removes_main or head is None else head.snapshot_id
        if self.commit.main in {None, head_id}:
            return []
        added = {snapshot.snapshot_id: snapshot for snapshot in self.commit.snapshots}
        shown, line = self._shown, list[Snapshot]()
        id_: int | None = self.commit.main
        while id_ is not None and id_ != head_id and len(line) <= len(added) + len(shown):
            if id_ in added:
                line.insert(0, added[id_])
            elif id_ in shown:
                line.insert(0, Snapshot.model_validate(shown[id_].json))
            else:
                break
            id_ = line[0].parent_snapshot_id
        if not line:
            raise BadRequest(
                "DuckLake cannot go back to an older snapshot; read it as warehouse=lake@ID and "
                "overwrite the table with its rows"
            )
        ids = {snapshot.snapshot_id for snapshot in line}
        if not ids.issuperset(self.commit.snapshot_ids):
            raise BadRequest(
                "a commit adds snapshots to main or to branches, not to both: commit one after the "
                "other"
            )
        self._check_left_behind(ids & shown.keys())
        return line

    def _check_left_behind(self, published: set[int]) -> None:
        """Refuse to publish a snapshot that others follow: their files would become DuckLake's."""
        later = {s.parent_snapshot_id for id_, s in self._shown.items() if id_ not in published}
        named = {name.snapshot_id for name in self._names.values()} - {self.commit.main}
        if published & (later | named):
            raise BadRequest(
                f"main cannot be set to the snapshot {self.commit.main}: other snapshots follow "
                "one that would be published, or a tag or branch names one before it; set main to "
                "the newest of them, or remove them first"
            )

    def change(
        self, line: Sequence[Snapshot], client: ClientFiles
    ) -> tuple[dict[str, str | None], StagedFiles]:
        """The tags of DuckLake that change, with their new values, and files of staged snapshots.

        Args:
            line: the snapshots that become those of main.

        Raises:
            CommitFailed: a new snapshot follows one that the table does not list any more.
            BadRequest: a new snapshot cannot be kept, a reference cannot be set, or a snapshot
                cannot be removed.
        """
        removed = set(self.commit.removed_snapshots)
        if removed & (self._listed.keys() | {snapshot.snapshot_id for snapshot in line}):
            raise BadRequest(
                "snapshots of a DuckLake are those of all its tables: expire them in DuckDB with "
                "CALL ducklake_expire_snapshots(…)"
            )
        main_snapshots = {snapshot.snapshot_id for snapshot in line}
        staged, files = ({}, []) if line else self._staged(client)
        listed = {*self._listed, *(s.snapshot_id for s in line[-1:])}
        listed |= {*self._shown, *staged} - removed - main_snapshots
        tags = changed_references(self.commit, self.state.files.history.tags, listed)
        tags |= {f"{STAGED}{id_}": s.text for id_, s in staged.items() if id_ not in removed}
        gone = removed | main_snapshots | self._expired() | self._picked(line)
        for name, reference in self._names.items():
            if reference.snapshot_id in removed:
                tags[REFERENCE + name] = None
        gone &= self._stored.keys()
        tags |= {f"{STAGED}{id_}": None for id_ in gone}
        is_last = bool(gone) and not (staged or self._stored.keys() - gone)
        return tags, StagedFiles(files, None if is_last else ())

    def _expired(self) -> set[int]:
        now_ms = time.time() * 1000
        return {id_ for id_, staged in self._stored.items() if staged.until_ms <= now_ms}

    def _picked(self, line: Sequence[Snapshot]) -> set[int]:
        """Staged snapshots without a name whose files a client has picked for main."""
        sources = {snapshot.summary.get(SOURCE) for snapshot in line}
        needed = {staged.parent_snapshot_id for staged in self._shown.values()}
        needed |= {name.snapshot_id for name in self._names.values()}
        return {id_ for id_ in self._shown if str(id_) in sources and id_ not in needed}

    def _staged(self, client: ClientFiles) -> tuple[dict[int, StagedSnapshot], list[StagedFile]]:
        """The snapshots that the commit stages, by id, and the files that they add."""
        before, staged = self._shown, dict[int, StagedSnapshot]()
        files: list[StagedFile] = []
        last = self.state.document.last_sequence_number
        for snapshot in self.commit.snapshots:
            last = self._check(snapshot, last)
            earlier = {**before, **staged}.get(snapshot.parent_snapshot_id or 0)
            new = self._new_manifests(snapshot, earlier, client)
            staged[snapshot.snapshot_id] = self._kept(snapshot, earlier, new)
            files += self._files(client.entries(new))
        if len(self._stored.keys() - self._expired()) + len(staged) > MOST_STAGED:
            raise BadRequest(
                f"the table has {MOST_STAGED:,} snapshots that are not of main: set main to the "
                "newest of a branch, or remove some"
            )
        return staged, files

    def _files(self, entries: Iterable[WrittenFile]) -> Iterator[StagedFile]:
        """The Parquet files below the directory of the table's uploads."""
        # For its errors: the whole change is checked when main is set to the snapshot.
        net = net_change(entries, [])
        location, uuid = self.state.location, self.state.table.table_uuid
        uploads = normalised(f"{data_path(location, uuid)}/")
        for file in (*net.added, *net.added_deletes, *net.equality_deletes):
            path = normalised(file.file_path)
            if path.startswith(uploads) and path.endswith(".parquet"):
                relative_path = relative(path, location, "a data file")
                yield StagedFile(relative_path, file.file_size_in_bytes)

    def _check(self, snapshot: Snapshot, last: int) -> int:
        """Check what a staged snapshot says of itself; returns its sequence number.

        Raises:
            CommitFailed: another snapshot was added since the client loaded the table.
        """
        number = snapshot.sequence_number
        if number is None or number > last + LARGEST_STEP:
            raise BadRequest(
                f"the snapshot {snapshot.snapshot_id} has no sequence number that follows {last}, "
                "the table's last"
            )
        if number <= last:
            raise CommitFailed(
                f"the snapshot {snapshot.snapshot_id} has the sequence number {number}, and the "
                f"table's last is {last} now; load the table again"
            )
        if snapshot.snapshot_id in self._listed or snapshot.snapshot_id in self._stored:
            raise BadRequest(f"the table has a snapshot {snapshot.snapshot_id} already")
        return number

    def _kept(
        self,
        snapshot: Snapshot,
        earlier: StagedSnapshot | None,
        manifests: Iterable[ListedManifest],
    ) -> StagedSnapshot:
        """The record of a snapshot that follows a staged one, or one of main.

        Args:
            manifests: those that the snapshot before it does not have.
        """
        document = self.state.document
        prints = {schema.schema_id: schema_print(schema) for schema in document.schemas}
        schema_id = document.current_schema_id if snapshot.schema_id is None else snapshot.schema_id
        spec_prints = {spec.spec_id: spec_print(spec) for spec in document.specs}
        specs = dict(earlier.specs) if earlier else {}
        for manifest in manifests:
            specs[manifest.partition_spec_id] = spec_prints.get(manifest.partition_spec_id, "")
        if schema_id not in prints or "" in specs.values():
            raise BadRequest(
                f"the snapshot {snapshot.snapshot_id} has a schema or a partition spec that the "
                "table does not have"
            )
        json = snapshot.model_dump(by_alias=True, exclude_none=True)
        base = self._base(snapshot, earlier)
        since_ms = earlier.since_ms if earlier else round(time.time() * 1000)
        staged = StagedSnapshot(json, base, since_ms, prints[schema_id], specs)
        if len(staged.text) > MOST_CHARACTERS:
            raise BadRequest(
                f"the summary of the snapshot {snapshot.snapshot_id} is too long for a branch: "
                f"at most {MOST_CHARACTERS:,} characters are allowed"
            )
        return staged

    def _base(self, snapshot: Snapshot, earlier: StagedSnapshot | None) -> str | None:
        """The manifest list of the snapshot of main at which the branch began; None: none."""
        parent = snapshot.parent_snapshot_id
        if earlier is not None or parent is None:
            return earlier.base if earlier else None
        if parent not in self._listed:
            raise CommitFailed(
                f"the snapshot {snapshot.snapshot_id} follows {parent}, which the table does not "
                "list any more; load the table again"
            )
        return self._listed[parent].manifest_list

    def _new_manifests(
        self, snapshot: Snapshot, earlier: StagedSnapshot | None, client: ClientFiles
    ) -> list[ListedManifest]:
        """The client's manifests in a staged snapshot that are not in the one before it."""
        base = self._base(snapshot, earlier)
        of_base = [s for s in self._listed.values() if s.manifest_list == base]
        before = {m.manifest_path for s in of_base for m in client.base(s.sequence_number)}
        if earlier is not None:
            before |= {m.manifest_path for m in client.manifests(earlier.json["manifest-list"])}
        new = [m for m in client.manifests(snapshot.manifest_list) if m.manifest_path not in before]
        if any(client.own_name(manifest.manifest_path) for manifest in new):
            raise rewritten()
        return new
