"""Data files with more columns for clients, through both endpoints of S3: every range is right."""

import io
from contextlib import closing
from urllib.parse import urlsplit

import boto3
import pyarrow.parquet as pq
import pytest
import requests
from botocore.config import Config
from botocore.exceptions import ClientError
from polynya.virtual_files.adapted_data_files import PIECE
from polynya_local.clients import native, pyiceberg
from polynya_local.processes.serving import serving

from tests.support.servers.in_process import bridge

SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE large(i BIGINT, s VARCHAR);
INSERT INTO large SELECT i, hash(i) || '-' || hash(i + 1) || '-' || hash(i + 2)
  FROM range(700000) AS r(i);
CREATE TABLE small(i INTEGER);
INSERT INTO small VALUES (1), (2);
ALTER TABLE large ADD COLUMN country VARCHAR DEFAULT 'DE';
ALTER TABLE small ADD COLUMN country VARCHAR DEFAULT 'DE';
INSERT INTO small VALUES (3, 'FR');
"""
HOSTS = {"functions": bridge, "command": serving}


@pytest.fixture(scope="module")
def one(lake):
    return lake.write("longer_files", SCRIPT)


@pytest.fixture(scope="module", params=HOSTS)
def served(request, one, moto):
    where = one if request.param == "functions" else one.database.url
    settings = {"CLIENTS": "spark"}
    with HOSTS[request.param](where, moto, delivery="object-lambda", settings=settings) as found:
        yield found


@pytest.fixture(scope="module")
def s3(served):
    config = Config(s3={"addressing_style": "path"}, retries={"total_max_attempts": 1})
    return boto3.client("s3", endpoint_url=served.s3_endpoint, config=config)


@pytest.fixture(scope="module")
def catalog(served):
    where = (served.catalog_uri, served.warehouse, served.s3_endpoint)
    with closing(pyiceberg.open(*where)) as client:
        yield client._catalog


def files(catalog, table: str) -> dict[str, int]:
    """The locations of the data files of a table, and their sizes, oldest first."""
    tasks = catalog.load_table(f"main.{table}").scan().plan_files()
    return {task.file.file_path: task.file.file_size_in_bytes for task in tasks}


def place(location: str) -> dict[str, str]:
    parts = urlsplit(location)
    return {"Bucket": parts.netloc, "Key": parts.path.lstrip("/")}


@pytest.fixture(scope="module")
def whole(catalog, s3) -> tuple[str, bytes]:
    """The large file, with its location."""
    [(location, size)] = files(catalog, "large").items()
    body = s3.get_object(**place(location))["Body"].read()
    assert len(body) == size > 2 * PIECE
    return location, body


def test_the_lake_s_own_bytes_come_first(whole, one, moto):
    [(path,)] = one.database.run(
        "SELECT f.path FROM ducklake_data_file AS f JOIN ducklake_table AS t USING (table_id) "
        "WHERE t.table_name = 'large'"
    )
    own = (
        boto3.client("s3", endpoint_url=moto)
        .get_object(**place(f"{one.data_path.rstrip('/')}/main/large/{path}"))["Body"]
        .read()
    )
    start = len(own) - int.from_bytes(own[-8:-4], "little") - 8
    _, body = whole
    assert body[:start] == own[:start] and body[-4:] == b"PAR1" and body != own


def test_the_file_has_the_rows_of_ducklake_and_the_default(whole, one, moto):
    read = pq.read_table(io.BytesIO(whole[1]))
    with closing(native.open(one, moto)) as truth:
        rows = truth.rows("main", "large")
    assert read.cast(rows.schema).sort_by("i").equals(rows.sort_by("i"))
    assert set(read["country"].to_pylist()) == {"DE"}


def test_every_range_is_a_part_of_the_whole(whole, s3):
    location, body = whole
    size = len(body)
    start = body.rindex(b"PAR1", 0, size - 4) if body.count(b"PAR1") > 2 else size // 2
    ranges = [(0, 0), (0, 3), (size - 1, size - 1), (size - 8, size + 100), (1, size - 2)]
    ranges += [(start - 5, start + 5), (PIECE - 1, PIECE), (5, 5 + PIECE), (5, 6 + 2 * PIECE)]
    ranges += [(size - 70_000, size - 1), (size - 70_000, size - 60_000)]
    for first, last in ranges:
        answer = s3.get_object(**place(location), Range=f"bytes={first}-{last}")
        expected = body[first : last + 1]
        assert answer["Body"].read() == expected, (first, last)
        assert answer["ContentRange"] == f"bytes {first}-{first + len(expected) - 1}/{size}"
        assert answer["ContentLength"] == len(expected)
    answer = s3.get_object(**place(location), Range="bytes=-100")
    assert answer["Body"].read() == body[-100:]
    with pytest.raises(ClientError, match="InvalidRange"):
        s3.get_object(**place(location), Range=f"bytes={size}-{size + 1}")


def test_head_and_conditions(whole, s3):
    location, body = whole
    head = s3.head_object(**place(location))
    assert head["ContentLength"] == len(body)
    answer = s3.get_object(**place(location), IfMatch=head["ETag"], Range="bytes=0-3")
    assert answer["Body"].read() == b"PAR1" and answer["ETag"] == head["ETag"]
    with pytest.raises(ClientError, match="PreconditionFailed"):
        s3.get_object(**place(location), IfMatch='"other"')


def test_only_files_that_need_it_are_longer(catalog, one, s3):
    shown = files(catalog, "small")
    own = dict(
        one.database.run(
            "SELECT f.path, f.file_size_bytes FROM ducklake_data_file AS f "
            "JOIN ducklake_table AS t USING (table_id) WHERE t.table_name = 'small'"
        )
    )
    same = [location for location in shown if location.rpartition("/")[2] in own]
    [longer] = shown.keys() - set(same)
    assert len(same) == 1 and "/data-file-" in longer
    names = pq.read_table(io.BytesIO(s3.get_object(**place(longer))["Body"].read())).column_names
    assert names == ["i", "country"]


@pytest.mark.parametrize(
    ("old", "new"),
    [("data-file-", "data-file-1"), ("-6-", "-5-"), (".parquet", "x.parquet")],
    ids=["size", "snapshot", "fingerprint"],
)
def test_no_other_name_gives_a_file(catalog, s3, old, new):
    longer = next(location for location in files(catalog, "small") if "/data-file-" in location)
    where = place(longer)
    with pytest.raises(ClientError, match=r"NoSuchKey|404"):
        s3.get_object(**where | {"Key": where["Key"].replace(old, new, 1)})


WRONG_FOOTER = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE t(i INTEGER);
INSERT INTO t VALUES (1), (2);
ALTER TABLE t ADD COLUMN country VARCHAR DEFAULT '{LONG}';
""".replace("{LONG}", "x" * 300)


