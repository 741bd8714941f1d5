"""The steps of `polynya demo`: a lake is made, served, read by everyone, and changed meanwhile."""

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from importlib.metadata import version
from pathlib import Path

import boto3
import duckdb as duckdb_itself
from moto.server import ThreadedMotoServer
from rich.console import Console

from .clients import Client, duckdb, native, pyiceberg, rest
from .comparison import Comparison, Moment, grid
from .duckdb_connection import KEY_ID, LAKE, REGION, SECRET, connect
from .interruption import Interruption, Running
from .lakes import Lake, attach, write_lake
from .postgres import Server, postgres
from .progress import Failed, Progress, console
from .recipes import recipes
from .serving import Bridge, serving
from .spark_jars import why_not
from .spark_process import SparkProcess

STORY = Path(__file__).with_name("demo.sql")
BUCKET = "demo"
OURS = "polynya/"  # where `materialize` puts what we made
# What is done while the lake is being served: by DuckDB, each a commit of its own.
CHANGES = {
    "INSERT: two flocks, this moment": """
        INSERT INTO lake.birds.flocks (flock, seen_at, species, birds)
        VALUES (60005, now(), 'SPEI', 64), (60006, now(), NULL, 1)""",
    "DELETE: every flock of none": "DELETE FROM lake.birds.flocks WHERE birds = 0",
}


def demonstrate(
    *, delivery: str, with_spark: bool, keep: bool, interruption: Interruption
) -> int:
    """Show it all; gives the exit code: 1 when any client saw other rows than DuckLake has."""
    only_this_machine()
    progress, out = Progress(), console(sys.stdout)
    with Running(interruption) as running:
        no_spark = why_not() if with_spark else "--without-spark"
        # It takes its time, so it starts while the lake is being written.
        spark = None if no_spark else running.enter_context(SparkProcess())
        server = started_postgres(running, progress)
        s3 = started_s3(running, progress)
        lake = written_lake(server, s3, progress)
        bridge = started_bridge(running, progress, lake, s3, delivery)
        judge = running.enter_context(closing(native.open(lake, s3)))
        if spark:
            no_spark = trouble_of(spark, bridge, progress)
        clients = [pyiceberg.NAME, duckdb.NAME, *([] if no_spark else [SparkProcess.name])]
        readers = [of(pyiceberg), of(duckdb), *([] if no_spark else [lambda _: closing(spark)])]

        past = Comparison(judge)
        with connect(LAKE, s3) as owner:
            attach(owner, lake, read_only=False)
            ask_ducklake(past, judge, bridge, owner, progress)
            for reader, name in zip(readers, clients, strict=True):
                read_all(past, running, reader(bridge), name, progress)
            live = Comparison(judge)
            for event, sql in CHANGES.items():
                owner.execute(sql)
                truth = live.add(Moment("birds", "flocks", None, event))
                with progress.stage(f"New clients read after {event.partition(':')[0]}") as stage:
                    for reader in readers:
                        with Running(interruption) as fresh:
                            client = fresh.enter_context(reader(bridge))
                            live.ask(client, truth)
                    stage.result = f"{event}: read by new clients"

        code = shown(out, past, live, clients, no_spark)
        out.print(files_in_words(s3, lake), soft_wrap=True)
        if keep:
            show_recipes(out, bridge, lake, s3)
            interruption.wait()
    return code
