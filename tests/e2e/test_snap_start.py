"""SnapStart: what a snapshot of a function does not have, and how an instance made of it answers.

AWS's runtime client runs the hooks; here the snapshot is the process between them.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import boto3
import pytest
from polynya_local.processes.serving import REGION

ROOT = Path(__file__).parents[2]
SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE t(id BIGINT);
"""
POLICY = {"rules": [{"principals": ["*"], "tables": {"main": ["t"]}}]}

# It runs as a function does: `app` is imported from the folder of the function.
INSTANCE = """
import gc, json, os, random, socket, sys, time
from awslambdaric.lambda_runtime_hooks_runner import run_after_restore, run_before_snapshot

HEAVY = ("boto3", "botocore", "duckdb", "numpy")
connect, asked = socket.socket.connect, []
socket.socket.connect = lambda self, address: asked.append(address)
import app
imported = set(sys.modules)
run_before_snapshot()

from botocore.credentials import Credentials
from pg8000.native import Connection
gc.collect()
alive = gc.get_objects()
# The event loop has a pair of its own, by which it wakes itself up.
network = [o for o in alive if isinstance(o, socket.socket) and o.family != socket.AF_UNIX]
kept = network + [o for o in alive if isinstance(o, (Credentials, Connection))]
report = {
    "prepared": sorted({*HEAVY} & set(sys.modules) - imported),
    "asked": asked,
    "kept": [type(o).__name__ for o in kept],
}

# The snapshot is restored, weeks later, on a machine whose clock began again.
before = random.getstate()
drawn = []
for _ in range(2):
    random.setstate(before)
    run_after_restore()
    drawn.append(random.random())
report["differ"] = drawn[0] != drawn[1]
socket.socket.connect = connect
monotonic = time.monotonic
time.monotonic = lambda: monotonic() % 7
os.environ |= {"AWS_ACCESS_KEY_ID": "LATE", "AWS_SECRET_ACCESS_KEY": "late-secret"}
keys = []
from botocore.auth import SigV4Auth
add_auth = SigV4Auth.add_auth
def sign(self, request):
    keys.append(self.credentials.access_key)
    add_auth(self, request)
SigV4Auth.add_auth = sign

class Context:
    function_name, memory_limit_in_mb, invoked_function_arn, aws_request_id = "f", 1769, "", "1"
    get_remaining_time_in_millis = staticmethod(lambda: 29000)

loaded = set(sys.modules)
event = json.load(open(sys.argv[1]))
answer = app.handler(event, Context())
report |= {
    "status": answer["statusCode"],
    "keys": sorted(set(keys)),
    "late": [name for name in set(sys.modules) - loaded if name.split(".")[0] in HEAVY],
}
print(json.dumps(report), file=sys.stderr)
"""


@pytest.fixture(scope="module")
def environment(lake, moto):
    written = lake.write("snap_start", SCRIPT)
    ssm = boto3.client("ssm", endpoint_url=moto, region_name=REGION)
    ssm.put_parameter(Name="/snap/policy", Value=json.dumps(POLICY), Type="String", Overwrite=True)
    without_keys = {key: value for key, value in os.environ.items() if not key.startswith("AWS_")}
    return without_keys | {
        "AWS_REGION": REGION,
        "AWS_DEFAULT_REGION": REGION,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ENDPOINT_URL": moto,
        "AWS_LAMBDA_INITIALIZATION_TYPE": "snap-start",
        "PYTHONPATH": str(ROOT / "layers/bridge"),
        "DATABASE_URL": written.database.url,
        "METADATA_SCHEMA": written.metadata_schema,
        "VIRTUAL_BUCKET": "lakes",
        "DELIVERY": "materialize",
        "AUTHORIZATION": "ssm:/snap/policy",
        "WRITES": "yes",
    }


def restored(function: str, event: str, environment: dict[str, str]) -> dict:
    done = subprocess.run(
        [sys.executable, "-c", INSTANCE, str(ROOT / "events" / f"{event}.json")],
        cwd=ROOT / "functions" / function,
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stderr.splitlines()[-1])


@pytest.mark.parametrize(
    ("function", "event", "status"),
    [
        ("rest_catalog", "rest_list_namespaces", 200),
        pytest.param("commits", "commits_forbidden", 404, marks=pytest.mark.slow),
        pytest.param("object_lambda", "object_head", 404, marks=pytest.mark.slow),
    ],
)
def test_an_instance_of_a_snapshot_has_nothing_of_another_and_answers(
    function, event, status, environment
):
    report = restored(function, event, environment)
    assert report["prepared"] == ["boto3", "duckdb", "numpy"]
    assert report["asked"] == [] and report["kept"] == []
    assert report["differ"]
    # The first answer reads the policy with the keys that are there now.
    assert (report["status"], report["keys"]) == (status, ["LATE"])
    assert report["late"] == []


def test_without_snap_start_nothing_is_prepared(environment):
    script = """
import sys, snapshot_restore_py, app
assert snapshot_restore_py.get_before_snapshot() == snapshot_restore_py.get_after_restore() == []
assert not {"boto3", "duckdb", "numpy"} & sys.modules.keys()
"""
    command = [sys.executable, "-c", script]
    on_demand = environment | {"AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand"}
    subprocess.run(command, cwd=ROOT / "functions/rest_catalog", env=on_demand, check=True)
