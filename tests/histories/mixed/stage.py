"""Where mixed histories take place: lakes of their own, each behind a bridge of its own."""

import itertools
import os
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from unittest.mock import patch

import boto3
from polynya_local.clients.native import Lake, write_lake
from polynya_local.writes import everybody_may_write

from tests.support.catalog_versions import SERVED
from tests.support.databases import copy_database
from tests.support.servers.in_process import bridge
from tests.support.servers.moto_server import drop_bucket
from tests.support.shared_duckdb import SharedDuckDB
from tests.support.writes.writable import set_up_writes

from .generator import Generator
from .history import Result, run
from .operations import DUCKDB, NATIVE, PYICEBERG, Operation
from .scene import Scene
from .tables import Beginning

SCRIPT = "ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');"
MOVE = "UPDATE ducklake_metadata SET value = :path WHERE key = 'data_path'"
NUMBERS = itertools.count(1)


@dataclass
class Stage:
    """Makes lakes and runs histories in them."""

    server: Any
    s3_endpoint: str
    clients: tuple[str, ...] = (PYICEBERG, DUCKDB)
    outcomes: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    """Of all histories that were drawn."""
    shared_duckdb: SharedDuckDB = field(default_factory=SharedDuckDB)

    @cached_property
    def _s3(self) -> Any:
        return boto3.client("s3", endpoint_url=self.s3_endpoint, region_name="us-east-1")

    @cached_property
    def _empty(self) -> Lake:
        """The empty lake that all others are copies of: DuckLake takes 0.4 s to create one."""
        database = self.server.create_database(f"mixed_{os.getpid()}_empty")
        return set_up_writes(write_lake("empty", SCRIPT, database, "s3://empty", self.s3_endpoint))

    @contextmanager
    def lake(self) -> Iterator[Lake]:
        """An empty lake that clients may write, in a bucket of its own: moto's are slow if full."""
        name = f"mixed-{os.getpid()}-{next(NUMBERS)}"
        self._s3.create_bucket(Bucket=name)
        database = copy_database(self.server, self._empty.database, name)
        path = f"s3://{name}/data"
        database.run(MOVE, path=f"{path}/")
        try:
            yield replace(self._empty, name=name, database=database, data_path=path)
        finally:
            self.server.maintenance.run(f'DROP DATABASE "{database.dbname}" WITH (FORCE)')
            drop_bucket(name)

    @contextmanager
    def scene(self, beginning: Beginning, *, with_duckdb: bool = True) -> Iterator[Scene]:
        """A new lake, served."""
        settings = {"CHUNK_FILES": str(beginning.chunk_files), "SNAPSHOT_LIMIT": "1000"}
        with (
            patch.object(SERVED, "version", beginning.version),
            self.lake() as lake,
            bridge(
                lake,
                self.s3_endpoint,
                writes=True,
                settings=settings | {"AUTHORIZATION": everybody_may_write(f"{lake.data_path}/")},
            ) as served,
        ):
            where = (served.catalog_uri, served.warehouse, served.s3_endpoint)
            client = self.shared_duckdb.attached_to(*where) if with_duckdb else None
            with closing(
                Scene(lake, served, self.s3_endpoint, beginning.inlining, client)
            ) as scene:
                yield scene

    def draw(self, seed: int, steps: int) -> Result:
        """Run the history of a seed."""
        generator = Generator(seed, self.clients)
        with self.scene(generator.beginning) as scene:
            result = run(scene, generator.operations(scene, steps), seed)
        self.outcomes.update(result.outcomes)
        self.refusals.update(result.refusals)
        return result

    def replay(
        self, seed: int, operations: list[Operation], inlining: tuple[int, int] | None = None
    ) -> Result:
        """Run operations of a history again, in a lake with the same settings."""
        beginning = Generator(seed).beginning
        beginning = replace(beginning, inlining=inlining or beginning.inlining)
        with_duckdb = any(one.by == DUCKDB for one in operations)
        with self.scene(beginning, with_duckdb=with_duckdb) as scene:
            return run(scene, operations, seed)

    def also_natively(self, seed: int, operations: list[Operation], wrong: str) -> list[str]:
        """The same fault, at whatever place, if native DuckLake does all of it; else empty.

        Once with the settings of the history, once with what clients do in files, as they do it.
        """
        lake, other = NATIVE
        limit, _ = Generator(seed).beginning.inlining
        for writer, inlining in ((lake, None), (other, (limit, 0))):
            alone = [native for one in operations for native in one.natively(writer)]
            if lines := _alike(wrong, self.replay(seed, alone, inlining).wrong):
                return lines
        return []

    def close(self) -> None:
        """End the shared client."""
        self.shared_duckdb.close()


def smaller(stage: Stage, seed: int, operations: list[Operation], wrong: str) -> list[Operation]:
    """Leave out operations, one after the other, as long as the same goes wrong."""
    kept = list(operations)
    for index in reversed(range(1, len(operations) - 1)):
        fewer = kept[:index] + kept[index + 1 :]
        with suppress(Exception):
            again = stage.replay(seed, fewer)
            if _alike(wrong, again.wrong):
                kept = again.operations
    return kept


def _alike(wrong: str, others: Iterable[str]) -> list[str]:
    """Those that begin with the same two words: the kind of fault, without rows and numbers."""
    words = " ".join(wrong.split()[:2])
    return [line for line in others if line.startswith(words)]


FOLDER = Path(tempfile.gettempdir()) / "polynya-histories"
"""Where histories that fail are saved."""
