"""`polynya serve` that asks other processes for all that it can: `python -m ... ARGS`.

While the file CRASH_WHEN exists, the reader that it names ends its process with SIGSEGV. While
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
from polynya.iceberg.parquet import generated_files, metadata
from polynya.virtual_files import manifests
from polynya_local.reports import native_reader

# Readers have no environment.
CRASH, PAUSE = Path(os.environ["CRASH_WHEN"]), Path(os.environ["PAUSE_WHEN"])


def _crashing(name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    def replaced(*arguments: Any, **named: Any) -> Any:
        if CRASH.exists() and CRASH.read_text() == name:
            os.kill(os.getpid(), signal.SIGSEGV)
        return function(*arguments, **named)

    return replaced


def _pausing(function: Callable[..., Any]) -> Callable[..., Any]:
    def replaced(*arguments: Any, **named: Any) -> Any:
        if PAUSE.exists():
            PAUSE.write_text(str(os.getpid()))
        while PAUSE.exists():
            time.sleep(0.05)
        return function(*arguments, **named)

    return replaced


metadata.check_footers = _crashing("footer", metadata.check_footers)
client_manifests._file = _crashing("manifest", client_manifests._file)
client_manifests._listed = _crashing("list", client_manifests._listed)
client_manifests.LITTLE = 0
generated_files.checked = _crashing("deletes", generated_files.checked)
native_reader._Reader.rows = _crashing("rows", native_reader._Reader.rows)
manifests.LONG = 0
manifests.DataManifests._entries = _pausing(manifests.DataManifests._entries)

if __name__ == "__main__":
    from polynya_local.cli import app

    app()
