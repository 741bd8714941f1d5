"""Lakes that DuckDB itself writes, from the scripts in tests/lakes or from a text."""

import itertools
from dataclasses import replace
from pathlib import Path

from polynya_local.clients.lakes import REPEAT, Lake, write_lake
from polynya_local.processes.postgres import Server

SCRIPTS = Path(__file__).parents[1] / "lakes"
BUCKET = "lakes"


class Lakes:
    """Lakes by the name of their script or by its number."""

    def __init__(self, server: Server, s3_endpoint: str) -> None:
        self._server, self._s3_endpoint = server, s3_endpoint
        self._written: dict[str, Lake] = {}
        self._numbers = itertools.count(1)

    def __call__(self, name: str) -> Lake:
        """The shared lake of this name, which tests must not change."""
        script = script_of(name)
        return self._shared(script.stem, script.read_text())

    def shortened(self, name: str, times: int) -> Lake:
        """The shared lake of this name whose repeated lines are run only so many times."""
        script = script_of(name)
        text, found = REPEAT.subn(rf"-- @repeat {times}\n\2", script.read_text())
        assert found, f"{name} repeats nothing"
        return self._shared(f"{script.stem}_{times}", text)

    def _shared(self, name: str, text: str) -> Lake:
        if name not in self._written:
            self._written[name] = self._write(name, text)
        return self._written[name]

    def copied(self, name: str) -> Lake:
        """A lake with its own catalog; the files are shared, and the caller must not remove any."""
        one = self(name)
        database = self._server.copy_database(one.database, self._numbered(one.name))
        return replace(one, database=database)

    def fresh(self, name: str) -> Lake:
        """A lake for the caller only."""
        script = script_of(name)
        return self._write(self._numbered(script.stem), script.read_text())

    def write(self, name: str, text: str, *, prefix: str = "") -> Lake:
        """A lake for the caller only, from the text of a script.

        `name` may be used again. `prefix` begins all keys of the lake and ends with a slash.
        """
        return self._write(self._numbered(name), text, prefix)

    def _numbered(self, name: str) -> str:
        return f"{name}_{next(self._numbers)}"

    def _write(self, name: str, text: str, prefix: str = "") -> Lake:
        database = self._server.create_database(name)
        return write_lake(name, text, database, f"s3://{BUCKET}/{prefix}{name}", self._s3_endpoint)


def script_of(name: str) -> Path:
    found = [path for path in SCRIPTS.glob("*.sql") if name in (path.stem, number_of(path.stem))]
    (script,) = found
    return script


def number_of(name: str) -> str:
    """The number that the name of a lake starts with."""
    return name.split("_")[0]
