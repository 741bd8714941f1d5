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

from ..checkout import ROOT
from .package import GLIBC, MACHINES, MINOR

LOCKS = [
    ROOT / folder / "requirements.txt"
    for folder in (
        *("layers/bridge", "layers/columnar", "layers/tracing"),
        *("functions/rest_catalog", "functions/commits"),
    )
]
THIS_MACHINE: tuple[str, ...] = ()


def lambda_machine(architecture: str) -> tuple[str, ...]:
    """The options with which pip selects wheels for Lambda on Amazon Linux 2023."""
    machine = MACHINES[architecture]
    tags = [f"manylinux_2_{glibc}_{machine}" for glibc in GLIBC] + [f"manylinux2014_{machine}"]
    return ("--implementation", "cp", "--python-version", MINOR, *(f"--platform={t}" for t in tags))


def download(out: Path, platform: tuple[str, ...]) -> None:
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
    for platform in (THIS_MACHINE, lambda_machine(options.architecture)):
        download(options.out, platform)


if __name__ == "__main__":
    main()
