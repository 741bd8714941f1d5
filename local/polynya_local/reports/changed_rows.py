"""The rows that changed between two snapshots of a table.

DuckLake's change feed has each row that a snapshot inserted, deleted or updated. Iceberg's entries
name the data files that a snapshot added, removed, or deleted rows of: the rows of these files at
the later snapshot, minus those at the earlier one, are the changed rows. `parts` asks DuckDB for
both, in the process of `preview_worker`. They agree if the sums of the hashes of their rows are
equal. A deleted row counts negatively, so that a row in both snapshots adds nothing.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

from duckdb import DuckDBPyConnection
from duckdb.sqltypes import DuckDBPyType
from polynya.runtime.namespaces import Namespace, dotted

from ..clients.canonical import columns_of, text
from ..clients.duckdb import identifier, literal
from .preview_sql import Cell, DifferentColumns, Side, cells, row_of, side

KINDS = {
    "inserted": ("insert",),
    "deleted": ("delete",),
    "updated": ("update_preimage", "update_postimage"),
}
"""What happened to a row, and the values of `change_type` for it in the feed."""
WORDS = {
    "insert": "inserted",
    "delete": "deleted",
    "update_preimage": "updated from",
    "update_postimage": "updated to",
}
ADDED = "('insert', 'update_postimage')"
BEFORE = "ice_before"
"""The name under which the lake at the earlier snapshot is attached."""
EVERY_ROW = 2**63 - 1
HIDING = frozenset(("rowid", "snapshot_id"))
"""Columns of the feed that a table's own column of the same name hides."""
SYSTEM_COLUMNS = 3
"""The feed begins with snapshot_id, rowid and change_type; the table may have columns with these
names, too."""


class TableAt(NamedTuple):
    """A table by its name at a snapshot."""

    namespace: Namespace
    table: str
    snapshot: int


class Span(NamedTuple):
    """A range of snapshots: the first one, and the table at the last one."""

    first: int
    table: TableAt

    @property
    def feed(self) -> str:
        """The call of DuckLake's change feed for these snapshots."""
        schema, last = schema_for_functions(self.table.namespace), self.table.snapshot
        arguments = ", ".join(map(literal, ("lake", schema, self.table.table)))
        return f"ducklake_table_changes({arguments}, {self.first:d}, {last:d})"


def schema_for_functions(namespace: Namespace) -> str:
    """A namespace as DuckLake's functions take it: dotted if it has several levels."""
    return dotted(*namespace) if len(namespace) > 1 else namespace[0]


@dataclass(frozen=True, slots=True)
class ChangesQuestion:
    """The question for the rows that changed between two snapshots of a table."""

    after: TableAt
    before: TableAt | None
    """None: the table did not exist."""
    spans: tuple[Span, ...]
    """The snapshots after the earlier one, without `rewrites`."""
    steps: tuple[Span, ...]
    """Each snapshot that changed rows, by itself; empty: there are none, or too many."""
    expired: int
    """How many snapshots in between have expired: the feed lacks their changes."""
    rewrites: tuple[int, ...]
    """Snapshots that only moved rows to other files: the feed has these rows as updated, or as
    deleted a second time."""
    kind: str
    """One of `KINDS`; empty: all."""
    columns: tuple[tuple[str, str], ...]
    """The names, after and before, of the columns that both snapshots have and Iceberg clients see;
    empty: there are none, or clients do not get the table."""
    hidden: frozenset[str]
    """The dotted names of columns that Iceberg clients do not get."""
    paths: tuple[str, ...] | None = None
    """The data files that Iceberg's entries name; None: not known, or too many: all are read."""
    parent: int | None = None
    """Iceberg's id of the earlier snapshot, if there are `paths`."""

    @property
    def feed(self) -> str:
        """What follows FROM to read the change feed."""
        spans = self.spans or (Span(self.after.snapshot, self.after),)  # it takes no empty range
        feed = Span(spans[0].first, spans[-1].table).feed
        # A LIMIT keeps DuckDB from pushing a condition down into the function, where DuckLake
        # would apply it to the snapshot that inserted a row, not to that of the change.
        return f"(SELECT * FROM {feed} LIMIT {EVERY_ROW if self.spans else 0})"


@dataclass(frozen=True, slots=True)
class RowChanges:
    """How many rows a snapshot changed."""

    inserted: int
    deleted: int
    updated: int


