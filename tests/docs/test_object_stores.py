"""docs/object-stores.md as it stands, with SeaweedFS; ports are free ones."""

import doctest
import re
import shlex
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import boto3
import pytest
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.processes.serving import COMMAND, KEY_ID, SECRET, serving

from bench.support.lakes import BUCKET
from bench.support.s3 import WEED, s3

PAGE = (Path(__file__).parents[2] / "docs/object-stores.md").read_text()
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
BLOCKS = BLOCK.findall(PAGE)
STORE = "127.0.0.1:8333"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not WEED.exists(), reason="no SeaweedFS: make bench"),
]


def identity(name: str, *actions: str) -> dict[str, object]:
    """A user of SeaweedFS, with the rights that the table of the page names."""
    keys = {"accessKey": name, "secretKey": f"{name}-secret"}
    return {"name": name, "credentials": [keys], "actions": list(actions)}


IDENTITIES = (
    identity("writer", "Read:lake", "Write:lake", "List:lake"),
    identity("reader", "Read:lake"),
    identity("polynya", "Read:lake", "List:lake", "Write:lake/polynya/*"),
)


def words_of(shell: str) -> tuple[dict[str, str], list[str]]:
    """The variables that lines of a shell set, and the arguments of `polynya serve`."""
    export, serve = map(shlex.split, shell.strip().splitlines())
    assert export[0] == "export" and serve[:2] == ["polynya", "serve"]
    return dict(word.split("=", 1) for word in export[1:]), serve[2:]


def run_sql(text: str, store: str, catalog: str = "") -> list[tuple[object, ...]]:
    """The rows of the last statement; extensions are loaded from PyPI's packages."""
    assert STORE in text
    text = text.replace(STORE, store).replace("http://127.0.0.1:8181", catalog)
    text = re.sub(r"(INSTALL|LOAD) \w+;", "", text)
    with closing(connect((*LAKE, "httpfs", "avro", "iceberg"))) as con:
        for statement in con.extract_statements(text):
            result = con.execute(statement)
        return result.fetchall()


def run_python(text: str, names: dict[str, object], store: str, catalog: str) -> None:
    text = text.replace(STORE, store).replace("http://127.0.0.1:8181", catalog)
    runner = doctest.DocTestRunner()
    test = doctest.DocTestParser().get_doctest(text, names, "page", None, None)
    runner.run(test, clear_globs=False)
    names.update(test.globs)
    assert runner.summarize(verbose=False).failed == 0


def test_the_page_does_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kinds = [kind for kind, _ in BLOCKS]
    # tests/e2e/access/test_store_sts.py has the last two.
    assert kinds == ["sql", "", "python", "", "python", "sql", "", "json"]
    write, serve, through, materialize, direct, sql, *_ = (text for _, text in BLOCKS)
    names: dict[str, object] = {}
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    assert BUCKET != "lake"
    with s3(*IDENTITIES) as endpoint:
        store = urlsplit(endpoint).netloc
        boto3.client("s3", endpoint_url=endpoint).create_bucket(Bucket="lake")
        run_sql(write, store)
        for shell, python in ((serve, through), (materialize, direct)):
            settings, [address, *options] = words_of(shell)
            delivery = "materialize" if "materialize" in options else "object-lambda"
            assert options[-1] == f"http://{STORE}"
            with serving(
                address, endpoint, delivery=delivery, settings=settings, command=COMMAND
            ) as bridge:
                catalog = bridge.catalog_uri.rstrip("/")
                run_python(python, names, store, catalog)
                if python is direct:
                    assert run_sql(sql, store, catalog) == [(666,)]
