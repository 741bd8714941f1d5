"""Random histories of a lake: every snapshot that is listed has the rows that were written.

Hypothesis draws DDL, DML and maintenance. DuckDB executes each statement on a real lake, as one of
two writers with different settings for inlining. A model, which consists of lists of rows in
Python, executes it too (`tests/histories`). Two clients read in between, because cached data must
stay correct, and at the end they read every snapshot. Hypothesis shrinks a failure, and its history
is saved as a script like those in tests/lakes.

For the nightly run: `make histories`. POLYNYA_HISTORIES=50 sets the number of seeds, each of
EXAMPLES histories, POLYNYA_FIRST_HISTORY=1000 the first seed, POLYNYA_STEPS the length of a
history.
"""

import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, field
from itertools import count, islice
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)
from polynya_local.clients import pyiceberg
from polynya_local.clients.native import Lake
from pyiceberg.exceptions import RESTError

from tests.histories import draws
from tests.histories.events import SCHEMA, Elsewhere, Event
from tests.histories.history import History
from tests.histories.judge import Chosen, Judge
from tests.histories.predicates import Predicate
from tests.histories.writer import Writer
from tests.support import rest
from tests.support.derived_changes import ChangesJudge
from tests.support.servers.in_process import cache_settings, standing_in
from tests.support.shared_duckdb import SharedDuckDB

FIRST = int(os.environ.get("POLYNYA_FIRST_HISTORY", "0"))
HISTORIES = int(os.environ.get("POLYNYA_HISTORIES", "0"))
STEPS = int(os.environ.get("POLYNYA_STEPS", "24"))
EXAMPLES = 10 if HISTORIES else 5
SCRIPTS = Path(tempfile.gettempdir()) / "polynya-histories"
BUCKET = "lakes"
BRIDGE = {
    "CHUNK_FILES": "2",
    "SNAPSHOT_LIMIT": "1000",
    "POWERTOOLS_METRICS_DISABLED": "true",  # otherwise there are thousands of lines
}
REPORTED = 5

settings_here = settings(
    max_examples=EXAMPLES,
    stateful_step_count=STEPS,
    deadline=None,
    database=None,  # a failure is saved as a script
    print_blob=False,
    suppress_health_check=list(HealthCheck),
    # Explaining a failure takes as many histories again as shrinking it.
    phases=(Phase.generate, Phase.shrink),
)


@dataclass
class Stage:
    """Runs histories, each in a database of its own behind a bridge of its own."""

    server: object
    s3_endpoint: str
    delivery: str
    script: Path
    left_out: list[str]
    happened: Counter = field(default_factory=Counter)
    numbers: count = field(default_factory=lambda: count(1))
    shared_duckdb: SharedDuckDB = field(default_factory=SharedDuckDB)
    kept_writer: Writer | None = None

    def lake(self) -> Lake:
        name = f"history_{os.getpid()}_{self.script.stem}_{next(self.numbers)}"
        return Lake(name, self.server.create_database(name), f"s3://{BUCKET}/{name}")

    def writer(self) -> Writer:
        self.kept_writer = self.kept_writer or Writer(self.s3_endpoint)
        return self.kept_writer

    def close(self) -> None:
        self.shared_duckdb.close()
        if self.kept_writer is not None:
            self.kept_writer.close()


def drawn(strategy) -> st.SearchStrategy:
    """A strategy that depends on the model at the beginning of a step."""
    return st.runner().flatmap(lambda machine: strategy(machine.history.model))


def by_either(strategy) -> st.SearchStrategy:
    """The same event, by one of two writers with different settings."""
    one = drawn(strategy)
    return st.one_of(one, one.map(Elsewhere))


