"""`make pyiceberg-suite`: PyIceberg's own tests of what catalogs do, against `polynya serve`.

They are taken from a clone of iceberg-python (PYICEBERG_TESTS), with the fixtures of its catalogs
replaced by one of a fresh lake, and the location of a namespace by one below its data path.
`integration` runs those with Spark, whose tables PyIceberg's own script makes; where they assert
the version of a new table, a later one is right, and what they add with add_files is put into the
lake's bucket without Polynya. They need the packages pytest-lazy-fixtures and sqlalchemy, and with
Spark thrift and pytest-mock. What fails is counted by its reason; nothing is compared, because the
tests change with each clone.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

from polynya_local.processes.serving import KEY_ID, REGION, SECRET, Bridge

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


INTEGRATION = ("tests/integration", "-k", "not hive and not memory and not sqlite", "-W", "default")
CLONE = ("PYICEBERG_TESTS", "pyiceberg-0.12.0rc1", "tests", "dev/provision.py")
STORE = """__import__('pyiceberg.io').io.load_file_io({
    's3.endpoint': __import__('os').environ['LAKE_S3'], 's3.region': 'us-east-1',
    's3.access-key-id': 'any', 's3.secret-access-key': 'any'})"""
SESSION = "__import__('spark_session').spark_session()"


def main(words: list[str]) -> int:
    """Run the tests and print what fails, by reason.

    Args:
        words: `integration` for the tests with Spark; then more arguments for pytest.
    """
    is_integration = words[:1] == ["integration"]
    words = words[is_integration:] or [*INTEGRATION] if is_integration else words or [TESTS]
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        subprocess.run(["tar", "-x", "-C", folder], input=archive(*CLONE), check=True)
        bridge = stack.enter_context(served(is_1_1=True, delivery="object-lambda"))
        if is_integration:
            prepare_integration(folder, bridge)
        else:
            (folder / "tests" / "catalog" / "conftest.py").write_text(FIXTURES)
            # A namespace can be placed where the files of the lake are.
            text, here = (folder / TESTS).read_text(), os.environ["LAKE_DATA_PATH"]
            (folder / TESTS).write_text(text.replace('"/test/location"', f'"{here}/test/location"'))
        report = folder / "report.xml"
        arguments = ["-q", "-p", "no:cacheprovider", "--tb=line", f"--junitxml={report}"]
        run(folder, bridge, "pytest", *arguments, *words)
        return show(report)


def archive(variable: str, revision: str, *paths: str) -> bytes:
    """Folders of the clone that an environment variable names, as a TAR file."""
    command = ["git", "-C", os.environ[variable], "archive", revision, *paths]
    return subprocess.run(command, check=True, capture_output=True).stdout


def settings_of(bridge: Bridge) -> dict[str, str]:
    """The environment of a client of the catalog."""
    return {
        "REST_URI": bridge.catalog_uri,
        "REST_WAREHOUSE": bridge.warehouse,
        "REST_S3_ENDPOINT": bridge.s3_endpoint,
        "REST_S3_REGION": REGION,
        "REST_S3_ACCESS_KEY_ID": KEY_ID,
        "REST_S3_SECRET_ACCESS_KEY": SECRET,
    }


def run(folder: Path, bridge: Bridge, module: str, *words: str) -> None:
    """Run a module of Python in the folder of the tests, as a client of the catalog."""
    environ = {**os.environ, **settings_of(bridge)}
    environ["PYTHONPATH"] = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", module, *words]
    subprocess.run(command, cwd=folder, env=environ, check=False)


class _Tolerant(ast.NodeTransformer):
    """Changes a script so that it prints an error of a statement and goes on."""

    def visit_Expr(self, node: ast.Expr) -> ast.stmt:
        [handler] = ast.parse(
            "try: pass\nexcept Exception as error: print('refused:', str(error)[:300])"
        ).body
        assert isinstance(handler, ast.Try)
        handler.body = [node]
        return handler


def prepare_integration(folder: Path, bridge: Bridge) -> None:
    """Change addresses and Spark's session in the tests, and make their tables with Spark."""
    changes = {
        "http://localhost:8181": bridge.catalog_uri,
        "http://localhost:9000": bridge.s3_endpoint,
        "localhost:9000": bridge.s3_endpoint.partition("//")[2],
        'SparkSession.builder.remote("sc://localhost:15002").getOrCreate()': SESSION,
        # DuckLake has no type `fixed`: the column of the fixtures has the same bytes as binary.
        "pa.binary(16)": "pa.large_binary()",
        "FixedType(16)": "__import__('pyiceberg.types').types.BinaryType()",
        # A table of which version 1 was asked has 2.
        "assert tbl.format_version == ": "assert tbl.format_version >= ",
    }
    provision = folder / "dev" / "provision.py"
    for path in (*folder.glob("tests/**/*.py"), provision):
        text = path.read_text()
        for old, new in changes.items():
            text = text.replace(old, new)
        path.write_text(text)
    added = folder / "tests" / "integration" / "test_add_files.py"
    # Other programs' files are not uploaded through Polynya.
    text = added.read_text().replace("s3://warehouse/", f"{os.environ['LAKE_DATA_PATH']}/added/")
    added.write_text(re.sub(r"\btbl\.io\b", STORE, text))
    shutil.copy(Path(__file__).with_name("spark_session.py"), folder)
    text = re.sub(
        r'    "hive": load_catalog.*?\n    \),\n', "", provision.read_text(), flags=re.DOTALL
    )
    text = text.replace("(25)", "(16)")
    provision.write_text(ast.unparse(_Tolerant().visit(ast.parse(text))))
    # What is refused is missing afterwards; everything else goes on.
    run(folder, bridge, "dev.provision")


def show(report: Path) -> int:
    """Print how many tests pass, and the reasons of the others, the most frequent first."""
    cases = list(ElementTree.parse(report).iter("testcase"))
    reasons: Counter[str] = Counter()
    for case in cases:
        for failure in (*case.findall("failure"), *case.findall("error")):
            message = (failure.get("message") or "").partition("\n")[0]
            print(f"{case.get('name')}: {(failure.get('message') or '')[:1000]!r}")
            reasons[re.sub(r"[0-9a-f-]{8,}|'[^']*'|\d+|-[a-z]{8}|: [a-z_-]+$", "…", message)] += 1
    skipped = sum(case.find("skipped") is not None for case in cases)
    passed = len(cases) - skipped - reasons.total()
    print(f"{passed} of {len(cases) - skipped} pass; {skipped} are skipped")
    for reason, number in reasons.most_common():
        print(f"{number:4} {reason}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
