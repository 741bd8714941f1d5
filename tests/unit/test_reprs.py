"""No repr contains a secret: reprs get into logs and tracebacks."""

import ast
import re
from functools import partial
from pathlib import Path

import pytest
from polynya.catalog.reader import Catalog, LoadedTable
from polynya.ducklake.connection.database import Database
from polynya.runtime.settings import Config
from polynya_local.clients.native import Lake
from polynya_local.messages import Request, Response
from polynya_local.processes import postgres
from polynya_local.s3.requests import S3Address
from polynya_pipeline.ingest.job import _Job
from polynya_pipeline.publish.table import SharedSnapshot
from polynya_pipeline.publish.tasks import Task
from polynya_pipeline.verify.job import _Verification
from polynya_pipeline.verify.statistics import FileRange

ROOT = Path(__file__).parents[2]
SOURCES = [
    path
    for folder in ("layers/bridge/polynya", "functions", "local", "pipeline")
    for path in (ROOT / folder).rglob("*.py")
]

SECRET = "s3cret"
URL = f"postgresql://u:{SECRET}@h/d"
CONFIG = Config.from_env(
    {
        "DATABASE_URL": URL,
        "DATABASE_CREDENTIALS": f"secret:{SECRET}",
        "VIRTUAL_BUCKET": "b",
    }
)
DATABASE = postgres.Database("h", 5432, "u", "d", SECRET)
REQUEST = Request("GET", "/b/k", f"X-Amz-Signature={SECRET}", (("Host", SECRET),), None)

INSTANCES = [
    CONFIG,
    Catalog(CONFIG, Database(URL, "public"), None),
    LoadedTable(SECRET.encode(), None),
    DATABASE,
    Lake("lake", DATABASE, "s3://b/"),
    REQUEST,
    Response(200, (), SECRET.encode()),
    S3Address.from_request(REQUEST),
    SharedSnapshot(URL, "public"),
    Task(SharedSnapshot(URL, "public"), ()),
    FileRange(URL, "public", 1, 0, 9, {}),
    _Verification(None, (URL, "public"), None, None, [], None, None, None),
    _Job(None, partial(print, URL), None, False, False, False, None),
]


@pytest.mark.parametrize("instance", INSTANCES, ids=lambda instance: type(instance).__name__)
def test_a_repr_contains_no_secret(instance):
    assert SECRET not in repr(instance)


OF_SECRETS = re.compile(r"(\w+_)?(database|url|dsn|password|secret|credentials)")


def test_a_text_field_with_the_name_of_a_secret_is_not_in_the_repr():
    """New dataclasses need no instance above."""
    fields = [
        (f"{path.relative_to(ROOT)}: {node.name}.{one.target.id}", one)
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.ClassDef)
        and any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)
        for one in node.body
        if isinstance(one, ast.AnnAssign) and re.search(r"\bstr\b", ast.unparse(one.annotation))
        if OF_SECRETS.fullmatch(one.target.id)
    ]
    assert fields
    shown = [name for name, one in fields if "repr=False" not in ast.unparse(one.value or one)]
    assert shown == []
