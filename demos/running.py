"""Starts what these demos need, and shows that it is starting."""

from typing import TYPE_CHECKING

from polynya_local.clients import spark
from polynya_local.demo.environment import Run, s3
from polynya_local.processes.postgres import Database, postgres
from polynya_local.processes.serving import Bridge, serving

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def start_stores(run: Run) -> tuple[Database, str]:
    """Start PostgreSQL and S3; returns an empty database, and the endpoint."""
    with run.progress.stage("Starting PostgreSQL and S3") as stage:
        database = run.stack.enter_context(postgres()).create_database("demo")
        endpoint = run.stack.enter_context(s3())
        stage.result = f"PostgreSQL at port {database.port}, S3 at {endpoint}"
    return database, endpoint


def start_spark(run: Run) -> "SparkSession":
    """Start Spark."""
    with run.progress.stage("Starting Spark") as stage:
        session = spark.session()
        run.stack.callback(spark.stop)
        stage.result = f"Spark {session.version}"
    return session


def start_bridge(run: Run, database: Database, s3_endpoint: str, *, writes: bool = False) -> Bridge:
    """Start `polynya serve`."""
    command = "polynya serve --writes" if writes else "polynya serve"
    with run.progress.stage(f"Starting `{command}`") as stage:
        bridge = run.stack.enter_context(serving(database.url, s3_endpoint, writes=writes))
        stage.result = f"{command} at {bridge.catalog_uri}"
    return bridge
