"""Flink reads every table of every test lake, also if the server plans its scans: see `reading`.

`make flink` runs it. With `ARGS="--lakes 01,13"` it reads only those and writes nothing.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from itertools import count
from pathlib import Path

from polynya_local.processes.serving import Bridge

from tests.engines.flink.client import Cluster, Flink
from tests.engines.flink.session import VERSION
from tests.engines.reading import Engine, read_lakes
from tests.matrix.condition import FLINK

NUMBERS = count(1)
RESULTS = Path(__file__).with_name("results.md")
MODES = {"Flink": "client", "Flink (planned)": "server"}


def main() -> None:
    with closing(Cluster()) as cluster:

        @contextmanager
        def clients(bridge: Bridge) -> Iterator[dict[str, Flink]]:
            found = {
                name: Flink(cluster, bridge, f"lake_{next(NUMBERS)}", mode)
                for name, mode in MODES.items()
            }
            yield found
            for one in found.values():
                one.close()

        read_lakes(Engine(f"Flink {VERSION}", FLINK, clients, RESULTS))


if __name__ == "__main__":
    main()
