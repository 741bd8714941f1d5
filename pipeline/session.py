"""The SparkSession of a job: the one that is there, or a local one. No JAR is asked for."""

import os
import sys
import tempfile
from typing import Any

SETTINGS: dict[str, bool | float | int | str | None] = {
    "spark.sql.session.timeZone": "UTC",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.log.level": "ERROR",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def session(master: str | None = None) -> Any:
    """The session that `spark-submit` or a notebook has made; without one, a new local one.

    Args:
        master: None on a cluster, which has its own; `local[*]` on one machine.
    """
    from pyspark.sql import SparkSession

    if active := SparkSession.getActiveSession():
        return active
    builder = SparkSession.builder.appName("polynya")
    if master:
        os.environ["PYSPARK_PYTHON"] = sys.executable  # else the first python3 on PATH
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
        warehouse = os.path.join(tempfile.gettempdir(), "polynya-spark-warehouse")
        builder = builder.master(master).config(
            map=SETTINGS | {"spark.sql.warehouse.dir": warehouse}
        )
    return builder.getOrCreate()
