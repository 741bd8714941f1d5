"""The SparkSession of a job: the one that is there, or a local one. No JAR is asked for."""

import os
import sys
import tempfile
from typing import Any

SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""The environment variable by which a program knows that spark-submit has started it."""

SETTINGS: dict[str, bool | float | int | str | None] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def session(master: str) -> Any:
    """The session that `spark-submit` or a notebook has made; without one, a new local one.

    Args:
        master: `local[*]` on one machine; under spark-submit that one's own counts.
    """
    from pyspark.sql import SparkSession

    if active := SparkSession.getActiveSession():
        return active
    builder = SparkSession.builder.appName("polynya")
    if SUBMITTED not in os.environ:
        os.environ["PYSPARK_PYTHON"] = sys.executable  # else the first python3 on PATH
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        warehouse = os.path.join(tempfile.gettempdir(), "polynya-spark-warehouse")
        builder = builder.master(master).config(
            map=SETTINGS | {"spark.sql.warehouse.dir": warehouse}
        )
    return builder.getOrCreate()
