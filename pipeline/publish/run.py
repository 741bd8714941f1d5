"""A run of `publish`: some tables at a time, each step for all of them, the executors' together."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from typing import Any

from pg8000.native import Connection
from polynya.config import Config
from polynya.ducklake import queries
from polynya.ducklake.rows import Lake, Schema, Table
from polynya.errors import NoSuchKey, Refused
from polynya.translate.tables import check_lake

from ..common import errors
from ..common.errors import BadInput
from ..common.map_in_spark import map_in_spark
from ..common.progress import Reporter
from ..ingest.catalog import TableName
from . import shared_snapshot
from .destinations import Destination, check_directory, table_directory
from .shared_snapshot import SharedSnapshot
from .tables import Publication, PublishedTable
from .tasks import DONE, REFUSED, Answer, Part, Task, make, plan, tasks

AT_ONCE = 50
"""Tables whose histories the driver holds, and sends to the executors."""

SLICES = 2
"""Tasks for each core: without an index each is a scan of all statistics."""

Found = tuple[Schema, Table]


@dataclass(slots=True)
class Published:
    """What a run has done."""

    snapshot_id: int
    dry_run: bool
    is_one_view: bool
    """Whether executors saw what the driver saw, by PostgreSQL's own means."""
    seconds: float = 0.0
    tables: list[PublishedTable] = field(default_factory=list)

    @property
    def json(self) -> dict[str, Any]:
        return asdict(self)

    @property
    def summary(self) -> str:
        done = [table for table in self.tables if not table.refused]
        refused = len(self.tables) - len(done)
        made = sum(table.manifests_made for table in done)
        lists = sum(table.lists_made for table in done)
        words = (
            f"{len(done):,} tables at snapshot {self.snapshot_id}: {made:,} manifests and "
            f"{lists:,} lists {'to make' if self.dry_run else 'made'}"
        )
        if not self.dry_run:
            words += f", {sum(table.bytes for table in done):,} bytes, {self.seconds:.1f} s"
        return f"{words}; {refused:,} refused" if refused else words


@dataclass(frozen=True, slots=True)
class Publishing:
    config: Config
    export: str
    """The directory of all exported tables; empty: into the functions' store."""
    snapshots: int | None
    tables: tuple[TableName, ...]
    namespaces: tuple[str, ...]
    """Neither: the whole lake."""
    spark: Any | None
    writes: bool
    reporter: Reporter

    def run(self, database: str, metadata_schema: str) -> Published:
        with shared_snapshot.exported(database, metadata_schema) as (con, view):
            lake = queries.lake().run(con)
            check_lake(lake.version, lake.encrypted)
            if self.export:
                check_directory(self.export, lake.data_path)
            report = Published(lake.snapshot_id, not self.writes, view.exported is not None)
            if not report.is_one_view:
                self.reporter.say("The database exports no snapshot: the driver asks by itself")
            found = list(self._find(con, lake))
            for start in range(0, len(found), AT_ONCE):
                report.tables += self._some(con, lake, view, found[start : start + AT_ONCE])
        return report

    def _find(self, con: Connection, lake: Lake) -> Iterator[Found]:
        """The tables that are wanted, each once.

        Raises:
            BadInput: a table or a namespace is not there.
        """
        at = lake.snapshot_id
        schemas = {schema.schema_name: schema for schema in queries.schemas_at(at).run(con)}
        found: dict[int, Found] = {}
        for name in self.namespaces or (() if self.tables else schemas):
            if name not in schemas:
                raise BadInput(f"no namespace {name}")
            for table in queries.tables_at(at, schemas[name].schema_id).run(con):
                found[table.table_id] = (schemas[name], table)
        for wanted in self.tables:
            one = queries.table_at(at, wanted.schema_name, wanted.table_name).run(con)
            if one is None:
                raise BadInput(f"no table {wanted}")
            found[one[1].table_id] = one
        yield from found.values()

    def _some(
        self, con: Connection, lake: Lake, view: SharedSnapshot, found: Sequence[Found]
    ) -> list[PublishedTable]:
        """Publish these tables, all steps."""
        with self._stage(f"Looking at {_names(found)}"):
            of = [self._open(con, lake, one) for one in found]
            for one in of:
                with self._refusing(one):
                    one.look()
        work = self._tasks(view, (part for n, one in _served(of) for part in one.to_plan(n)))
        with self._stage("Asking which manifests there are", work):
            for number, answer in self._spread(plan, work, of):
                of[number].planned(answer)
            for _, one in _served(of):
                with self._refusing(one):
                    one.plan()
        work = self._tasks(view, (part for n, one in _served(of) for part in one.to_make(n)))
        if self.writes:
            count = sum(one.result.manifests_made for _, one in _served(of))
            with self._stage(f"Making {count:,} manifests", work):
                for number, (files, size) in self._spread(make, work, of):
                    of[number].made(files, size)
            with self._stage("Making lists and metadata"):
                for _, one in _served(of):
                    with self._refusing(one):
                        one.finish()
        return [one.result for one in of]

    def _open(self, con: Connection, lake: Lake, found: Found) -> Publication:
        place = Destination(self.config, self.export and table_directory(self.export, *found))
        return Publication.open(con, lake, found, place, self.snapshots, self.writes)

    def _spread(
        self, work: Callable[[Task], list[Answer]], tasks: Sequence[Task], of: list[Publication]
    ) -> Iterator[tuple[int, Any]]:
        """The number of a table and what the work has given, for each part of a task.

        Raises:
            JobError: what ends it all.
        """
        for number, outcome, answer in map_in_spark(self._spark_for(tasks), work, tasks):
            if outcome == DONE:
                yield number, answer
            elif outcome == REFUSED:
                self._refuse(of[number], answer)
            else:
                kind, words = answer
                error: Exception = getattr(errors, kind)(words)
                raise error

    def _tasks(self, view: SharedSnapshot, parts: Iterable[Part]) -> list[Task]:
        return tasks(view, parts, self._cores * SLICES if self.spark else 1)

    @property
    def _cores(self) -> int:
        try:
            return int(self.spark.sparkContext.defaultParallelism)  # type: ignore[union-attr]
        except Exception:  # Spark Connect has no context
            return 2

    def _spark_for(self, tasks: Sequence[Task]) -> Any | None:
        return self.spark if len(tasks) > 1 else None

    def _stage(self, doing: str, tasks: Sequence[Task] = ()) -> AbstractContextManager[None]:
        spark = self._spark_for(tasks)
        return self.reporter.spark_stage(doing, spark) if spark else self.reporter.stage(doing)

    @contextmanager
    def _refusing(self, one: Publication) -> Iterator[None]:
        try:
            yield
        except (Refused, NoSuchKey) as error:
            self._refuse(one, str(error))

    def _refuse(self, one: Publication, words: str) -> None:
        """One of many tables is left out; one that was asked for by its name ends the run."""
        if self.tables:
            raise BadInput(words)
        one.result.refused = words
        self.reporter.say(f"{one.result.name} is not published: {words}")


def _served(of: Sequence[Publication]) -> list[tuple[int, Publication]]:
    return [(number, one) for number, one in enumerate(of) if one.result.refused is None]


def _names(found: Sequence[Found]) -> str:
    if len(found) != 1:
        return f"{len(found):,} tables"
    [(schema, table)] = found
    return f"{schema.schema_name}.{table.table_name}"
