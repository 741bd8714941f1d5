"""`make pyiceberg-suite`: PyIceberg's own tests of what catalogs do, against `polynya serve`.

They are taken from a clone of iceberg-python (PYICEBERG_TESTS), with the fixtures of its catalogs
replaced by one of a fresh lake. It needs the packages pytest-lazy-fixtures and sqlalchemy. What
fails is counted by its reason; nothing is compared, because the tests change with each clone.
"""

import os
import re
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from tests.catalog_tests.run import served

TESTS = "tests/catalog/test_catalog_behaviors.py"
FIXTURES = """
import os
import pytest
from pyiceberg.catalog.rest import RestCatalog

MISSING = object()
PROPERTIES = {key[5:].replace("_", "."): v for key, v in os.environ.items() if key[:5] == "REST_"}

class Catalog(RestCatalog):
    # A namespace is created with those around it, as the catalogs of the tests do it.

    def create_namespace(self, namespace, properties=MISSING):
        levels = self.identifier_to_tuple(namespace)
        for depth in range(1, len(levels)):
            self.create_namespace_if_not_exists(levels[:depth])
        super().create_namespace(namespace, {} if properties is MISSING else properties)

@pytest.fixture
def catalog():
    one = Catalog("polynya", **{k.lower().replace("access.key.id", "access-key-id")
        .replace("secret.access.key", "secret-access-key"): v for k, v in PROPERTIES.items()})
    _clear(one)
    yield one

def _clear(one, above=()):
    parent = {"parent": "\x1f".join(above)} if above else {}
    for names in one._session.get(one.url("namespaces"), params=parent).json()["namespaces"]:
        namespace = tuple(names)
        if namespace != ("main",):
            _clear(one, namespace)
            for table in one.list_tables(namespace):
                one.drop_table(table)
            one.drop_namespace(namespace)

@pytest.fixture
def catalog_with_warehouse(catalog):
    return catalog
"""


def main(words: list[str]) -> int:
    """Run the tests and print what fails, by reason.

    Args:
        words: more arguments for pytest.
    """
    clone = os.environ.get("PYICEBERG_TESTS", "")
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        archive = subprocess.run(
            ["git", "-C", clone, "archive", "HEAD", "tests"], check=True, capture_output=True
        )
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        (folder / "tests" / "catalog" / "conftest.py").write_text(FIXTURES)
        bridge = stack.enter_context(served(is_1_1=True))
        settings = {
            "REST_URI": bridge.catalog_uri,
            "REST_WAREHOUSE": bridge.warehouse,
            "REST_S3_ENDPOINT": bridge.s3_endpoint,
            "REST_S3_REGION": "us-east-1",
            "REST_S3_ACCESS_KEY_ID": "any",
            "REST_S3_SECRET_ACCESS_KEY": "any",
        }
        report = folder / "report.xml"
        arguments = ["-q", "-p", "no:cacheprovider", "--tb=line", f"--junitxml={report}"]
        subprocess.run(
            [sys.executable, "-m", "pytest", *arguments, *(words or [TESTS])],
            cwd=folder,
            env={**os.environ, **settings},
            check=False,
        )
        return show(report)


def show(report: Path) -> int:
    """Print how many tests pass, and the reasons of the others, the most frequent first."""
    cases = list(ElementTree.parse(report).iter("testcase"))
    reasons: Counter[str] = Counter()
    for case in cases:
        for failure in (*case.findall("failure"), *case.findall("error")):
            message = (failure.get("message") or "").partition("\n")[0]
            reasons[re.sub(r"[0-9a-f-]{8,}|'[^']*'|\d+|-[a-z]{8}|: [a-z_-]+$", "…", message)] += 1
    print(f"{len(cases) - reasons.total()} of {len(cases)} pass")
    for reason, number in reasons.most_common():
        print(f"{number:4} {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
