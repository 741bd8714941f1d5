"""An emulator of AWS (MiniStack), and stacks of the template in it."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import boto3
import requests
import yaml
from botocore.exceptions import ClientError
from polynya_local.clients.native import Lake
from polynya_local.messages import PER_CONNECTION, Request, Response
from polynya_local.processes.postgres import free_port
from polynya_local.processes.serving import environment

from tests.aws.http_server import HttpServer
from tests.aws.template import TemplateLoader

ROOT = Path(__file__).parents[2]
BUILD = ROOT / ".aws-sam/local"
MINISTACK = ROOT / ".venv-ministack/bin/ministack"
SAM = ROOT / ".venv-sam/bin/sam"
ACCOUNT, REGION = "111122223333", "us-east-1"
PARAMETERS = {
    "PythonRuntime": "python3.13",
    "Architecture": "x86_64",
    "DataBucket": "lakes",
    "DataPrefix": "deployed/",
    "Vending": "yes",
}


@contextmanager
def ministack(auth: str) -> Iterator[str]:
    """The address of an emulator; `AUTH=true` lets it check signatures and permissions."""
    port = free_port()
    uri = f"http://127.0.0.1:{port}"
    os.environ |= environment({"AWS_ENDPOINT_URL": uri}) | {"AWS_DEFAULT_REGION": REGION}
    settings = {
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "IOT_MTLS_ENABLED": "0",
        "SFTP_ENABLED": "0",
        "LAMBDA_EXECUTOR": "local",
        "MINISTACK_ACCOUNT_ID": ACCOUNT,
        "AUTH": auth.removeprefix("AUTH="),
    }
    log = (BUILD.parent / "ministack.log").open("w")
    process = subprocess.Popen(
        [MINISTACK], env=os.environ | settings, stdout=log, stderr=log, start_new_session=True
    )
    try:
        wait_for(uri)
        yield uri
    finally:
        os.killpg(process.pid, 15)
        process.wait(20)


def deployed(aws: str, lake: Lake, delivery: str, values: dict[str, str]) -> str:
    """Deploy a stack with this delivery, or update it, and return the catalog's address.

    Args:
        values: parameters besides those that every stack here has.
    """
    template = in_json(yaml.load((BUILD / "template.yaml").read_text(), Loader=TemplateLoader))
    variables = template["Globals"]["Function"]["Environment"]["Variables"]
    database = {"DATABASE_URL": f"{lake.database.url}?sslmode=disable"}
    variables |= {"AWS_ENDPOINT_URL": aws, "OBJECT_LAMBDA_ENDPOINT": aws, **database}
    of_commits = template["Resources"]["CommitsFunction"]["Properties"]["Environment"]
    of_commits["Variables"] |= database
    if values.get("SnapStart") == "Enabled":
        # Lambda sets it where it takes a snapshot; the emulator only calls the hooks.
        variables["AWS_LAMBDA_INITIALIZATION_TYPE"] = "snap-start"
    del template["Resources"]["StagingBucketPolicy"]  # it refuses requests without TLS
    path = BUILD / f"{delivery}.json"
    path.write_text(json.dumps(template))
    stack = stack_of(delivery)
    pairs = PARAMETERS | {
        "Delivery": delivery,
        "DatabaseHost": lake.database.host,
        "DatabaseName": lake.database.dbname,
        **values,
    }
    command = [SAM, "deploy", "--template-file", path, "--stack-name", stack]
    command += ["--s3-bucket", "packages", "--capabilities", "CAPABILITY_IAM"]
    command += ["--no-confirm-changeset", "--region", REGION, "--config-env", "none"]
    command += ["--parameter-overrides", *(f"{name}={value}" for name, value in pairs.items())]
    started = time.monotonic()
    run = subprocess.run(command, cwd=ROOT, text=True, capture_output=True)
    if run.returncode:
        sys.exit(f"{run.stdout}\n{run.stderr}")
    client = boto3.client("cloudformation", endpoint_url=aws)
    [described] = client.describe_stacks(StackName=stack)["Stacks"]
    outputs = {one["OutputKey"]: one["OutputValue"] for one in described["Outputs"]}
    shown = {"Writes": "no", "Tracing": "Disabled", "Lakes": "no", "SnapStart": "Disabled"}
    texts = [f"{name}={pairs.get(name, default)}" for name, default in shown.items()]
    seconds = time.monotonic() - started
    print(f"sam deploy, {delivery}, {', '.join(texts)}: {seconds:.0f} s")
    for name in ("CatalogUrl", "VirtualBucket"):
        print(f"  {name}: {outputs[name]}")
    return outputs["CatalogUrl"]


def stack_of(delivery: str) -> str:
    """The name of the stack with this delivery."""
    return f"polynya-{delivery}"


def vended_s3(properties: Mapping[str, str], aws: str) -> Any:
    """A boto3 client of S3 with the credentials that were vended for a table."""
    return boto3.client(
        "s3",
        endpoint_url=aws,
        aws_access_key_id=properties["s3.access-key-id"],
        aws_secret_access_key=properties["s3.secret-access-key"],
        aws_session_token=properties["s3.session-token"],
    )


def answer_of(request: Callable[[], object]) -> str:
    """`allowed`, or the code of the error that AWS answers."""
    try:
        request()
    except ClientError as error:
        return str(error.response["Error"]["Code"])
    return "allowed"


def in_json(node: Any) -> Any:
    """The node in the form of JSON: `Fn::GetAtt` with a list."""
    if isinstance(node, dict):
        return {
            key: value.split(".", 1)
            if key == "Fn::GetAtt" and isinstance(value, str)
            else in_json(value)
            for key, value in node.items()
        }
    return [in_json(one) for one in node] if isinstance(node, list) else node


@contextmanager
def catalog(aws: str, url: str) -> Iterator[str]:
    """The API at an address that this machine can resolve; the emulator requires its host name."""
    api = url.removeprefix("https://").partition(".")[0]
    host = f"{api}.execute-api.localhost:{aws.rpartition(':')[2]}"

    def answer(request: Request) -> Response:
        headers = {k: v for k, v in request.headers if k.lower() not in PER_CONNECTION | {"host"}}
        query = f"?{request.query}" if request.query else ""
        found = requests.request(
            request.method,
            f"{aws}{request.path}{query}",
            headers=headers | {"Host": host},
            data=request.body.read(),
            timeout=120,
        )
        end_to_end = tuple(
            (k, v)
            for k, v in found.headers.items()
            if k.lower() not in PER_CONNECTION | {"content-encoding"}
        )
        return Response(found.status_code, end_to_end, found.content)

    server = HttpServer(0)
    server.start(answer)
    try:
        yield server.uri
    finally:
        server.stop()


def wait_for(uri: str) -> None:
    for _ in range(300):
        try:
            requests.get(f"{uri}/_ministack/health", timeout=2)
            return
        except requests.RequestException:
            time.sleep(0.2)
    raise TimeoutError("MiniStack does not answer")
