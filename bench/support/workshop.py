"""What measurements share: PostgreSQL, an S3, and lakes that are created on first use."""

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from polynya_local.clients.native import Lake
from polynya_local.processes.postgres import Server, postgres

from .lakes import grown_lake
from .s3 import s3

FEW, MANY = 10, 1000
"""The number of snapshots of a table."""


@dataclass(frozen=True, slots=True)
class Built:
    """The output of `make build` for this machine (ARCHITECTURE), and the Python that runs it."""

    folder: Path
    python: str


@dataclass
class Workshop:
    server: Server
    s3_endpoint: str
    folder: Path
    files: list[int]
    """Numbers of data files to measure with, ascending."""
    built: Built | None = None
    _lakes: dict[tuple[int, int, int], Lake] = field(default_factory=dict)

    def lake(self, files: int, snapshots: int = FEW, every: int = 1) -> Lake:
        """A lake with one table, touched by one of `every` snapshots: see `grown_lake`."""
        wanted = (files, snapshots, every)
        if wanted not in self._lakes:
            say(f"making a lake of {files:,} files in {snapshots:,} snapshots ...")
            self._lakes[wanted] = grown_lake(self.server, self.s3_endpoint, *wanted)
        return self._lakes[wanted]


@contextmanager
def workshop(files: list[int], built: Built | None = None) -> Iterator[Workshop]:
    say("starting PostgreSQL and S3 ...")
    with postgres() as server, s3() as endpoint, tempfile.TemporaryDirectory() as folder:
        os.environ["AWS_ENDPOINT_URL_S3"] = endpoint  # the endpoint for stored delete files
        yield Workshop(server, endpoint, Path(folder), files, built)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
