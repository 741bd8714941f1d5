"""Lakes that DuckDB itself writes, from the scripts in tests/lakes or from a text.

The script of a shared lake says which version it is served in. If that is 1.1, a copy of the
catalog is migrated, and DuckDB, which cannot attach that, reads the catalog as it was before.
`make test-slow` has all of them in both versions.
"""

import itertools
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

from pg8000.native import identifier
from polynya.ducklake.queries.planned_files import INDEXED_VALUES
from polynya_local.clients.native import REPEAT, Lake, write_lake
from polynya_local.processes.postgres import Server

from tests.support.catalog_versions import VERSIONS, to_1_1
from tests.support.databases import copy_database

SCRIPTS = Path(__file__).parents[1] / "lakes"
BUCKET = "lakes"
VERSION = re.compile(r"^-- @version (1[.][01])$", re.MULTILINE)


class Lakes:
    """Lakes by the name of their script or by its number.

    A name that ends with a version, `13-1.0`, is that of a lake of this version.
    """

    def __init__(self, server: Server, s3_endpoint: str) -> None:
        self._server, self._s3_endpoint = server, s3_endpoint
        self._written: dict[str, Lake] = {}
        self._migrated: dict[str, Lake] = {}
        self._numbers = itertools.count(1)

    def __call__(self, name: str) -> Lake:
        """The shared lake of this name, which tests must not change."""
        script = script_of(name)
        return self._shared(script.stem, script.read_text(), version_of(name))

    def shortened(self, name: str, times: int) -> Lake:
        """The shared lake of this name whose repeated lines are run only so many times."""
        script = script_of(name)
        text, found = REPEAT.subn(rf"-- @repeat {times}\n\2", script.read_text())
        assert found, f"{name} repeats nothing"
        return self._shared(f"{script.stem}_{times}", text, version_of(name))

    def _shared(self, name: str, text: str, version: str) -> Lake:
        if name not in self._written:
            self._written[name] = self._write(name, text)
        if version == "1.0":
            return self._written[name]
        if name not in self._migrated:
            self._migrated[name] = self._migrated_copy(self._written[name])
        return self._migrated[name]

    def _migrated_copy(self, lake: Lake) -> Lake:
        database = copy_database(self._server, lake.database, self._numbered(lake.name))
        to_1_1(replace(lake, database=database))
        return replace(lake, database=database, native=lake.database)

    def copied(self, name: str) -> Lake:
        """A lake of 1.0 with its own catalog; the files are shared, the caller removes none."""
        lake = self(f"{script_of(name).stem}-1.0")
        database = copy_database(self._server, lake.database, self._numbered(lake.name))
        return replace(lake, database=database)

    def indexed(self, name: str) -> Lake:
        """The shared lake of this name with its own catalog, which has the index of values."""
        lake = self(name)
        database = copy_database(self._server, lake.database, self._numbered(lake.name))
        con = database.connect()
        table = f"{identifier(lake.metadata_schema)}.ducklake_file_partition_value"
        con.run(f"CREATE INDEX ON {table} {INDEXED_VALUES}")
        con.close()
        return replace(lake, database=database, native=lake.native or lake.database)

    def fresh(self, name: str) -> Lake:
        """A lake of 1.0 for the caller only."""
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


@cache
def script_of(name: str) -> Path:
    script_name = name.partition("-")[0]
    (script,) = (
        path for path in SCRIPTS.glob("*.sql") if script_name in (path.stem, number_of(path.stem))
    )
    return script


def number_of(name: str) -> str:
    """The number that the name of a lake starts with."""
    return name.partition("-")[0].split("_")[0]


def version_of(name: str) -> str:
    """The version of a shared lake: the one that the name says, otherwise its script."""
    return name.partition("-")[2] or version_in(script_of(name))


@cache
def version_in(script: Path) -> str:
    """The version that a script says."""
    versions = VERSION.findall(script.read_text())
    assert len(versions) == 1, f"{script} does not say `-- @version 1.0` or 1.1, once"
    return versions[0]


def in_the_other_version(name: str) -> str:
    """The name of the same lake in the version that only `make test-slow` reads."""
    (other,) = set(VERSIONS) - {version_of(name)}
    return f"{name}-{other}"
