"""A function behind the Lambda runtime interface, without Docker.

It uses SAM's emulator and AWS's runtime client (awslambdaric), which imports the handler as it
does in Lambda.
"""

import json
import os
import platform
import signal
import socket
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

import requests

ROOT = Path(__file__).parents[2]
EMULATOR = Path(sys.executable).with_name("aws-lambda-rie")
"""`make setup` installs it beside Python."""


class RuntimeInterface:
    """One instance of a function in its own process, with the environment of this one."""

    def __init__(self, function: str, timeout_s: int) -> None:
        port, api = _free_port(), _free_port()
        self._timeout_s = timeout_s
        self._url = f"http://127.0.0.1:{port}/2015-03-31/functions/function/invocations"
        # Without the two addresses the emulator listens on every interface.
        command = [EMULATOR, "--log-level", "error"]
        command += ["--runtime-interface-emulator-address", f"127.0.0.1:{port}"]
        command += ["--runtime-api-address", f"127.0.0.1:{api}"]
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT / "layers/bridge"),
            "AWS_LAMBDA_FUNCTION_NAME": function,
            "AWS_LAMBDA_FUNCTION_TIMEOUT": str(timeout_s),
            "AWS_LAMBDA_FUNCTION_MEMORY_SIZE": "1769",
            "AWS_REGION": "us-east-1",
        }
        self._process = subprocess.Popen(
            [*command, sys.executable, "-m", "awslambdaric", "app.handler"],
            cwd=ROOT / "functions" / function,
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        _wait_for(port)

    def invoke(self, event: dict[str, Any]) -> Any:
        body = json.dumps(event)
        return requests.post(self._url, data=body, timeout=self._timeout_s + 10).json()

    def stop(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)  # the emulator and its child, the runtime
        self._process.wait()


def install(wheel: str) -> None:
    """Take the emulator for this machine out of SAM's wheel."""
    machine = {"aarch64": "arm64"}.get(platform.machine(), platform.machine())
    with zipfile.ZipFile(wheel) as files:
        EMULATOR.write_bytes(files.read(f"samcli/local/rapid/aws-lambda-rie-{machine}"))
    EMULATOR.chmod(0o755)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for(port: int) -> None:
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    raise TimeoutError("the runtime interface emulator does not listen")


if __name__ == "__main__":
    install(sys.argv[1])
