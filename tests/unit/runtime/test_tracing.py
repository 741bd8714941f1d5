"""X-Ray: not loaded by default; if enabled, it receives no answer and no secret."""

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[3]
TRACE = "1-67891233-abcdef012345678912345678"
SECRET = "open sesame"
SCRIPT = f"""
import sys
from polynya.runtime.metrics import traced

@traced
def handler(event, context):
    return {{"body": "{SECRET}"}}

assert handler({{}}, None) == {{"body": "{SECRET}"}}
print("aws_xray_sdk" in sys.modules)
"""


def traces(tmp_path: Path, **variables: str) -> tuple[str, list[dict]]:
    """The output of the script, and what X-Ray's daemon (UDP) receives of its invocations."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as daemon:
        daemon.bind(("127.0.0.1", 0))
        daemon.settimeout(0.2)
        environment = {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "layers/bridge"),
            # Set as in Lambda; the SDK uses it to recognise Lambda.
            "LAMBDA_TASK_ROOT": str(tmp_path),
            "_X_AMZN_TRACE_ID": f"Root={TRACE};Parent=53995c3f42cd8ad8;Sampled=1",
            "AWS_XRAY_DAEMON_ADDRESS": f"127.0.0.1:{daemon.getsockname()[1]}",
            "POWERTOOLS_SERVICE_NAME": "rest-catalog",
        }
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT],
            cwd=tmp_path,
            env=environment | variables,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        heard = []
        try:
            while True:
                heard.append(json.loads(daemon.recv(65536).partition(b"\n")[2]))
        except TimeoutError:
            return done.stdout.strip(), heard


def test_the_sdk_is_not_loaded_by_default(tmp_path):
    for variables in ({}, {"POWERTOOLS_TRACE_DISABLED": "true"}):
        assert traces(tmp_path, **variables) == ("False", [])


def test_each_invocation_is_traced_without_its_answer(tmp_path):
    loaded, heard = traces(tmp_path, POWERTOOLS_TRACE_DISABLED="false")
    assert loaded == "True"
    [segment] = heard
    assert segment["name"] == "## handler" and segment["trace_id"] == TRACE
    assert segment["annotations"]["Service"] == "rest-catalog"
    assert segment["end_time"] >= segment["start_time"]
    assert SECRET not in json.dumps(heard)
