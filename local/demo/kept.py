"""The lake that `polynya demo --keep` leaves: a file of DuckDB and a folder."""

import shlex
import sys
from pathlib import Path

from ..clients.duckdb_connection import connect
from ..clients.lakes import filled_in
from .environment import SCRIPT

FOLDER = "polynya-demo"
CATALOG, DATA = "metadata.ducklake", "data"


def keep_lake(folder: Path) -> bool:
    """Write the lake into a new folder; False: there is such a folder, which stays as it is."""
    try:
        folder.mkdir()
    except FileExistsError:
        return False
    # DuckLake stores the path as it is given: so the lake can be served from any folder.
    data = folder.absolute() / DATA
    with connect(("ducklake",)) as con:
        script = filled_in(SCRIPT.read_text(), str(folder / CATALOG), str(data))
        for statement in con.extract_statements(script):
            con.execute(statement)
    return True


def how_to_serve(folder: Path, is_new: bool) -> str:
    """What the demo says about the folder."""
    state = "The lake without these changes is in" if is_new else "A lake of an earlier demo is in"
    catalog = folder / CATALOG
    return (
        f"{state} the folder {folder}, which stays: a file of DuckDB and Parquet files. "
        "Serve it:\n"
        f"\n{shlex.join([_command(), 'serve', str(catalog)])}\n"
        "\nAnd write to it with DuckDB, also while it is served:\n"
        f"\nATTACH 'ducklake:{catalog}' AS lake; FROM lake.birds.species;"
    )


def _command() -> str:
    """The command as the user has started it."""
    return sys.argv[0] if Path(sys.argv[0]).name == "polynya" else "polynya"
