"""Tasks of executors: every snapshot and every manifest is in one task, in the same order."""

from types import SimpleNamespace

import pytest
from polynya_pipeline.common.progress import Reporter
from polynya_pipeline.publish.table import SharedSnapshot
from polynya_pipeline.publish.tasks import MANIFESTS, Executors, Part

SNAPSHOT = SharedSnapshot("postgresql://x/y", "public")
FOUR_CORES = SimpleNamespace(sparkContext=SimpleNamespace(defaultParallelism=4))


def part(number: int, manifests: int) -> Part:
    keys = tuple(f"{number}/{index}" for index in range(manifests))
    return Part(number, None, None, (7,), keys)  # type: ignore[arg-type]


@pytest.mark.parametrize("counts", [(1,), (400,), (3, 5, 1000, 2), (16,) * 20, (0, 17)])
@pytest.mark.parametrize("spark", [None, FOUR_CORES])
def test_parts_are_divided_among_at_most_two_tasks_for_each_core(counts, spark):
    parts = [part(number, count) for number, count in enumerate(counts) if count]
    tasks = Executors(spark, Reporter(quiet=True)).tasks(SNAPSHOT, parts)
    assert 1 <= len(tasks) <= (8 if spark else 1)
    keys = [key for task in tasks for one in task.parts for key in one.keys]
    assert keys == [key for one in parts for key in one.keys]
    weights = [sum(one.weight for one in task.parts) for task in tasks]
    assert set(weights[:-1]) <= {max(weights)} and max(weights) >= min(MANIFESTS, len(keys))


def test_few_snapshots_are_divided_too():
    whole = Part(0, None, None, tuple(range(8)))  # type: ignore[arg-type]
    tasks = Executors(FOUR_CORES, Reporter(quiet=True)).tasks(SNAPSHOT, [whole])
    assert [task.parts[0].snapshot_ids for task in tasks] == [(i,) for i in range(8)]


def test_without_work_there_are_no_tasks():
    assert Executors(FOUR_CORES, Reporter(quiet=True)).tasks(SNAPSHOT, []) == []