@dataclass(frozen=True, slots=True)
class ChangedRow:
    """A row that a snapshot changed."""

    snapshot_id: int | None
    """None: it is one of several, and Iceberg's entries do not say which."""
    what: str
    cells: tuple[Cell, ...]
    differs: tuple[int, ...] = ()
    """The indexes of the cells that an update changed."""


@dataclass(frozen=True, slots=True)
class ChangedRows:
    """Some of the changed rows, ordered by snapshot."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    rows: tuple[ChangedRow, ...]
    has_more: bool
    columns_left_out: int


@dataclass(frozen=True, slots=True)
class Sum:
    """A sum over all rows that changed."""

    rows: int
    """Inserted ones minus deleted ones."""
    checksum: str


@dataclass(frozen=True, slots=True)
class ChangesAnswer:
    """The parts of an answer that arrived in time."""

    counts: dict[int, RowChanges] | None = None
    """By snapshot."""
    rows: ChangedRows | None = None
    feed: Sum | None = None
    entries: Sum | None = None
    notes: dict[str, str] = field(default_factory=dict)
    """Why a part is missing, by its name."""

    @property
    def agree(self) -> bool | None:
        """Whether the feed and the entries have the same rows; None: one of them is missing."""
        return None if None in (self.feed, self.entries) else self.feed == self.entries


@dataclass(frozen=True, slots=True)
class Readers:
    """What is needed to read the parts of an answer."""

    iceberg: DuckDBPyConnection
    query: Callable[..., list[tuple[Any, ...]]]
    """Returns the rows of a statement, within the time that is left."""
    most_rows: int
    most_columns: int
    characters: int


Part = tuple[str, Any]
RunPart = Callable[..., Part]


def parts(
    question: ChangesQuestion,
    readers: Readers,
    run: RunPart,
    native: tuple[DuckDBPyConnection, str] | str,
    iceberg: tuple[str, str | None] | str,
) -> Iterator[Part]:
    """Yield the parts of the answer, the most wanted ones first.

    Args:
        run: returns the name of a part with its value, or with the reason why it is missing.
        native: the connection that has DuckLake's feed, and what follows FROM to read the table;
            or the reason why there is none.
        iceberg: what follows FROM to read the table after and before; or the reason why it cannot
            be read.
    """
    feed: _Feed | None = None
    if isinstance(native, str):
        yield from ((name, native) for name in ("counts", "feed"))
    else:
        name, opened = run("feed", _Feed.open, question, *native)
        if isinstance(opened, _Feed):
            feed = opened
            yield run("rows", _rows, question, readers, feed)
            yield run("counts", _counts, readers, feed)
        else:
            yield from ((name, opened) for name in ("counts", "feed"))
    if isinstance(iceberg, str) or not question.columns:
        why = (
            iceberg
            if isinstance(iceberg, str)
            else "Iceberg clients get no column that the table has at both snapshots"
        )
        yield "entries", why
        if feed is None:
            yield "rows", why
        return
    name, sides = run("entries", _Sides.open, question, readers, iceberg, feed)
    if not isinstance(sides, _Sides):
        yield name, sides
        return
    name, entries = run("entries", _entries_sum, question, readers, sides)
    yield name, entries
    if feed is None:
        yield run("rows", _entry_rows, question, readers, sides)
        return
    name, total = run("feed", _feed_sum, question, readers, feed)
    yield name, total
    differ = isinstance(total, Sum) and isinstance(entries, Sum) and total != entries
    if differ and question.steps:
        yield from _again(question, readers, run, feed, entries)


def _again(
    question: ChangesQuestion, readers: Readers, run: RunPart, feed: "_Feed", entries: Sum
) -> Iterator[Part]:
    """Yield the parts from the feeds of single snapshots, if these agree with the entries.

    If rows were updated twice and then flushed, the feed of several snapshots has the second update
    twice, at the first snapshot.
    """
    _, steps = run("feed", feed.step_feeds, question)
    if isinstance(steps, _Feed):
        name, total = run("feed", _feed_sum, question, readers, steps)
        if total == entries:
            yield name, total
            yield run("rows", _rows, question, readers, steps)
            yield run("counts", _counts, readers, steps)


@dataclass(frozen=True, slots=True)
class _Feed:
    """The change feed as a table with the columns c0, c1, …"""

    con: DuckDBPyConnection
    source: str
    names: tuple[str, ...]
    """The columns of the table, without those of the feed."""
    types: tuple[DuckDBPyType, ...]

    @classmethod
    def open(cls, question: ChangesQuestion, con: DuckDBPyConnection, table: str) -> "_Feed":
        relation = con.sql(f"SELECT * FROM {question.feed}")
        aliases = ", ".join(f"c{place}" for place in range(len(relation.columns)))
        source = f"(SELECT * FROM {question.feed}) AS feed({aliases})"
        if question.rewrites:
            # Across a rewrite the feed has changes of rows with inlined deletes twice.
            ids = ", ".join(map(str, question.rewrites))
            source = f"(SELECT DISTINCT ON (c0, c1, c2) * FROM {source} WHERE c0 NOT IN ({ids}))"
        names = tuple(columns_of(con, table))
        if not HIDING.isdisjoint(map(str.lower, names)):
            raise DifferentColumns(
                "the table has a column called rowid or snapshot_id, whose values DuckLake's "
                "change feed has in place of its own"
            )
        return cls(con, source, names, tuple(relation.types[SYSTEM_COLUMNS:]))

    @property
    def aliases(self) -> dict[str, DuckDBPyType]:
        return {f"c{place}": of for place, of in enumerate(self.types, SYSTEM_COLUMNS)}

    def step_feeds(self, question: ChangesQuestion) -> "_Feed | None":
        """The feeds of the single snapshots as one; None: one of them has other columns."""
        last = self.con.sql(f"SELECT * FROM {question.feed}")
        aliases = ", ".join(f"c{place}" for place in range(len(last.columns)))
        selects = []
        for step in question.steps:
            feed = f"(SELECT * FROM {step.feed} LIMIT {EVERY_ROW})"
            relation = self.con.sql(f"SELECT * FROM {feed}")
            if (relation.columns, relation.types) != (last.columns, last.types):
                return None
            selects.append(f"SELECT {step.first}, s.* EXCLUDE (c0) FROM {feed} AS s({aliases})")
        return replace(self, source=f"({' UNION ALL '.join(selects)}) AS feed({aliases})")

    def alias(self, name: str) -> str:
        return f"c{self.names.index(name) + SYSTEM_COLUMNS}"


def _rows(question: ChangesQuestion, readers: Readers, feed: _Feed) -> ChangedRows:
    shown = list(feed.aliases)[: readers.most_columns]
    kinds = ", ".join(map(literal, KINDS[question.kind])) if question.kind else ""
    condition = f"c2 IN ({kinds})" if kinds else "true"
    sql = (
        f"SELECT c0, c1, c2, {cells(shown, feed.aliases, readers.characters)} "
        f"FROM (SELECT * FROM {feed.source}) WHERE {condition} "
        f"ORDER BY c0, c1, c2 DESC LIMIT {readers.most_rows + 1}"
    )
    fetched = readers.query(feed.con, sql, [])
    rows = [ChangedRow(row[0], WORDS[row[2]], row_of(row[3:])) for row in fetched]
    pairs = [*pairwise(fetched)]
    for place, (old, new) in enumerate(pairs):
        if old[:2] == new[:2] and (old[2], new[2]) == KINDS["updated"]:
            differs = tuple(
                number
                for number, cell in enumerate(rows[place].cells)
                if cell != rows[place + 1].cells[number]
            )
            rows[place : place + 2] = [
                replace(row, differs=differs) for row in rows[place : place + 2]
            ]
    return ChangedRows(
        columns=feed.names[: len(shown)],
        types=tuple(str(feed.aliases[name]) for name in shown),
        rows=tuple(rows[: readers.most_rows]),
        has_more=len(rows) > readers.most_rows,
        columns_left_out=len(feed.aliases) - len(shown),
    )


def _counts(readers: Readers, feed: _Feed) -> dict[int, RowChanges]:
    kinds = ", ".join(
        f"count(*) FILTER (WHERE c2 = {literal(words[-1])})" for words in KINDS.values()
    )
    sql = f"SELECT c0, {kinds} FROM (SELECT * FROM {feed.source}) GROUP BY 1"
    rows = readers.query(feed.con, sql, [])
    return {snapshot_id: RowChanges(*counts) for snapshot_id, *counts in rows}


SUM = "coalesce(sum(sign), 0), coalesce(sum(sign * CAST(hash({texts}) AS HUGEINT)), 0)"


def _sum(rows: list[tuple[Any, ...]]) -> Sum:
    [(number, total)] = rows
    return Sum(int(number), f"{int(total) % 2**64:016x}")


def _feed_sum(question: ChangesQuestion, readers: Readers, feed: _Feed) -> Sum:
    texts = ", ".join(
        text(alias := feed.alias(name), feed.aliases[alias], feed.aliases[alias], (name,), hidden)
        for name, _ in question.columns
        for hidden in (question.hidden,)
    )
    sign = f"CASE WHEN c2 IN {ADDED} THEN 1 ELSE -1 END AS sign"
    sql = f"SELECT {SUM.format(texts=texts)} FROM (SELECT *, {sign} FROM {feed.source})"
    return _sum(readers.query(feed.con, sql, []))


class _Sides(NamedTuple):
    """The rows of the changed files after and before, as text."""

    con: DuckDBPyConnection
    source: str
    """A SELECT with `sign`, and each column as text."""
    parameters: list[str]
    names: tuple[str, ...]

    @classmethod
    def open(
        cls,
        question: ChangesQuestion,
        readers: Readers,
        sources: tuple[str, str | None],
        feed: _Feed | None,
    ) -> "_Sides":
        after = side(readers.iceberg, sources[0])
        native = dict(zip(feed.names, feed.types, strict=True)) if feed else after.columns
        names = tuple(name for name, _ in question.columns)
        pairs = [(after, names, 1)]
        if sources[1] is not None:
            before = side(readers.iceberg, sources[1])
            pairs.append((before, tuple(name for _, name in question.columns), -1))
        selects = [cls._select(question, of, theirs, sign, native) for of, theirs, sign in pairs]
        parameters = [*(question.paths or ())] * len(pairs)
        return cls(readers.iceberg, " UNION ALL ".join(selects), parameters, names)

    @staticmethod
    def _select(
        question: ChangesQuestion, of: Side, names: Sequence[str], sign: int, native: Any
    ) -> str:
        texts = [
            text(identifier(theirs), native[name], of.columns[theirs], (name,), question.hidden)
            for (name, _), theirs in zip(question.columns, names, strict=True)
        ]
        listed = ", ".join(f"{words} AS t{place}" for place, words in enumerate(texts))
        if question.paths is None:
            condition = "true"
        else:
            places = ", ".join("?" * len(question.paths))
            condition = f"filename IN ({places})" if places else "false"
        return f"SELECT {sign} AS sign, {listed} FROM {of.source} WHERE {condition}"

    @property
    def texts(self) -> str:
        return ", ".join(f"t{place}" for place in range(len(self.names)))


def _entries_sum(question: ChangesQuestion, readers: Readers, sides: _Sides) -> Sum:
    sql = f"SELECT {SUM.format(texts=sides.texts)} FROM ({sides.source})"
    return _sum(readers.query(sides.con, sql, sides.parameters))


def _entry_rows(question: ChangesQuestion, readers: Readers, sides: _Sides) -> ChangedRows:
    """The changed rows from Iceberg's entries alone, for when there is no change feed."""
    shown = sides.names[: readers.most_columns]
    starts = ", ".join(
        f"left(any_value(t{place}), {readers.characters:d}), CASE WHEN "
        f"length(any_value(t{place})) > {readers.characters:d} THEN length(any_value(t{place})) END"
        for place in range(len(shown))
    )
    kinds = {"": "<> 0", "inserted": "> 0", "deleted": "< 0"}
    sql = (
        f"SELECT sum(sign), {starts} FROM ({sides.source}) GROUP BY hash({sides.texts}) "
        f"HAVING sum(sign) {kinds.get(question.kind, '<> 0')} "
        f"ORDER BY {', '.join(map(str, range(2, 2 * len(shown) + 2, 2)))} "
        f"LIMIT {readers.most_rows + 1}"
    )
    fetched = readers.query(sides.con, sql, sides.parameters)
    rows = [
        ChangedRow(None, "inserted" if row[0] > 0 else "deleted", row_of(row[1:]))
        for row in fetched
    ]
    return ChangedRows(
        columns=shown,
        types=("",) * len(shown),
        rows=tuple(rows[: readers.most_rows]),
        has_more=len(rows) > readers.most_rows,
        columns_left_out=len(sides.names) - len(shown),
    )
