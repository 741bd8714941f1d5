"""The same work for many items: in Spark's executors, or one after the other in this process."""

import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa


def map_in_spark(
    spark: Any | None, work: Callable[[Any], list[Any]], items: Sequence[Any]
) -> Iterator[Any]:
    """What `work` gives for each item, flat.

    Args:
        spark: None: no Spark.
        work: picklable; its results are what JSON can hold.
        items: picklable; one task each.
    """
    if spark is None or not items:
        for item in items:
            yield from work(item)
        return
    # A range of n rows in n partitions: exactly one row to a task.
    numbers = spark.range(0, len(items), 1, len(items))
    task = partial(_task, work=work, items=list(items))
    for row in numbers.mapInArrow(task, "result string").collect():
        yield from json.loads(row[0])


def _task(
    batches: Iterator[pa.RecordBatch], work: Callable[[Any], list[Any]], items: list[Any]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            result = json.dumps(list(work(items[number])))
            yield pa.RecordBatch.from_pydict({"result": pa.array([result], pa.string())})
