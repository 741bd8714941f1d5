"""`make build`: downloads the packages of layers and functions, checked by the lock's hashes.

`sam build` runs pip twice: for the lock with its hashes, then without hashes for packages whose
wheels for this machine do not run in Lambda. So all wheels are downloaded first, for Lambda and for
this machine, and `sam build` uses only these.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from .. import ROOT
from .package import MACHINES, MINOR, platforms

LOCKS = [
    ROOT / folder / "requirements.txt"
    for folder in (
        *("layers/bridge", "layers/columnar", "layers/tracing"),
        *("functions/rest_catalog", "functions/commits"),
    )
]
THIS_MACHINE: list[str] = []
LAMBDA = ["--implementation", "cp", "--python-version", MINOR]


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
    parser = argparse.ArgumentParser(prog="make build")
    parser.add_argument("--architecture", choices=MACHINES, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    shutil.rmtree(options.out, ignore_errors=True)
    for platform in (THIS_MACHINE, [*LAMBDA, *platforms(options.architecture)]):
        download(options.out, platform)


if __name__ == "__main__":
    main()
