"""Rows that are deleted by their keys: equality deletes, beside Spark's MERGE of the same keys."""

import random
from collections.abc import Callable, Sequence
from contextlib import closing
from types import SimpleNamespace

import pyarrow as pa
from polynya_local.clients import spark
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import Lake, attach
from polynya_local.clients.spark_jars import why_not

from tests.support.writes.hand_made import HandMade, equality_deletes

from ...measure import once
from ...report import Row, Table, ms, ratio
from ..lakes import NAMESPACE
from ..workshop import FEW, Workshop, say
from .writable import Served, served

FILES, ROWS = 100, 100_000
"""Data files of the table, and rows of each."""

KEYS = 10_000
TOTAL = FILES * ROWS

CREATE = """
CREATE TABLE {t} (id BIGINT, hash VARCHAR, payload VARCHAR)"""
FILE = """
INSERT INTO {t} SELECT i, md5(i::VARCHAR), 'payload ' || i FROM range({first}, {end}) AS r(i)"""
MERGE = "MERGE INTO {t} USING {keys} ON {t}.id = {keys}.id WHEN MATCHED THEN DELETE"
MERGE_ON_READ = "ALTER TABLE {t} SET TBLPROPERTIES ('write.merge.mode' = 'merge-on-read')"

CHOICES: dict[str, Callable[[random.Random], Sequence[int]]] = {
    "that follow each other": lambda _: range(TOTAL // 2, TOTAL // 2 + KEYS),
    "at random": lambda randomly: randomly.sample(range(TOTAL), KEYS),
    "of no row": lambda _: range(TOTAL, TOTAL + KEYS),
}


def table(shop: Workshop) -> Table:
    """Measure commits of `KEYS` keys."""
    lake = shop.lake(FEW, FEW)
    rows: list[Row] = []
    with served(lake, shop.s3_endpoint) as ours:
        for name, choose in CHOICES.items():
            say(f"writes: {KEYS:,} keys {name} ...")
            rows.append(_row(shop, lake, ours, name, choose(random.Random(name))))
    return Table(
        f"{KEYS:,} keys in {FILES} files of {ROWS:,} rows (milliseconds)",
        rows,
        (
            "wall: the commit of one equality delete file, from the client",
            "MERGE: Spark's, on a table of the same rows, with merge-on-read, from the client",
        ),
    )


def _row(shop: Workshop, lake: Lake, ours: Served, name: str, ids: Sequence[int]) -> Row:
    place = [*CHOICES].index(name)
    ours_name, theirs_name = f"keys_{place}", f"merged_{place}"
    with closing(connect(LAKE, shop.s3_endpoint)) as con:
        attach(con, lake, read_only=False)
        for table in (ours_name, theirs_name):
            of_lake = f"lake.{NAMESPACE}.{table}"
            con.execute(CREATE.format(t=of_lake))
            for first in range(0, TOTAL, ROWS):
                con.execute(FILE.format(t=of_lake, first=first, end=first + ROWS))
    where = SimpleNamespace(catalog_uri=ours.uri, s3_endpoint=shop.s3_endpoint)
    client = HandMade(where, shop.s3_endpoint, NAMESPACE)
    deletes = equality_deletes({("id", 1): pa.array(ids, pa.int64())}, [1])
    client.load(ours_name)
    ours.commits.clear()
    answers: list[tuple[int, str]] = []
    wall = once(lambda: answers.append(client.commit(ours_name, deletes))).wall
    assert answers == [(200, "")], answers
    server = ours.commits[0].cost
    row: Row = {"keys": name, "wall": ms(wall), "server CPU": ms(server.cpu)}
    if why_not():
        return row
    merged = once(_merging(ours, shop.s3_endpoint, theirs_name, ids)).wall
    return {**row, "MERGE": ms(merged), "ratio": ratio(wall, merged)}


def _merging(ours: Served, endpoint: str, table: str, ids: Sequence[int]) -> Callable[[], object]:
    client, session = spark.Spark(ours.uri, "lake", endpoint), spark.session()
    of_spark = f"{client.catalog}.{NAMESPACE}.{table}"
    session.sql(MERGE_ON_READ.format(t=of_spark))
    session.createDataFrame([(id_,) for id_ in ids], "id BIGINT").createOrReplaceTempView("keys")
    session.sql(f"SELECT count(*) FROM {of_spark} WHERE id < 0").collect()
    return lambda: session.sql(MERGE.format(t=of_spark, keys="keys"))
