"""With `materialize` and COPY_DATA_FILES, S3 copies the data files that are changed for clients."""

import io
from contextlib import closing
from urllib.parse import urlsplit

import boto3
import pyarrow.parquet as pq
import pytest
import requests
from polynya.storage import copies
from polynya_local.clients import native, pyiceberg
from polynya_local.processes.serving import serving

from tests.support.servers.in_process import bridge

MIB = 1024 * 1024
SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CALL lake.set_option('parquet_compression', 'uncompressed');
CREATE TABLE large(i BIGINT, s VARCHAR);
INSERT INTO large SELECT i, hash(i) || '-' || hash(i + 1) || '-' || hash(i + 2)
  FROM range(80000) AS r(i);
INSERT INTO large VALUES (-1, 'small file');
CREATE TABLE plain(i INTEGER);
INSERT INTO plain VALUES (1), (2);
ALTER TABLE large ADD COLUMN country VARCHAR DEFAULT 'DE';
INSERT INTO large VALUES (-2, 'new', 'FR');
"""
SETTINGS = {"CLIENTS": "spark", "COPY_DATA_FILES": "yes"}
ONE_VALUE = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CALL lake.set_option('parquet_compression', 'uncompressed');
"""
"""Of tables with one value, whose length determines that of the file."""


@pytest.fixture(scope="module")
def one(lake):
    return lake.write("copied", SCRIPT)


@pytest.fixture(scope="module")
def served(one, moto):
    with bridge(one, moto, delivery="materialize", settings=SETTINGS) as found:
        yield found


@pytest.fixture(scope="module")
def s3(moto):
    return boto3.client("s3", endpoint_url=moto)


def opened(served, s3_endpoint: str):
    return closing(pyiceberg.open(served.catalog_uri, served.warehouse, s3_endpoint))


def place(location: str) -> dict[str, str]:
    parts = urlsplit(location)
    return {"Bucket": parts.netloc, "Key": parts.path.lstrip("/")}


def data_files(client, table: str) -> dict[str, int]:
    """The locations of the data files of a table, and their sizes, oldest first."""
    tasks = client._catalog.load_table(f"main.{table}").scan().plan_files()
    files = [task.file for task in tasks]
    files.sort(key=lambda file: file.file_path)
    return {file.file_path: file.file_size_in_bytes for file in files}


def copied_objects(s3, one) -> dict[str, object]:
    """When each copy was made, by its key."""
    bucket = place(one.data_path)["Bucket"]
    uuids = {uuid for (uuid,) in one.database.run("SELECT table_uuid::text FROM ducklake_table")}
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix="polynya/")
    return {
        found["Key"]: found["LastModified"]
        for page in pages
        for found in page.get("Contents", ())
        if found["Key"].split("/")[1] in uuids and "/data-file-" in found["Key"]
    }


def test_clients_read_copies_of_the_files_that_lack_the_default(served, one, moto, s3):
    with opened(served, moto) as client, closing(native.open(one, moto)) as truth:
        expected = truth.rows("main", "large")
        assert (
            client.rows("main", "large")
            .cast(expected.schema)
            .sort_by("i")
            .equals(expected.sort_by("i"))
        )
        shown = data_files(client, "large")
    copied = {location: size for location, size in shown.items() if "/data-file-" in location}
    assert len(shown) == 3 and len(copied) == 2
    assert {place(location)["Key"] for location in copied} == copied_objects(s3, one).keys()
    own = {
        path: s3.get_object(**place(f"{one.data_path.rstrip('/')}/main/large/{path}"))[
            "Body"
        ].read()
        for (path,) in one.database.run(
            "SELECT f.path FROM ducklake_data_file AS f JOIN ducklake_table AS t USING (table_id) "
            "WHERE t.table_name = 'large' ORDER BY f.begin_snapshot LIMIT 2"
        )
    }
    assert sorted(len(body) > copies.SMALLEST_PART for body in own.values()) == [False, True]
    begins = {
        body[: len(body) - int.from_bytes(body[-8:-4], "little") - 8] for body in own.values()
    }
    for location, size in copied.items():
        body = s3.get_object(**place(location))["Body"].read()
        assert len(body) == size
        [begin] = [begin for begin in begins if body.startswith(begin)]
        begins.remove(begin)
        assert set(pq.read_table(io.BytesIO(body))["country"].to_pylist()) == {"DE"}


def test_nothing_is_copied_again(served, one, moto, s3):
    with opened(served, moto) as client:
        data_files(client, "large")
        before = copied_objects(s3, one)
        data_files(client, "large")
        data_files(client, "plain")
    assert before and copied_objects(s3, one) == before


