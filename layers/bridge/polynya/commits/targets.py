"""A table of a commit: what the client asks for, and what will change."""

from typing import NamedTuple

from pg8000.native import Connection

from ..access.policy import Rights
from ..access.readable_lake import ReadableLake
from ..ducklake import queries
from ..ducklake.writes import commits
from ..namespaces import Namespace, dotted
from ..translate.commits.table_commit import TableCommit
from .plans.plan import TablePlan
from .plans.table_state import TableState


class Target(NamedTuple):
    """A table of a commit, by its name."""

    namespace: Namespace
    name: str
    commit: TableCommit

    @property
    def full_name(self) -> str:
        """The name for people."""
        return dotted(*self.namespace, self.name)

    @property
    def uuid(self) -> str | None:
        """The table that the client means, whatever its name is now."""
        return self.commit.uuid or self.commit.asserted_uuid


class Planned(NamedTuple):
    """What a commit will change in one table, and the lake that it was planned with."""

    plan: TablePlan
    lake: ReadableLake
    state: TableState | None
    """None: the table did not exist."""


def has_landed(con: Connection, target: Target, rights: Rights) -> bool:
    """Whether this part of a commit has taken place before, as far as it can be recognised."""
    if target.uuid is None:
        return False
    change = target.commit
    statement = commits.landed(target.uuid, change.snapshot_ids, creates=change.creates)
    if not statement.run(con):
        return False
    if change.snapshots:
        return True
    # Others may know the uuid, which is in the paths of files: it is no proof of who created it.
    table = queries.table_of_uuid(target.uuid).run(con)
    return table is None or rights.may_write_table(table[0].namespace, table[1].table_name)
