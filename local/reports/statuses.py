"""Whether Iceberg clients get a table: what `doctor` says of it, without counting rows."""

import time
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, field

from pg8000.native import Connection
from polynya.ducklake import queries
from polynya.ducklake.rows.objects import Lake
from polynya.runtime.errors import PolynyaError, Refused
from polynya.runtime.namespaces import parsed

from .client_faults import FAILS, WRONG, clients_by_kind, known_faults
from .findings import HIDDEN, UNREADABLE, WRONG_ROWS, worst
from .generator import Generator
from .table_facts import table_facts
from .table_report import default_columns, hidden_columns

CAPACITY = 20_000
CPU_SECONDS = 0.15
"""How long one page of tables may take; the others are found out when somebody looks again."""


@dataclass(frozen=True, slots=True)
class Status:
    """What clients get of a table or a view."""

    word: str
    """`served`; `partly`: columns are hidden; `refused`; `fails`: it cannot be read; `unknown`:
    nobody has looked yet."""
    reason: str = ""
    """Why it is refused or fails, and what to do about it."""
    hidden: dict[str, str] = field(default_factory=dict)
    """The reason by dotted name of a column."""
    defaults: dict[str, str] = field(default_factory=dict)
    """Columns with a default that some clients do not read."""
    wrong: list[str] = field(default_factory=list)
    """Clients that are known to read wrong rows."""
    failing: list[str] = field(default_factory=list)
    """Clients that are known not to read all of it."""

    @property
    def worst(self) -> str:
        """The worst consequence for readers, as of `doctor`'s findings; empty: not known yet."""
        if self.word == UNKNOWN.word:
            return ""
        consequences = [
            (WRONG_ROWS, self.wrong),
            (UNREADABLE, self.word in ("refused", "fails") or self.failing),
            (HIDDEN, self.hidden),
        ]
        return worst(consequence for consequence, is_so in consequences if is_so)


UNKNOWN = Status("unknown")


@dataclass(frozen=True, slots=True)
class Subject:
    """A table or a view, and when it last changed."""

    kind: str
    object_id: int
    namespace: str
    name: str
    changed_at: int
    """The newest snapshot that changed it."""


class Statuses:
    """Finds statuses out, and keeps each as long as its table has not changed."""

    def __init__(self, generator: Generator) -> None:
        self._generator = generator
        self._cached: OrderedDict[tuple[str, int, int], Status] = OrderedDict()

    def of(self, subjects: Iterable[Subject], snapshot_id: int) -> list[Status]:
        """The statuses at a snapshot; `UNKNOWN` for those that there is no time for."""
        started = time.thread_time()
        statuses = []
        for subject in subjects:
            status = self._cached.get(_key(subject))
            if status is None and time.thread_time() - started < CPU_SECONDS:
                status = self._put(subject, self._find(subject, snapshot_id))
            statuses.append(status or UNKNOWN)
        return statuses

    def _put(self, subject: Subject, status: Status) -> Status:
        if status.word != "fails":  # the next attempt may find it well
            self._cached[_key(subject)] = status
            if len(self._cached) > CAPACITY:
                self._cached.popitem(last=False)
        return status

    def _find(self, subject: Subject, snapshot_id: int) -> Status:
        if subject.kind == "view":
            return Status("served")

        def find(con: Connection) -> Status:
            return self._status(con, queries.lake().run(con), subject, snapshot_id)

        try:
            return self._generator.read(find)
        except Refused as error:
            return Status("refused", str(error))
        except PolynyaError as error:
            return Status("fails", str(error))

    def _status(self, con: Connection, lake: Lake, subject: Subject, snapshot_id: int) -> Status:
        pair = queries.table_at(snapshot_id, parsed(subject.namespace), subject.name).run(con)
        if pair is None:
            return UNKNOWN
        opened = self._generator.open_table(con, lake, *pair, snapshot_id, since=snapshot_id)
        hidden = hidden_columns(opened)
        word = "partly" if hidden else "served"
        clients = clients_by_kind(known_faults(table_facts(opened)))
        defaults = default_columns(opened)
        return Status(word, "", hidden, defaults, clients[WRONG], clients[FAILS])


def _key(subject: Subject) -> tuple[str, int, int]:
    return subject.kind, subject.object_id, subject.changed_at
