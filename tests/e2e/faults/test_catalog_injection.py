"""Text of the catalog that is no name and no type is never run as SQL, and never logged.

The attacker may update `ducklake_column` and write one inlined row, and may not read this machine.
"""

import io
import json

import boto3
import pytest
from botocore.exceptions import ClientError
from polynya.catalog.lakes import Lakes
from polynya_local.clients import pyiceberg
from polynya_local.processes.serving import REGION

from functions.object_lambda import app as object_lambda
from functions.rest_catalog import app as rest_catalog
from tests.support.servers.in_process import ALIAS, standing_in
from tests.support.servers.raw_http import send

LAKE = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 10);
USE lake;
CREATE TABLE st(i INTEGER, s STRUCT(a INTEGER, b VARCHAR));
INSERT INTO st VALUES (1, {'a': 1, 'b': 'x'}), (2, {'a': 2, 'b': NULL}), (3, NULL);
CREATE TABLE d(x VARCHAR);
INSERT INTO d VALUES ('a row of 77001');
"""

SECRET_TEXT = "not for readers"


@pytest.fixture
def served(lake):
    return lake.write("injection", LAKE)


def retype(lake, name: str, column_type: str) -> None:
    changed = lake.database.run(
        "UPDATE ducklake_column SET column_type = :type WHERE column_name = :name "
        "RETURNING column_id",
        type=column_type,
        name=name,
    )
    assert len(changed) == 1


def scan(stand_in, table: str):
    client = pyiceberg.open(stand_in.api_uri, "lake", stand_in.s3_uri)
    try:
        return client.rows("main", table)
    finally:
        client.close()


@pytest.mark.parametrize("child", ["a", "b"])
def test_the_type_of_a_hidden_field_is_not_run(child, served, moto, tmp_path):
    """The type reads a file into the row, and a second statement writes one."""
    secret, written = tmp_path / "secret.txt", tmp_path / "written.txt"
    secret.write_text(SECRET_TEXT)
    inside = f"(SELECT content FROM read_text('{secret}'))"
    column_type = (
        f"INTEGER) AS STRUCT(a VARCHAR, b VARCHAR))::VARCHAR) || {inside} AS s FROM part0; "
        f"COPY (SELECT 1) TO '{written}'; SELECT (((1"
    )
    retype(served, child, column_type)
    with standing_in(served, moto) as stand_in:
        rows = scan(stand_in, "st").to_pylist()
    assert not written.exists()
    assert SECRET_TEXT not in str(rows)
    other = "b" if child == "a" else "a"
    values = {"a": [1, 2], "b": ["x", None]}[other]
    # The values of the other field in DuckLake; the field of an unknown type is hidden.
    assert [row["s"] for row in rows] == [{other: values[0]}, {other: values[1]}, None]


@pytest.mark.parametrize("column_type", ["decimal(3,2)x", "decimal(٣,2)", "decimal(99,2)"])
def test_a_type_outside_the_grammar_is_hidden(column_type, served, moto):
    retype(served, "b", column_type)
    with standing_in(served, moto) as stand_in:
        assert scan(stand_in, "st").column("s").to_pylist() == [{"a": 1}, {"a": 2}, None]


def manifest_list(stand_in, table: str) -> str:
    """The key of the newest manifest list."""
    metadata = json.loads(
        send(stand_in.api_uri, "GET", f"/v1/lake/namespaces/main/tables/{table}").body
    )["metadata"]
    return metadata["snapshots"][-1]["manifest-list"].removeprefix(f"s3://{ALIAS}/")


@pytest.fixture
def log(caplog):
    """The output of all loggers. Powertools writes to the standard output of its import time."""
    stream = io.StringIO()
    before = [
        (handler, handler.setStream(stream))
        for handler in (
            rest_catalog.logger.registered_handler,
            object_lambda.logger.registered_handler,
        )
    ]
    yield lambda: stream.getvalue() + caplog.text
    for handler, old in before:
        handler.setStream(old)


def test_a_row_that_cannot_be_cast_is_refused_and_not_logged(served, moto, log):
    retype(served, "x", "date")
    with standing_in(served, moto) as stand_in, pytest.raises(ClientError) as failure:
        s3 = boto3.client("s3", endpoint_url=stand_in.s3_uri, region_name=REGION)
        s3.get_object(Bucket=ALIAS, Key=manifest_list(stand_in, "d"))
    error = failure.value.response["Error"]
    assert error["Code"] == "InvalidRequest"
    assert "main.d is not served at snapshot" in error["Message"]
    assert "its inlined rows cannot be read" in error["Message"]
    assert "77001" not in error["Message"] + log()


@pytest.mark.parametrize("function", ["rest", "files"])
def test_an_unexpected_error_is_logged_without_its_message(function, served, moto, log):
    """The message of a library about an invalid value may contain the value."""

    def fail(*args):
        raise ValueError("a row of 77001")

    with standing_in(served, moto) as stand_in, pytest.MonkeyPatch.context() as patch:
        key = manifest_list(stand_in, "d")
        patch.setattr(Lakes, "named", fail)
        url = stand_in.api_uri if function == "rest" else stand_in.s3_uri
        path = "/v1/config" if function == "rest" else f"/{ALIAS}/{key}"
        answer = send(url, "GET", path)
    said = answer.text + log()
    assert answer.status == 500
    assert "77001" not in said
    assert "ValueError" in said
    assert "test_catalog_injection.py" in said, "the log says where"
