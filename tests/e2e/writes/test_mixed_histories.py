"""Random histories of native DuckLake and Iceberg clients on one table; a twin in memory judges.

A seed gives a history of 30 operations: DuckDB and DuckLake as two writers with different settings,
and PyIceberg and DuckDB's Iceberg extension, also with a table that is not current any more. After
each operation the rows, aggregates, filters, the change feed of commits and row ids are compared
natively; at the end every snapshot, what Iceberg clients read and filter, and `verify`.

`make mixed-histories`: POLYNYA_MIXED_HISTORIES=50 sets the number of seeds,
POLYNYA_FIRST_HISTORY=1000 the first one. A history that fails is printed and saved; with
POLYNYA_REPLAY=file it is done again.
"""

import os
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from pyiceberg.table import TableProperties

from tests.histories.mixed.history import Result
from tests.histories.mixed.operations import load, save, shown
from tests.histories.mixed.stage import FOLDER, Stage, smaller

FIRST = int(os.environ.get("POLYNYA_FIRST_HISTORY", "2"))
NUMBER = int(os.environ.get("POLYNYA_MIXED_HISTORIES", "0"))
REPLAY = os.environ.get("POLYNYA_REPLAY")
STEPS = 30 if NUMBER else 10

pytestmark = pytest.mark.filterwarnings("ignore:Delete operation did not match any records")


@pytest.fixture(scope="module")
def stage(postgres_server, moto):
    outcomes: Counter[tuple[str, str, str]] = Counter()
    refusals: Counter[str] = Counter()
    with (
        closing(Stage(postgres_server, moto, outcomes, refusals)) as found,
        pytest.MonkeyPatch.context() as patch,
    ):
        patch.setenv("AWS_ENDPOINT_URL_S3", moto)
        # PyIceberg 0.12 repeats the delete of a whole file that was merged with others meanwhile,
        # and then deletes nothing, without an error (docs/writes.md).
        patch.setattr(TableProperties, "COMMIT_NUM_RETRIES_DEFAULT", 0)
        yield found
    for counted in (outcomes, refusals):
        for what, number in counted.most_common():
            print(number, what)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + (NUMBER or 1)))
def test_the_rows_are_those_of_the_twin(stage, seed, left_out):
    path = FOLDER / f"mixed_{seed}.json"
    result = stage.replay(seed, load(Path(REPLAY))) if REPLAY else stage.draw(seed, STEPS)
    if not result.wrong:
        return
    save(path, result.operations)
    if own := stage.also_natively(seed, result.landed, result.wrong[0]):
        left_out.append(f"history {seed}: DuckLake alone does it too: {own[0][:200]}")
        return
    pytest.fail(_report(stage, seed, result, path), pytrace=False)


def _report(stage: Stage, seed: int, result: Result, path: Path) -> str:
    kept = result.operations
    if NUMBER:
        kept = smaller(stage, seed, kept, result.wrong[0])
        save(path.with_stem(f"{path.stem}_small"), kept)
    return "\n".join([*result.wrong[:5], f"history {seed}, saved as {path}:", shown(kept)])
