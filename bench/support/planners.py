"""Clients that plan the table behind a REST catalog."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from polynya_local.clients import spark
from polynya_local.clients.duckdb import attached
from polynya_local.clients.pyiceberg import s3_properties
from pyiceberg.catalog import load_catalog
from pyiceberg.expressions import AlwaysTrue, BooleanExpression
from pyiceberg.expressions.parser import parse
from pyiceberg.manifest import clear_manifest_cache
from pyiceberg.table import Table as IcebergTable

from .lakes import DAY_ONE, NAMESPACE, TABLE


@dataclass(frozen=True, slots=True)
class Planner:
    """A client; what it opens is new each time and has nothing cached."""

    name: str
    open: Callable[[str, str], Any]
    """From the catalog's URI and the endpoint of its S3."""
    steps: dict[str, Callable[[Any], int]]
    """The operation on what was opened; it returns a number that shows that it was done."""
    times: int = 5


# PyIceberg


def pyiceberg(catalog_uri: str, s3_endpoint: str, **more: str) -> IcebergTable:
    clear_manifest_cache()
    properties = {
        "type": "rest",
        "uri": catalog_uri,
        "warehouse": "lake",
        **s3_properties(s3_endpoint),
        **more,
    }
    return load_catalog("polynya", **properties).load_table((NAMESPACE, TABLE))


def planned(row_filter: BooleanExpression) -> Callable[[IcebergTable], int]:
    return lambda table: sum(1 for _ in table.scan(row_filter).plan_files())


# DuckDB: a connection, and the table name after FROM


def duckdb(catalog_uri: str, s3_endpoint: str) -> tuple[Any, str]:
    return attached(catalog_uri, "lake", s3_endpoint), f"ice.{NAMESPACE}.{TABLE}"


def counted(where: str) -> Callable[[tuple[Any, str]], int]:
    def rows(opened: tuple[Any, str]) -> int:
        con, source = opened
        with con:
            [count] = con.execute(f"SELECT count(*) FROM {source} WHERE {where}").fetchone()
            return int(count)

    return rows


# Spark: the table name after FROM


def spark_table(catalog_uri: str, s3_endpoint: str) -> str:
    catalog = spark.open(catalog_uri, "lake", s3_endpoint).catalog
    return f"{catalog}.{NAMESPACE}.{TABLE}"


def partitions(where: str) -> Callable[[str], int]:
    """Plan without reading data."""

    def tasks(source: str) -> int:
        frame = spark.session().sql(f"SELECT * FROM {source} WHERE {where}")
        return int(frame._jdf.queryExecution().toRdd().getNumPartitions())

    return tasks


def sparks_count(where: str) -> Callable[[str], int]:
    def count(source: str) -> int:
        frame = spark.session().sql(f"SELECT count(score) FROM {source} WHERE {where}")
        return int(frame.collect()[0][0])

    return count


ONE_DAY = f"day = DATE '{DAY_ONE}'"

PLANNERS = (
    Planner(
        "PyIceberg",
        pyiceberg,
        {
            "load the table": lambda table: len(table.metadata.schemas),
            "plan one file": planned(parse("id = 5")),
            "plan one day": planned(parse(f"day = '{DAY_ONE}'")),
            "plan all files": planned(AlwaysTrue()),
        },
    ),
    Planner(
        "DuckDB",
        duckdb,
        {
            "query one file": counted(f"id = 5 AND {ONE_DAY}"),
            "query one day": counted(ONE_DAY),
        },
    ),
    Planner(
        "Spark",
        spark_table,
        {
            "plan one day": partitions(ONE_DAY),
            "plan all files": partitions("true"),
            "query one day": sparks_count(ONE_DAY),
        },
        times=7,  # a JVM needs several runs to warm up
    ),
)
