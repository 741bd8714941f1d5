"""Random histories of native DuckLake and Iceberg clients on one table; a twin in memory judges.

A seed gives a history of 30 operations: DuckDB and DuckLake as two writers with different settings,
and PyIceberg and DuckDB's Iceberg extension, also with a table that is not current any more. After
each operation the rows, aggregates, filters, the change feed of commits and row ids are compared
natively; at the end every snapshot, what Iceberg clients read and filter, and `verify`.

`make mixed-histories`: POLYNYA_MIXED_HISTORIES=50 sets the number of seeds,
POLYNYA_FIRST_HISTORY=1000 the first one. A history that fails is printed and saved; with
POLYNYA_REPLAY=file it is done again. With POLYNYA_HISTORIES_LOG=file each history adds a line there
when it ends, and one that fails is not made smaller. POLYNYA_MIXED_SPARK=1 lets Spark write too.
With POLYNYA_MIXED_ADDED=1 PyIceberg also adds files that other programs wrote.
"""

import os
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from tests.histories.mixed.clients.pyiceberg import without_retries
from tests.histories.mixed.history import Result
from tests.histories.mixed.operations import DUCKDB, PYICEBERG, SPARK, load, save, shown
from tests.histories.mixed.stage import FOLDER, Stage, smaller

FIRST = int(os.environ.get("POLYNYA_FIRST_HISTORY", "2"))
NUMBER = int(os.environ.get("POLYNYA_MIXED_HISTORIES", "0"))
CLIENTS = (PYICEBERG, DUCKDB, *((SPARK,) if os.environ.get("POLYNYA_MIXED_SPARK") else ()))
LOG = os.environ.get("POLYNYA_HISTORIES_LOG")
REPLAY = os.environ.get("POLYNYA_REPLAY")
STEPS = 30 if NUMBER else 10

pytestmark = [
    pytest.mark.filterwarnings("ignore:Delete operation did not match any records"),
    pytest.mark.filterwarnings("ignore:Merge on read is not yet supported"),
]


@pytest.fixture(scope="module")
def stage(postgres_server, moto):
    outcomes: Counter[tuple[str, str, str]] = Counter()
    refusals: Counter[str] = Counter()
    with (
        closing(Stage(postgres_server, moto, CLIENTS, outcomes, refusals)) as found,
        without_retries(),
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("AWS_ENDPOINT_URL_S3", moto)
        yield found
    for counted in (outcomes, refusals):
        for what, number in counted.most_common():
            print(number, what)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(FIRST, FIRST + (NUMBER or 1)))
def test_the_rows_are_those_of_the_twin(stage, seed, left_out):
    started = time.monotonic()
    result = stage.replay(seed, load(Path(REPLAY))) if REPLAY else stage.draw(seed, STEPS)
    own = stage.also_natively(seed, result.landed, result.wrong[0]) if result.wrong else []
    outcome = "DuckLake alone" if own else "wrong" if result.wrong else "passed"
    _log(seed, outcome, len(result.operations), time.monotonic() - started, (own or result.wrong))
    if result.wrong:
        save(FOLDER / f"mixed_{seed}.json", result.operations)
    if own:
        left_out.append(f"history {seed}: DuckLake alone does it too: {own[0][:200]}")
    elif result.wrong:
        pytest.fail(_report(stage, seed, result), pytrace=False)


def _log(seed: int, outcome: str, operations: int, seconds: float, lines: list[str]) -> None:
    if LOG:
        with Path(LOG).open("a") as log:
            what = lines[0][:300] if lines else ""
            log.write(f"{seed} {outcome} {operations} operations {seconds:.0f} s {what!r}\n")


def _report(stage: Stage, seed: int, result: Result) -> str:
    kept, path = result.operations, FOLDER / f"mixed_{seed}.json"
    if NUMBER and not LOG:
        kept, path = smaller(stage, seed, kept, result.wrong[0]), FOLDER / f"small_{seed}.json"
        save(path, kept)
    return "\n".join([*result.wrong[:5], f"history {seed}, saved as {path}:", shown(kept)])
