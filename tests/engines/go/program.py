"""The program of this folder, which iceberg-go is in."""

import subprocess
from pathlib import Path

HERE = Path(__file__).parent
PROGRAM = HERE.parents[2] / ".cache" / "engines" / "iceberg-go"


def build() -> None:
    """Compile it, the first time with what it needs from Go's proxy."""
    subprocess.run(["go", "build", "-o", str(PROGRAM), "."], cwd=HERE, check=True)
