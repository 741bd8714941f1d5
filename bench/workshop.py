"""What measurements share: PostgreSQL, an S3, and lakes that are made when first asked for."""

import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from local.lakes import Lake
from local.postgres import Server, postgres

from .lakes import grown_lake
from .s3 import s3

FEW, MANY = 10, 1000
"""Snapshots of a table."""


@dataclass
class Workshop:
    server: Server
    s3_endpoint: str
    folder: Path
    files: list[int]
    """Numbers of data files to measure with, ascending."""
    _lakes: dict[tuple[int, int], Lake] = field(default_factory=dict)

    def lake(self, files: int, snapshots: int = FEW) -> Lake:
        if (files, snapshots) not in self._lakes:
            say(f"making a lake of {files:,} files in {snapshots:,} snapshots ...")
            lake = grown_lake(self.server, self.s3_endpoint, files, snapshots)
            self._lakes[files, snapshots] = lake
        return self._lakes[files, snapshots]


@contextmanager
def workshop(files: list[int]) -> Iterator[Workshop]:
    say("starting PostgreSQL and S3 ...")
    with postgres() as server, s3() as endpoint, tempfile.TemporaryDirectory() as folder:
        yield Workshop(server, endpoint, Path(folder), files)


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