@pytest.mark.parametrize("defaults", ["serve", "refuse"])
def test_a_footer_that_is_longer_than_the_catalog_says(lake, moto, defaults):
    """The file has no room for the column: it comes as it is, or not at all."""
    one = lake.write("wrong_footer", WRONG_FOOTER)
    one.database.run("UPDATE ducklake_data_file SET footer_size = 1")
    settings = {"CLIENTS": "all", "COLUMN_DEFAULTS": defaults}
    with bridge(one, moto, delivery="object-lambda", settings=settings) as served:
        with closing(
            pyiceberg.open(served.catalog_uri, served.warehouse, served.s3_endpoint)
        ) as client:
            [location] = files(client._catalog, "t")
        s3 = boto3.client("s3", endpoint_url=served.s3_endpoint)
        if defaults == "refuse":
            with pytest.raises(ClientError, match="lacks a column that has a default"):
                s3.get_object(**place(location))
        else:
            body = s3.get_object(**place(location))["Body"].read()
            assert pq.read_table(io.BytesIO(body)).to_pydict() == {"i": [1, 2]}


@pytest.mark.parametrize(("clients", "is_misread"), [("all", False), ("none", True)])
def test_the_page_says_who_misreads_the_default(one, moto, clients, is_misread):
    settings = {"CLIENTS": clients}
    with serving(one.database.url, moto, delivery="object-lambda", settings=settings) as bridge:
        page = requests.get(f"{bridge.catalog_uri}/tables/main/large/read", timeout=60).text
    assert ('class="status wrong-rows"' in page) is is_misread
