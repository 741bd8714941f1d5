"""Trino reads every table of every test lake: see `reading`.

`make trino` runs it. With `ARGS="--lakes 01,13"` it reads only those and writes nothing.
"""

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

from polynya_local.processes.serving import Bridge

from tests.engines.reading import Engine, read_lakes
from tests.engines.trino.archives import VERSION
from tests.engines.trino.client import Trino
from tests.engines.trino.server import trino
from tests.matrix.condition import TRINO

NUMBERS = count(1)
RESULTS = Path(__file__).with_name("results.md")


def main() -> None:
    with trino() as address:

        @contextmanager
        def clients(bridge: Bridge) -> Iterator[dict[str, Trino]]:
            with closing(Trino(address, bridge, f"lake_{os.getpid()}_{next(NUMBERS)}")) as client:
                yield {"Trino": client}

        read_lakes(Engine(f"Trino {VERSION}", TRINO, clients, RESULTS))


if __name__ == "__main__":
    main()
