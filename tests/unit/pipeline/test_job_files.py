"""Errors of tasks, which Spark reports as text, become errors of the job again."""

import pytest
from polynya_pipeline.common.errors import BadInput, JobError, Unavailable
from polynya_pipeline.common.spark import TASK_ERROR, TASK_ERRORS

TRACE = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times
Traceback (most recent call last):
  File "worker.py", line 1, in process
{name}: a value does not fit into the column c
  at org.apache.spark.api.python.BasePythonRunner"""


@pytest.mark.parametrize("error", [BadInput, Unavailable])
def test_an_error_of_a_task_is_recognised_by_its_full_name(error: type[JobError]):
    text = TRACE.format(name=f"{error.__module__}.{error.__qualname__}")
    found = TASK_ERROR.search(text)
    assert found
    assert TASK_ERRORS[found[1]] is error
    assert found[2] == "a value does not fit into the column c"


def test_any_other_error_remains_an_error_of_spark():
    assert TASK_ERROR.search(TRACE.format(name="java.lang.OutOfMemoryError")) is None
