"""Keeps a lake that another program has made: the catalog as SQL, and the Parquet files.

.venv/bin/python tests/lakes/others/record.py /tmp/sdk tests/lakes/others/sdk
"""

import shutil
import sqlite3
import sys
from pathlib import Path

FOLDER = "{{FOLDER}}"
"""Stands for the folder of the lake."""


def record(lake: Path, kept: Path) -> None:
    """Keep the lake in the folder `lake`, whose catalog is `lake.sqlite`."""
    kept.mkdir(parents=True)
    catalog = sqlite3.connect(lake / "lake.sqlite")
    text = "\n".join(catalog.iterdump()).replace(str(lake), FOLDER)
    catalog.close()
    (kept / "catalog.sql").write_text(text + "\n")
    for file in sorted(lake.rglob("*.parquet")):
        copy = kept / file.relative_to(lake)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)


def restore(kept: Path, lake: Path) -> None:
    """Put a kept lake into a new folder."""
    shutil.copytree(kept, lake)
    catalog = sqlite3.connect(lake / "lake.sqlite")
    catalog.executescript((lake / "catalog.sql").read_text().replace(FOLDER, str(lake)))
    catalog.close()


if __name__ == "__main__":
    record(Path(sys.argv[1]).resolve(), Path(sys.argv[2]))
