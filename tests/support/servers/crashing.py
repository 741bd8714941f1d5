"""`polynya serve` that asks other processes for all that it can: `python -m ... ARGS`.

While the file CRASH_WHEN exists, readers of Parquet and Avro end their process with SIGSEGV. While
PAUSE_WHEN exists, whoever builds a manifest waits, and has its process id in that file.

A process that the server starts imports this module too.
"""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from polynya.iceberg.avro import client_manifests
from polynya.iceberg.parquet import delete_files, metadata
from polynya.virtual_files import manifests


def _crashing(function: Callable[..., Any]) -> Callable[..., Any]:
    def replaced(*arguments: Any, **named: Any) -> Any:
        if os.path.exists(os.environ["CRASH_WHEN"]):
            os.kill(os.getpid(), signal.SIGSEGV)
        return function(*arguments, **named)

    return replaced


def _pausing(function: Callable[..., Any]) -> Callable[..., Any]:
    def replaced(*arguments: Any, **named: Any) -> Any:
        pause = Path(os.environ["PAUSE_WHEN"])
        if pause.exists():
            pause.write_text(str(os.getpid()))
        while pause.exists():
            time.sleep(0.05)
        return function(*arguments, **named)

    return replaced


metadata.check_footers = _crashing(metadata.check_footers)
delete_files._positions = _crashing(delete_files._positions)
client_manifests._file = _crashing(client_manifests._file)
client_manifests.LITTLE = 0
manifests.MANY_FILES = 0
manifests.DataManifests._entries = _pausing(manifests.DataManifests._entries)

if __name__ == "__main__":
    from polynya_local.cli import app

    app()
