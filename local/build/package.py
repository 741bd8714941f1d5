"""`make package`: what the jobs need where Spark is somebody else's (EMR Serverless, Glue).

    environment.tar.gz   Python packages, ours too, around the machine's own interpreter: for EMR
    job.py               what spark-submit starts
    polynya.zip          our packages alone, and
    requirements.txt     what they need, in the versions of the tests: for Glue, which installs it

The environment is one that venv would make, and may be unpacked anywhere. It is for the minor
version of the Python that makes it. PySpark is not in it: Spark brings its own.
"""

import argparse
import gzip
import io
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..checkout import ROOT

OURS = {"polynya": ROOT / "layers/bridge/polynya", "polynya_pipeline": ROOT / "pipeline"}
REQUIREMENTS = [
    ROOT / "layers/bridge/requirements.in",
    ROOT / "layers/columnar/requirements.in",
    ROOT / "pipeline/requirements.txt",
]
CONSTRAINTS = ROOT / "constraints.txt"
MACHINES = {"arm64": "aarch64", "x86_64": "x86_64"}
GLIBC = range(34, 16, -1)
"""Wheels for glibc 2.34 (Amazon Linux 2023) and before."""
MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"
SITE = f"lib/python{MINOR}/site-packages"
ARCHIVE, JOB_FILE = "environment.tar.gz", "job.py"
JOB = '"""What spark-submit starts: job.py <job> <options>."""\n\n'
JOB += "from polynya_pipeline.commands import app\n\napp()\n"


def requirements() -> list[str]:
    lines = [line for path in REQUIREMENTS for line in path.read_text().splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def install(site: Path, architecture: str) -> None:
    """Wheels for another machine's architecture, in the versions of the lock."""
    machine = MACHINES[architecture]
    tags = [f"manylinux_2_{glibc}_{machine}" for glibc in GLIBC] + [f"manylinux2014_{machine}"]
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--root-user-action", "ignore", "--no-compile", "--no-warn-conflicts"]
    command += ["--target", str(site), "--only-binary", ":all:", "--constraint", str(CONSTRAINTS)]
    command += [f"--platform={tag}" for tag in tags]
    subprocess.run([*command, *requirements()], check=True)


def lay_out(folder: Path, interpreter: str) -> Path:
    """The environment around `interpreter`, with our packages; its site-packages."""
    site = folder / SITE
    for name, source in OURS.items():
        shutil.copytree(source, site / name, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "bin").mkdir()
    for name in ("python", "python3", f"python{MINOR}"):
        (folder / "bin" / name).symlink_to(interpreter)
    home = Path(interpreter).parent
    (folder / "pyvenv.cfg").write_text(
        f"home = {home}\ninclude-system-site-packages = false\nversion = {MINOR}\n"
    )
    return site


def pack(folder: Path, archive: Path) -> None:
    """The folder's content as a tarball; the same content gives the same bytes."""

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if "__pycache__" in entry.name:
            return None
        entry.mtime = entry.uid = entry.gid = 0
        entry.uname = entry.gname = ""
        return entry

    with (
        archive.open("wb") as raw,
        gzip.GzipFile("", "wb", compresslevel=6, fileobj=raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for path in sorted(folder.iterdir()):
            tar.add(path, path.name, filter=plain)  # it sorts what is within


def our_zip() -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as packed:
        for path, name in our_files():
            packed.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return body.getvalue()


def our_files() -> Iterator[tuple[Path, str]]:
    for name, source in OURS.items():
        for path in sorted(source.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path, f"{name}/{path.relative_to(source).as_posix()}"


def locked(site: Path) -> Iterable[str]:
    """What pip has installed, as a list of requirements."""
    for path in sorted(site.glob("*.dist-info")):
        name, _, version = path.name.removesuffix(".dist-info").rpartition("-")
        yield f"{name}=={version}"


def main() -> None:
    parser = argparse.ArgumentParser(prog="make package")
    parser.add_argument("--architecture", choices=MACHINES, required=True)
    parser.add_argument("--interpreter", default=f"/usr/bin/python{MINOR}", help="there, on EMR")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    shutil.rmtree(given.out, ignore_errors=True)
    folder = given.out / "environment"
    install(folder / SITE, given.architecture)
    shutil.rmtree(folder / SITE / "bin", ignore_errors=True)  # scripts, with pip's own shebang
    lines = locked(folder / SITE)
    (given.out / "requirements.txt").write_text("\n".join(lines) + "\n")
    lay_out(folder, given.interpreter)
    pack(folder, given.out / ARCHIVE)
    shutil.rmtree(folder)
    (given.out / "polynya.zip").write_bytes(our_zip())
    (given.out / JOB_FILE).write_text(JOB)
    for path in sorted(given.out.iterdir()):
        print(f"{os.path.relpath(path)}: {path.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
