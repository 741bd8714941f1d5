"""Spark: the session of a job, work for many items in its executors, and its error messages."""

import json
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import pyarrow as pa

from .errors import BadInput, JobError, Unavailable

SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""The environment variable that tells a program that spark-submit has started it."""

SETTINGS: dict[str, bool | float | int | str | None] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}
CAUSE = re.compile(r"^Caused by: (.*)$", re.M)


def session(master: str) -> Any:
    """The active SparkSession (of spark-submit, of a notebook), or a new local one without JARs.

    Args:
        master: for a new session, such as `local[*]`; spark-submit's own master takes precedence.
    """
    from pyspark.sql import SparkSession

    if active := SparkSession.getActiveSession():
        return active
    builder = SparkSession.builder.appName("polynya")
    if SUBMITTED not in os.environ:
        os.environ["PYSPARK_PYTHON"] = sys.executable  # else the first python3 on PATH
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        # Else Spark creates a folder spark-warehouse in the working directory.
        warehouse = os.path.join(tempfile.gettempdir(), "polynya-spark-warehouse")
        builder = builder.master(master).config(
            map=SETTINGS | {"spark.sql.warehouse.dir": warehouse}
        )
    return builder.getOrCreate()


def map_in_spark(
    spark: Any | None, work: Callable[[Any], list[Any]], items: Sequence[Any]
) -> Iterator[Any]:
    """The results of `work` for all items, flattened, in the order of the items.

    Args:
        spark: the session whose executors do the work; None: this process does it.
        work: picklable; its results must be serializable as JSON.
        items: picklable; each is one task.

    Raises:
        BadInput, Unavailable, JobError: as `translate_task_errors`.
    """
    if spark is None or not items:
        for item in items:
            yield from work(item)
        return
    # A range of n rows in n partitions: exactly one row for each task.
    numbers = spark.range(0, len(items), 1, len(items))
    task = partial(_task, work=work, items=list(items))
    with translate_task_errors():
        rows = numbers.mapInArrow(task, "result string").collect()
    for row in rows:
        yield from json.loads(row[0])


def _task(
    batches: Iterator[pa.RecordBatch], work: Callable[[Any], list[Any]], items: list[Any]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for number in batch.column(0).to_pylist():
            result = json.dumps(list(work(items[number])))
            yield pa.RecordBatch.from_pydict({"result": pa.array([result], pa.string())})


TASK_ERROR = re.compile(r"polynya_pipeline\.common\.errors\.(BadInput|Unavailable): (.*)")
"""The class and message of a job's error in Spark's report of a failed task."""
TASK_ERRORS = {"BadInput": BadInput, "Unavailable": Unavailable}


@contextmanager
def translate_task_errors() -> Iterator[None]:
    """Turn errors that Spark reports into errors of the job.

    Raises:
        BadInput, Unavailable: a task raised it.
        JobError: Spark failed for another reason.
    """
    try:
        yield
    except Exception as error:
        if match := TASK_ERROR.search(str(error)):
            raise TASK_ERRORS[match[1]](match[2].strip()) from None
        raise JobError(f"Spark has failed: {error_line(error)}") from error


def error_line(error: Exception) -> str:
    """One line for an error of Spark: Java's innermost cause, or else the message's first line."""
    # A failure in an executor arrives as an error of py4j, not of PySpark: its cause is in a text.
    lines = CAUSE.findall(str(error)) or str(error).strip().splitlines()[:1]
    return str([type(error).__name__, *lines][-1])


def quoted(name: str) -> str:
    """An identifier in Spark's SQL and DDL."""
    return "`" + name.replace("`", "``") + "`"
