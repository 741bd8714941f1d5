"""An engine outside of CI reads every table of every test lake, and writes what it reads wrongly.

Each table is read now and at up to three earlier snapshots, counted, and filtered by values of two
columns; the judge is DuckLake.
"""

import argparse
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Protocol

import pyarrow as pa
from polynya_local.clients import native
from polynya_local.clients.native import Lake, Native
from polynya_local.processes.postgres import Server, postgres
from polynya_local.processes.serving import Bridge, serving

from tests.engines.values import Answer
from tests.matrix.condition import Condition, Dialect
from tests.matrix.run import (
    Seen,
    add_delivery,
    add_named,
    faults,
    named,
    read_table,
    s3,
    scripts,
    written,
)
from tests.support import rest

MOST_PAST = 3

Results = dict[str, dict[str, Seen]]


class Client(Protocol):
    """One catalog in an engine."""

    def execute(self, sql: str) -> Answer:
        """Run a statement. Raises: Failed: the engine says so."""

    def rows(self, namespace: str, table: str, snapshot_id: int | None = None) -> pa.Table:
        """All rows of a table, at a snapshot or the newest."""

    def source(self, namespace: str, table: str) -> str:
        """The name of a table in SQL."""


@dataclass(frozen=True)
class Engine:
    """What reads the lakes, and where its results are kept."""

    title: str
    """With the version."""
    dialect: Dialect
    clients: Callable[[Bridge], AbstractContextManager[Mapping[str, Client]]]
    """Clients of a catalog, by the names under which they are reported."""
    results: Path


class Reader:
    """An engine's answers to the questions of the matrix."""

    def __init__(self, client: Client, dialect: Dialect, judge: Native) -> None:
        self._client, self._dialect, self._judge = client, dialect, judge

    def rows(
        self, namespace: str, table: str, snapshot_id: int | None, blobs: list[str]
    ) -> pa.Table:
        """All rows, under DuckLake's names: Trino writes all names in lower case."""
        found = self._client.rows(namespace, table, snapshot_id)
        names = {name.lower(): name for name in self._judge.columns(namespace, table, snapshot_id)}
        known = names.values()
        return found.rename_columns(
            [name if name in known else names.get(name, name) for name in found.column_names]
        )

    def count(self, namespace: str, table: str) -> int:
        return self._count(self._client.source(namespace, table))

    def count_where(self, namespace: str, table: str, condition: Condition) -> int | None:
        if (where := condition.sql(self._dialect)) is None:
            return None
        return self._count(f"{self._client.source(namespace, table)} WHERE {where}")

    def _count(self, source: str) -> int:
        [[found]] = self._client.execute(f"SELECT count(*) FROM {source}").rows
        return int(found)


def read_lakes(engine: Engine) -> None:
    """Read the lakes that the command line asks for; the results of all are written."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lakes", default="", help="only these: 01,13; `types` is the first")
    add_delivery(parser)
    add_named(parser)
    chosen = parser.parse_args()
    wanted = set(filter(None, chosen.lakes.split(",")))
    results: Results = {}
    with TemporaryDirectory() as folder, postgres() as server, s3() as endpoint:
        for script in scripts(Path(folder)):
            if wanted and script.stem.split("_")[0] not in wanted:
                continue
            found = read(script, server, endpoint, engine, chosen)
            if found:  # the whole lake is not refused
                results[script.stem] = found
            for name, seen in found.items():
                print(
                    f"{script.stem}: {name}: {seen.same} same, {len(seen.faults)} not", flush=True
                )
    text = report(engine.title, results)
    print(text)
    if not wanted and not chosen.named:
        heading = f"# What {engine.title} reads of the test lakes"
        engine.results.write_text(f"{heading}\n\n{text}\n")


def read(
    script: Path, server: Server, s3_endpoint: str, engine: Engine, chosen: argparse.Namespace
) -> dict[str, Seen]:
    """Write a lake, and read it natively and with the engine."""
    seen: dict[str, Seen] = {}
    try:
        lake = written(script, f"engine_{script.stem}", server, s3_endpoint)
        read_lake(lake, s3_endpoint, engine, seen, chosen)
    except rest.Refused as refused:
        print(f"{script.stem} is refused: {refused}")
    return seen


def read_lake(
    lake: Lake,
    s3_endpoint: str,
    engine: Engine,
    seen: dict[str, Seen],
    chosen: argparse.Namespace,
) -> None:
    """Compare all tables of a lake that the bridge serves."""
    delivery = "object-lambda" if chosen.named else chosen.delivery
    schema, url = lake.metadata_schema, lake.database.url
    with (
        serving(url, s3_endpoint, delivery=delivery, metadata_schema=schema) as served,
        closing(native.open(lake, s3_endpoint)) as judge,
    ):
        bridge = named(served, lake.name)
        if chosen.named:
            client = engine.title.partition(" ")[0].lower()
            bridge = replace(bridge, warehouse=f"{bridge.warehouse}+{client}")
        catalog = rest.Rest(bridge.catalog_uri, bridge.warehouse)
        with engine.clients(bridge) as clients:
            seen |= {name: Seen() for name in clients}
            readers = {name: Reader(one, engine.dialect, judge) for name, one in clients.items()}
            for table in judge.tables():
                read_table(lake.name, judge, catalog, table, readers, seen, most_past=MOST_PAST)


def report(title: str, results: Results) -> str:
    """How many answers are right, and every message once."""
    names = list(dict.fromkeys(name for seen in results.values() for name in seen))
    lines = []
    for name in names:
        of_name = [seen[name] for seen in results.values() if name in seen]
        same = sum(one.same for one in of_name)
        total = same + sum(len(one.faults) for one in of_name)
        lines.append(
            f"{datetime.now(UTC):%Y-%m-%d}, {title}, {name}: {same} of {total} answers are those "
            f"of DuckLake, over {len(of_name)} lakes."
        )
    [_, *rest_] = faults(results, names)
    return "\n".join(["\n\n".join(lines), "", *rest_]).rstrip()