class Histories(RuleBasedStateMachine):
    stage: Stage
    """Set in the subclass of a test."""

    def __init__(self) -> None:
        super().__init__()
        self.history: History | None = None
        self.ended = self.failed = False
        self._open = ExitStack()

    @initialize(inlining=st.sampled_from(draws.INLINING), data=st.data())
    def begin(self, inlining: tuple[int, int], data: st.DataObject) -> None:
        stage, lake = self.stage, self.stage.lake()
        self.history = History(lake, stage.s3_endpoint, stage.writer(), inlining)
        self._open.callback(self.history.close)
        kept = cache_settings(stage.s3_endpoint)
        bridge = self._open.enter_context(
            standing_in(lake, stage.s3_endpoint, delivery=stage.delivery, **kept, **BRIDGE)
        )
        where = (bridge.api_uri, "lake", bridge.s3_uri)
        iceberg = self._open.enter_context(closing(pyiceberg.open(*where)))
        self.iceberg = iceberg
        clients = [iceberg, stage.shared_duckdb.attached_to(*where)]
        self.judge = Judge(self.history, rest.Rest(*where[:2]), clients)
        # The other writer is often the first that inlines, after columns have changed.
        for draw in (draws.creations, draws.insertions, draws.evolutions):
            self._happen(data.draw(draw(self.history.model)))
        self._happen(Elsewhere(data.draw(draws.insertions(self.history.model))))

    @rule(event=by_either(draws.insertions))
    def insert(self, event: Event) -> None:
        self._happen(event)

    @rule(event=by_either(draws.deletions))
    def delete(self, event: Event) -> None:
        self._happen(event)

    @rule(event=by_either(draws.updates))
    def update(self, event: Event) -> None:
        self._happen(event)

    @rule(event=by_either(draws.merges))
    def merge(self, event: Event) -> None:
        self._happen(event)

    @rule(event=by_either(draws.writes))
    def write(self, event: Event) -> None:
        self._happen(event)

    @rule(event=by_either(draws.transactions))
    def transact(self, event: Event) -> None:
        self._happen(event)

    @rule(event=by_either(draws.evolutions))
    def evolve(self, event: Event) -> None:
        self._happen(event)

    @rule(event=drawn(draws.flushes))
    def flush(self, event: Event) -> None:
        self._happen(event)

    @rule(event=drawn(draws.upkeep))
    def maintain(self, event: Event) -> None:
        self._happen(event)

    @rule(event=by_either(draws.switches))
    def switch(self, event: Event) -> None:
        self._happen(event)

    @rule(event=drawn(draws.rearrangements))
    def rearrange(self, event: Event) -> None:
        self._happen(event)

    @precondition(lambda self: not self.ended)
    @rule(parts=st.lists(st.integers(0, 11), max_size=2, unique=True))
    def look(self, parts: list[int]) -> None:
        """Read some snapshots while the history continues: cached data must stay correct."""
        self._compare(lambda listed: sorted({listed[p * len(listed) // 12] for p in parts}))

    @precondition(lambda self: not self.ended)
    @rule(predicate=drawn(draws.predicates))
    def prune(self, predicate: Predicate) -> None:
        """Files that are skipped by their bounds have no row that a filter matches."""
        self._fail_for(list(self.judge.pruned(predicate)))

    def teardown(self) -> None:
        try:
            if self.history is not None and not self.failed:
                self._compare(lambda listed: listed)
                self._fail_for(list(islice(self._underivable(), REPORTED)))
        finally:
            self._open.close()

    def _underivable(self) -> Iterator[str]:
        """The changes of rows that clients cannot derive from the metadata."""
        for name in self.history.model.tables:
            with suppress(RESTError):  # a table that is refused
                table = self.iceberg._catalog.load_table((SCHEMA, name))
                yield from (f"{name} at {line}" for line in ChangesJudge(table).wrong())

    def _happen(self, event: Event) -> None:
        if self.ended:
            return
        outcome = "done" if self.history.add(event) else "refused by DuckDB"
        self.stage.happened[type(event).__name__, outcome] += 1
        for line in self.history.disobeyed:
            self.ended = True
            self.stage.left_out.append(f"{self.stage.script.stem}: DuckDB did not: {line}")

    def _compare(self, chosen: Chosen) -> None:
        stage = self.stage
        wrong = list(islice(self.judge.wrong(chosen), REPORTED))
        stage.left_out += [f"{stage.script.stem}: DuckLake lost it: {x}" for x in self.judge.lost]
        self._fail_for(wrong)

    def _fail_for(self, wrong: list[str]) -> None:
        if not wrong:
            return
        stage, self.failed = self.stage, True
        script = self.history.sql("\n".join(["a random history", *wrong]))
        stage.script.parent.mkdir(exist_ok=True)
        stage.script.write_text(script)  # the last failure is the smallest
        pytest.fail("\n".join([*wrong, "", f"saved as {stage.script}:", script]), pytrace=False)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(FIRST, FIRST + (HISTORIES or 1)))
def test_every_listed_snapshot_has_the_rows_that_were_written(
    number, postgres_server, moto, request, left_out
):
    delivery = request.config.getoption("--delivery") or "object-lambda"
    stage = Stage(postgres_server, moto, delivery, SCRIPTS / f"history_{number}.sql", left_out)
    machine = seed(number)(type("Histories", (Histories,), {"stage": stage}))
    with closing(stage):
        run_state_machine_as_test(machine, settings=settings_here)
    print(stage.happened)