@pytest.mark.slow
def test_a_warehouse_for_some_clients_has_copies_of_its_own(served, moto, s3):
    uri = served.catalog_uri
    with (
        closing(pyiceberg.open(uri, "lake+daft", moto)) as of_daft,
        closing(pyiceberg.open(uri, "lake+none", moto)) as of_nobody,
    ):
        copied = {n: size for n, size in data_files(of_daft, "large").items() if "-daft-" in n}
        own = data_files(of_nobody, "large")
        assert of_daft.rows("main", "large").num_rows == of_nobody.rows("main", "large").num_rows
    assert len(copied) == 2 and not any("/data-file-" in location for location in own)
    for location, size in copied.items():
        assert s3.head_object(**place(location))["ContentLength"] == size


def test_without_the_setting_files_stay_as_they_are(lake, moto, s3):
    plain = lake.write("not_copied", SCRIPT)
    # By name: the settings of the bridge around this one are in the environment.
    settings = {"CLIENTS": "all", "COPY_DATA_FILES": "no"}
    with bridge(plain, moto, delivery="materialize", settings=settings) as served:
        with opened(served, moto) as client:
            assert not any("/data-file-" in location for location in data_files(client, "large"))
        refused = requests.get(
            f"{served.catalog_uri}/v1/lake.spark/namespaces/main/tables/large", timeout=60
        )
    assert refused.status_code == 400
    assert "COPY_DATA_FILES" in refused.json()["error"]["message"]
    assert copied_objects(s3, plain) == {}


def tables_of(lengths: list[int]) -> str:
    """A script with a table for each length of its value."""
    sql = "".join(
        f"""
CREATE TABLE t{number}(s VARCHAR);
INSERT INTO t{number} SELECT repeat('x', {length});
ALTER TABLE t{number} ADD COLUMN country VARCHAR DEFAULT 'DE';"""
        for number, length in enumerate(lengths)
    )
    return ONE_VALUE + sql


def starts(lake) -> list[int]:
    """Where the footer of each file begins."""
    rows = lake.database.run(
        "SELECT file_size_bytes - footer_size - 8 FROM ducklake_data_file ORDER BY data_file_id"
    )
    return [start for (start,) in rows]


@pytest.mark.slow
def test_files_around_the_smallest_part(lake, moto, s3, monkeypatch):
    """Below it a file is put whole; above it S3 copies one part, or several of a large file."""
    monkeypatch.setattr(copies, "PART", 2 * copies.SMALLEST_PART)
    length = 5 * MIB
    [start] = starts(lake.write("one_value", tables_of([length])))
    targets = [copies.SMALLEST_PART + more for more in (-1, 0, 1, 7 * MIB)]
    one = lake.write("four_values", tables_of([length + target - start for target in targets]))
    assert starts(one) == targets
    parts = {}
    with (
        bridge(one, moto, delivery="materialize", settings=SETTINGS) as served,
        opened(served, moto) as client,
        closing(native.open(one, moto)) as truth,
    ):
        for number, target in enumerate(targets):
            name = f"t{number}"
            assert client.rows("main", name).to_pylist() == truth.rows("main", name).to_pylist()
            [location] = data_files(client, name)
            etag = s3.head_object(**place(location))["ETag"].strip('"')
            # Of an object that was uploaded in parts it ends with their number.
            parts[target] = int(etag.partition("-")[2] or 0)
    assert list(parts.values()) == [0, 2, 2, 3]


@pytest.mark.slow
def test_a_plan_names_copies_that_are_there(lake, moto, s3):
    """Also if the table was not loaded."""
    one = lake.write("planned_copies", SCRIPT)
    with bridge(one, moto, delivery="materialize", settings=SETTINGS) as served:
        uri = f"{served.catalog_uri}/v1/lake/namespaces/main/tables/large/plan"
        answer = requests.post(uri, json={}, timeout=60)
    files = [task["data-file"] for task in answer.json()["file-scan-tasks"]]
    copied = [file for file in files if "/data-file-" in file["file-path"]]
    assert len(copied) == 2
    for file in copied:
        head = s3.head_object(**place(file["file-path"]))
        assert head["ContentLength"] == file["file-size-in-bytes"]


@pytest.mark.slow
def test_other_files_are_read_if_one_is_gone(lake, moto, s3):
    one = lake.write("gone_copies", SCRIPT)
    [(path,)] = one.database.run(
        "SELECT f.path FROM ducklake_data_file AS f JOIN ducklake_table AS t USING (table_id) "
        "WHERE t.table_name = 'large' AND f.record_count = 1 ORDER BY f.data_file_id LIMIT 1"
    )
    s3.delete_object(**place(f"{one.data_path.rstrip('/')}/main/large/{path}"))
    settings, options = {"CLIENTS": "spark"}, ("--copy-data-files",)
    with (
        serving(one.database.url, moto, settings=settings, options=options) as served,
        opened(served, served.s3_endpoint) as client,
    ):
        sizes = data_files(client, "large")
        assert len(copied_objects(s3, one)) == 1
        assert len([location for location in sizes if "/data-file-" in location]) == 2
        table = client._catalog.load_table("main.large")
        assert table.scan("i >= 0").to_arrow().num_rows == 80000
        with pytest.raises(FileNotFoundError):
            table.scan("i = -1").to_arrow()
