"""The packages of the layers and functions, each checked against the hashes of the lock.

`sam build` asks pip twice: for the lock, with its hashes, and then by name for what this machine's
wheels do not do in Lambda, without them. So `make build` gets all wheels here first, for Lambda and
for this machine, and lets `sam build` have nothing else.
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
    for folder in ("layers/bridge", "layers/columnar", "layers/tracing", "functions/rest_catalog")
]
THIS_MACHINE: tuple[str, ...] = ()


def lambda_machine(architecture: str) -> tuple[str, ...]:
    """pip's options for Lambda's Python on Amazon Linux 2023."""
    machine = MACHINES[architecture]
    tags = [f"manylinux_2_{glibc}_{machine}" for glibc in GLIBC] + [f"manylinux2014_{machine}"]
    return ("--implementation", "cp", "--python-version", MINOR, *(f"--platform={t}" for t in tags))


def download(out: Path, platform: tuple[str, ...]) -> None:
    """Put the wheels of every lock for a platform into a folder.

    Raises:
        subprocess.CalledProcessError: one is missing, or is not what the lock says.
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
    given = parser.parse_args()
    shutil.rmtree(given.out, ignore_errors=True)
    for platform in (THIS_MACHINE, lambda_machine(given.architecture)):
        download(given.out, platform)


if __name__ == "__main__":
    main()
