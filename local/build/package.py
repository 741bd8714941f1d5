"""Packages for AWS. `make package`: the files with which the jobs run on EMR Serverless and Glue.

    environment.tar.gz   for EMR: Python packages, ours too, for the interpreter of the machine
    job.py               for EMR: the file that spark-submit starts
    polynya.zip          for Glue: our packages only
    requirements.txt     for Glue, which installs them: the packages that ours need, as tested

The environment has the layout of venv and can be unpacked anywhere. It is for the minor version
of the Python that runs this module. It has no PySpark, which Spark brings.

`--wheels`, for `make build`: the wheels of layers and functions, checked by the lock's hashes; `sam
build` uses only these.
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

ROOT = Path(__file__).parents[2]

OURS = {
    "polynya": ROOT / "layers/bridge/polynya",
    "polynya_pipeline": ROOT / "pipeline/polynya_pipeline",
}
REQUIREMENTS = [
    ROOT / "layers/bridge/requirements.in",
    ROOT / "layers/columnar/requirements.in",
    ROOT / "pipeline/requirements.txt",
]
CONSTRAINTS = ROOT / "constraints.txt"
LOCKS = [
    ROOT / folder / "requirements.txt"
    for folder in (
        *("layers/bridge", "layers/columnar", "layers/tracing"),
        *("functions/rest_catalog", "functions/commits"),
    )
]
MACHINES = {"arm64": "aarch64", "x86_64": "x86_64"}
GLIBC = range(34, 16, -1)
"""Wheels for glibc 2.34 (Amazon Linux 2023) and before."""
MINOR = f"{sys.version_info.major}.{sys.version_info.minor}"
THIS_MACHINE: list[str] = []
LAMBDA = ["--implementation", "cp", "--python-version", MINOR]
SITE = f"lib/python{MINOR}/site-packages"
ARCHIVE, JOB_FILE = "environment.tar.gz", "job.py"
JOB = '"""What spark-submit starts: job.py <job> <options>."""\n\n'
JOB += "from polynya_pipeline.commands import app\n\napp()\n"


def requirements() -> list[str]:
    """The requirements of the jobs, without ours and PySpark."""
    lines = [line for path in REQUIREMENTS for line in path.read_text().splitlines()]
    return [line for line in lines if line and not line.startswith("#")]


def platforms(architecture: str) -> list[str]:
    """The options with which pip selects wheels for Amazon Linux 2023."""
    machine = MACHINES[architecture]
    tags = [f"manylinux_2_{glibc}_{machine}" for glibc in GLIBC] + [f"manylinux2014_{machine}"]
    return [f"--platform={tag}" for tag in tags]


def install(site: Path, architecture: str) -> None:
    """Install wheels for an architecture into a folder, in the versions of constraints.txt."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    command += ["--root-user-action", "ignore", "--no-compile", "--no-warn-conflicts"]
    command += ["--target", str(site), "--only-binary", ":all:", "--constraint", str(CONSTRAINTS)]
    command += platforms(architecture)
    subprocess.run([*command, *requirements()], check=True)


def lay_out(folder: Path, interpreter: str) -> Path:
    """Lay out an environment for `interpreter` with our packages; returns its site-packages."""
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
    """Write a folder as a tarball; the same content gives the same bytes."""

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
            tar.add(path, path.name, filter=plain)  # sorted within each


def our_zip() -> bytes:
    """A zip file of our packages; the same files give the same bytes."""
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as packed:
        for path, name in our_files():
            packed.writestr(zipfile.ZipInfo(name), path.read_bytes(), zipfile.ZIP_DEFLATED)
    return body.getvalue()


def our_files() -> Iterator[tuple[Path, str]]:
    """The files of our packages, and their paths in site-packages."""
    for name, source in OURS.items():
        for path in sorted(source.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path, f"{name}/{path.relative_to(source).as_posix()}"


def locked(site: Path) -> Iterable[str]:
    """The packages in a site-packages folder, as requirements."""
    for path in sorted(site.glob("*.dist-info")):
        name, _, version = path.name.removesuffix(".dist-info").rpartition("-")
        yield f"{name}=={version}"


def package(out: Path, architecture: str, interpreter: str) -> None:
    """Make the files of `make package` in a folder."""
    folder = out / "environment"
    install(folder / SITE, architecture)
    shutil.rmtree(folder / SITE / "bin", ignore_errors=True)  # scripts, with pip's own shebang
    lines = locked(folder / SITE)
    (out / "requirements.txt").write_text("\n".join(lines) + "\n")
    lay_out(folder, interpreter)
    pack(folder, out / ARCHIVE)
    shutil.rmtree(folder)
    (out / "polynya.zip").write_bytes(our_zip())
    (out / JOB_FILE).write_text(JOB)
    for path in sorted(out.iterdir()):
        print(f"{os.path.relpath(path)}: {path.stat().st_size / 1e6:.1f} MB")


def download(out: Path, platform: list[str]) -> None:
    """Download the wheels of every lock for a platform into a folder.

    Args:
        platform: options of pip that select it; empty: this machine.

    Raises:
        subprocess.CalledProcessError: a wheel is missing, or its hash is not that of the lock.
    """
    for lock in LOCKS:
        command = [sys.executable, "-m", "pip", "download", "--quiet"]
        command += ["--disable-pip-version-check", "--require-hashes", "--no-deps"]
        command += ["--only-binary", ":all:", "--dest", str(out), *platform]
        subprocess.run([*command, "--requirement", str(lock)], check=True)


def main() -> None:
    parser = argparse.ArgumentParser(prog="make package")
    parser.add_argument("--architecture", choices=MACHINES, required=True)
    parser.add_argument(
        "--interpreter", default=f"/usr/bin/python{MINOR}", help="path of the interpreter on EMR"
    )
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--wheels", action="store_true", help="the wheels for `make build` instead")
    options = parser.parse_args()
    shutil.rmtree(options.out, ignore_errors=True)
    if options.wheels:
        # `sam build` runs pip twice: for the lock with its hashes, then without hashes for packages
        # whose wheels for this machine do not run in Lambda.
        for platform in (THIS_MACHINE, [*LAMBDA, *platforms(options.architecture)]):
            download(options.out, platform)
    else:
        package(options.out, options.architecture, options.interpreter)


if __name__ == "__main__":
    main()
