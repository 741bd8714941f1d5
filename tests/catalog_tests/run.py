"""`make catalog-tests`: runs the tests on a fresh lake and compares results with expected.py."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from xml.etree import ElementTree

import boto3
from moto.server import ThreadedMotoServer
from polynya_local.processes.postgres import postgres
from polynya_local.processes.serving import (
    COMMAND,
    KEY_ID,
    REGION,
    SECRET,
    Bridge,
    environment,
    serving,
)

from tests.catalog_tests.expected import FAILING, SKIPPED
from tests.support.catalog_versions import to_1_1
from tests.support.lakes import BUCKET, Lakes
from tests.support.writes.writable import set_up_writes

HERE = Path(__file__).parent
TARGET = HERE.parents[1] / ".cache" / "catalog-tests"
SCRIPT = "ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');"
SETTINGS = {
    "CUSTOM_PROPERTIES": "user,created-at,prop1,default-key*,override-key*",
    "VIEW_DIALECTS": "spark,trino",
}
"""The names that the tests give to properties of tables, and the dialects of their views."""

FLAGS = {
    "OVERRIDES_REQUESTED_LOCATION": "true",
    "SUPPORTS_NESTED_NAMESPACES": "true",
    "SUPPORTS_NAMES_WITH_DOT": "true",
    "SUPPORTS_NAMES_WITH_SLASHES": "true",
}
TRUSTING = [sys.executable, "-m", "tests.catalog_tests.trusting"]
"""The command with the two changes of trusting.py."""

Results = dict[str, str]


def main(words: list[str]) -> int:
    """Run the tests and print what is not as expected.

    Args:
        words: more arguments for Maven, such as -Dtest=TablesTest#testAppend.
    """
    for old in (TARGET / "surefire-reports").glob("*.xml"):
        old.unlink()
    with served(TRUSTING, is_1_1=True, delivery="object-lambda", **SETTINGS) as bridge:
        subprocess.run(maven(words), env=client_settings(bridge), check=True)
    return report(results(), is_complete=not words)


@contextmanager
def served(
    command: list[str] = COMMAND,
    *,
    is_1_1: bool = False,
    delivery: str = "materialize",
    **settings: str,
) -> Iterator[Bridge]:
    """A fresh lake that clients may write to.

    Args:
        is_1_1: its catalog has version 1.1, and so namespaces of several levels.
    """
    with ExitStack() as stack:
        server = stack.enter_context(postgres())
        os.environ.update(environment({}))
        moto = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        moto.start()
        stack.callback(moto.stop)
        endpoint = "http://{}:{}".format(*moto.get_host_and_port())
        boto3.client("s3", endpoint_url=endpoint).create_bucket(Bucket=BUCKET)
        lake = Lakes(server, endpoint).write("catalog_tests", SCRIPT)
        set_up_writes(lake)
        if is_1_1:
            to_1_1(lake)
        os.environ |= {"LAKE_S3": endpoint, "LAKE_DATA_PATH": lake.data_path}
        os.environ["LAKE_CATALOG"] = lake.database.url
        # Loggers write to stdout, a pipe from which nobody reads.
        settings = {"POWERTOOLS_LOG_LEVEL": "WARNING", **settings}
        yield stack.enter_context(
            serving(
                lake.database.url,
                endpoint,
                delivery=delivery,
                writes=True,
                command=command,
                settings=settings,
            )
        )


def maven(words: list[str]) -> list[str]:
    """The command that compiles and runs the tests."""
    return ["mvn", "-q", "-B", "-C", "-f", str(HERE), f"-Dbuild.folder={TARGET}", "test", *words]


def client_settings(bridge: Bridge) -> dict[str, str]:
    """The environment of Maven: settings of Iceberg's client, and what the catalog supports."""
    properties = {
        "URI": bridge.catalog_uri,
        "WAREHOUSE": bridge.warehouse,
        "IO__IMPL": "org.apache.iceberg.aws.s3.S3FileIO",
        "S3_ENDPOINT": bridge.s3_endpoint,
        "S3_PATH__STYLE__ACCESS": "true",
        "S3_ACCESS__KEY__ID": KEY_ID,
        "S3_SECRET__ACCESS__KEY": SECRET,
        "CLIENT_REGION": REGION,
    }
    flags = {f"FLAG_{name}": value for name, value in FLAGS.items()}
    named = {f"RCK_{name}": value for name, value in {**properties, **flags}.items()}
    return {**os.environ, **named}


def results() -> Results:
    """`passed`, `skipped` or the first line of the failure, by `Class.test`."""
    found: Results = {}
    for path in sorted((TARGET / "surefire-reports").glob("TEST-*.xml")):
        for case in ElementTree.parse(path).iter("testcase"):
            name = f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name')}"
            faults = [*case.iter("failure"), *case.iter("error")]
            result = "skipped" if case.find("skipped") is not None else "passed"
            if faults:
                text = (faults[0].get("message") or faults[0].text or "").strip()
                result = f"failed: {text.splitlines()[0] if text else faults[0].get('type')}"
            found[name] = result
    return found


def report(found: Results, *, is_complete: bool) -> int:
    """Print the counts and what is not as expected; returns the exit code."""
    expected = {**dict.fromkeys(FAILING, "failed"), **dict.fromkeys(SKIPPED, "skipped")}
    wrong = {
        name: result
        for name, result in sorted(found.items())
        if result.partition(":")[0] != expected.get(name, "passed")
    }
    print()  # Maven's last line has no end
    for name, result in wrong.items():
        print(f"unexpected: {name}: {result}")
    missing = sorted(expected.keys() - found.keys()) if is_complete else []
    for name in missing:
        print(f"expected, but there is no such test: {name}")
    kinds = [result.partition(":")[0] for result in found.values()]
    counts = ", ".join(f"{kinds.count(kind)} {kind}" for kind in sorted(set(kinds)))
    print(f"{len(found)} tests: {counts}; {len(wrong)} not as expected")
    return 1 if wrong or missing or not found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
