"""The Parquet files of a job in the table's directory: written by Spark, found, removed.

The names of all files of a job begin with a prefix that depends on its token alone, so a run finds
the files of earlier runs.
"""

import re
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from polynya.ducklake.writes.files import NewDataFile
from polynya.storage.s3 import is_s3

from ..common import storage
from ..common.errors import BadInput, JobError, Unavailable
from ..common.spark import error_line
from .parquet_files import (
    PARTITION,
    SPARK_ROWS,
    FilePlan,
    with_partition,
    write_files,
    written_file,
)

TASK_ERROR = re.compile(r"polynya_pipeline\.common\.errors\.(BadInput|Unavailable): (.*)")
"""An error of ours in the text by which Spark reports that a task failed."""
TASK_ERRORS = {"BadInput": BadInput, "Unavailable": Unavailable}


def write(frame: Any, plan: FilePlan, files: int | None) -> list[NewDataFile]:
    """Write the rows of a DataFrame; gives the files in the DataFrame's order, as row ids will be.

    Args:
        files: the approximate number of files; None: one for each partition of the DataFrame.

    Raises:
        BadInput: a value does not fit its column.
        Unavailable: a file cannot be written.
        JobError: Spark failed.
    """
    from pyspark.sql.types import StringType, StructType

    # mapInArrow looks columns up by name, and does not find those with a dot.
    frame = frame.toDF(*map(str, range(len(frame.columns))))
    if plan.partition_keys:
        schema = StructType([*frame.schema.fields]).add(PARTITION, StringType())
        frame = frame.mapInArrow(partial(with_partition, plan=plan), schema)
        frame = frame.repartition(*([files] if files else []), PARTITION)
        frame = frame.sortWithinPartitions(PARTITION)
    elif files:
        frame = frame.repartition(files)
    try:
        # Evaluated only once: a second evaluation would write all files again.
        rows = frame.mapInArrow(partial(write_files, plan=plan), SPARK_ROWS).collect()
    except Exception as error:
        if found := TASK_ERROR.search(str(error)):
            raise TASK_ERRORS[found[1]](found[2].strip()) from None
        raise JobError(f"Spark has failed: {error_line(error)}") from error
    return [written_file(tuple(row)) for row in rows]


def check_writable(plan: FilePlan) -> None:
    """Write and remove a small file, so that a job without rights fails before its work.

    Raises:
        Unavailable: the table's directory cannot be written to.
    """
    probe = f"{plan.location}{plan.file_prefix}probe"
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "probe"
        source.write_bytes(b"PAR1")
        storage.move(source, probe)
    storage.remove([probe])


def locations(plan: FilePlan) -> Iterator[str]:
    """The files of this job, from all of its runs.

    Raises:
        Unavailable: the table's directory cannot be listed.
    """
    below = plan.location
    if not plan.partition_keys and is_s3(below):
        below += plan.file_prefix  # S3 lists by prefix, which is fast
    for location, _ in storage.list_files(below):
        if location.rpartition("/")[2].startswith(plan.file_prefix):
            yield location
