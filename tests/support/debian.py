"""Programs that tests use if they are there, as root on Debian from its packages."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

# Without a network it gives up soon.
APT = ["apt-get", "--quiet", "-o", "Acquire::http::Timeout=20", "-o", "Acquire::Retries=1"]
SECONDS = 300


def install(package: str, executable: Callable[[], str | None]) -> str | None:
    """Install a package if this is root on Debian and its program is not there.

    Args:
        executable: the path of the program; None: there is none.

    Returns:
        What `executable` gives afterwards.
    """
    if executable() is None and os.geteuid() == 0 and Path("/etc/debian_version").exists():
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        for command in (["update"], ["install", "--yes", "--no-install-recommends", package]):
            _run([*APT, *command], environment)
    return executable()


def _run(command: list[str], environment: dict[str, str]) -> None:
    try:
        subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True, timeout=SECONDS
        )
    except subprocess.SubprocessError as error:
        said = (getattr(error, "stderr", None) or str(error)).strip()[-300:]
        print(f"{' '.join(command)}: {said}", file=sys.stderr)
