"""Clients read DuckLake's rows from an exported table without the bridge, at every snapshot."""

import json
import subprocess
import sys
from contextlib import closing

import boto3
import pyarrow.parquet as pq
import pytest
from polynya.runtime.namespaces import dotted
from polynya_local.clients import native as natives
from polynya_local.clients.canonical import difference, from_arrow
from polynya_local.clients.pyiceberg import s3_properties
from polynya_pipeline.common.errors import BadInput, Conflict, Unavailable
from polynya_pipeline.common.storage import clients
from polynya_pipeline.publish import destinations
from polynya_pipeline.publish.job import publish
from polynya_pipeline.publish.steps import ExportPointer
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.table import StaticTable

LAKES = ["17"]
LAKES += [pytest.param(number, marks=pytest.mark.slow) for number in ("09", "14", "22", "36")]


@pytest.fixture(autouse=True)
def aws(moto, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_S3", moto)
    clients.cache_clear()
    yield
    clients.cache_clear()


def exported(lake, place, **options):
    schema = getattr(lake, "metadata_schema", "public")
    options = {"environ": {}, **options}
    return publish(database=lake.database.url, metadata_schema=schema, export=str(place), **options)


def hidden(table) -> list[str]:
    return json.loads(table.properties.get("polynya.hidden-columns", "[]"))


DUCKDB = """
import sys
from polynya_local.clients.duckdb import ICEBERG, connect
con = connect(ICEBERG, sys.argv[1])
con.execute("SET arrow_lossless_conversion = true")
rows = f"SELECT {sys.argv[4]} FROM iceberg_scan('{sys.argv[2]}')"
con.execute(f"COPY ({rows}) TO '{sys.argv[3]}' (FORMAT parquet)")
"""


def duckdb_rows(moto: str, location: str, tmp_path, columns: str = "*"):
    """Reads the table in another process, because DuckDB can abort."""
    target = str(tmp_path / "duckdb.parquet")
    command = [sys.executable, "-c", DUCKDB, moto, location, target, columns]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return pq.read_table(target)


@pytest.mark.parametrize("number", LAKES)
def test_clients_read_an_exported_table_without_the_bridge(number, lake, moto, tmp_path):
    lake = lake(number)
    done = exported(lake, tmp_path / "out")
    with closing(natives.open(lake, moto)) as native:
        for table in native.tables():
            name = dotted(table.namespace, table.name)
            [location] = [one.metadata_location for one in done.tables if one.name == name]
            columns = native.columns(table.namespace, table.name)
            alone = StaticTable.from_metadata(location, s3_properties(moto))
            truth = native.canonical(table.namespace, table.name, hidden=hidden(alone))
            readers = {
                "PyIceberg": alone.scan().to_arrow(),
                "DuckDB": duckdb_rows(moto, location, tmp_path),
            }
            for reader, rows in readers.items():
                found = difference(truth, from_arrow(rows, columns, hidden(alone)))
                assert found == [], (reader, name)
            for snapshot in alone.metadata.snapshots:
                at = snapshot.snapshot_id
                truth = native.canonical(table.namespace, table.name, at, hidden(alone))
                rows = alone.scan(snapshot_id=at).to_arrow()
                then = native.columns(table.namespace, table.name, at)
                assert difference(truth, from_arrow(rows, then, hidden(alone))) == [], (name, at)


@pytest.fixture
def rows_lake(folder_lake):
    """A lake with files, inlined rows and inlined deletes."""
    folder_lake.sql("CREATE TABLE t(i INTEGER, s VARCHAR)")
    folder_lake.sql("INSERT INTO t SELECT i, 'v' || i FROM range(1000) r(i)")
    folder_lake.sql("INSERT INTO t VALUES (-1, 'inlined')")
    folder_lake.sql("DELETE FROM t WHERE i % 100 = 7")
    return folder_lake


def rows_in(place) -> list[tuple]:
    """The rows that PyIceberg reads with the version hint."""
    scan = StaticTable.from_metadata(str(place)).scan()
    return sorted(zip(*scan.to_arrow().to_pydict().values(), strict=True))


@pytest.mark.slow
@pytest.mark.spark
def test_spark_reads_an_export_by_its_folder(rows_lake, spark, tmp_path):
    exported(rows_lake, tmp_path / "out", spark=spark)
    rows = spark.read.format("iceberg").load(str(tmp_path / "out" / "main" / "t")).collect()
    assert sorted(map(tuple, rows)) == sorted(rows_lake.sql("FROM t")) and len(rows) == 991


def test_a_catalog_registers_an_export(rows_lake, tmp_path):
    [table] = exported(rows_lake, tmp_path / "out").tables
    with closing(SqlCatalog("registered", uri="sqlite:///:memory:")) as catalog:
        catalog.create_namespace("x")
        registered = catalog.register_table("x.t", table.metadata_location)
        assert registered.scan().to_arrow().num_rows == 991
        # It is an ordinary table: DuckLake does not see rows that are written to it.
        registered.append(registered.scan(limit=3).to_arrow())
        assert catalog.load_table("x.t").scan().to_arrow().num_rows == 994
    assert len(rows_lake.sql("FROM t")) == 991


def test_an_export_can_be_in_s3(rows_lake, moto, tmp_path):
    boto3.client("s3").create_bucket(Bucket="exports")
    done = exported(rows_lake, "s3://exports/some where/")
    [table] = done.tables
    assert table.metadata_location == "s3://exports/some where/main/t/metadata/v1.metadata.json"
    read = StaticTable.from_metadata(table.metadata_location, s3_properties(moto))
    assert read.location() == "s3://exports/some where/main/t"
    assert read.scan().to_arrow().num_rows == 991
    assert duckdb_rows(moto, table.metadata_location, tmp_path).num_rows == 991
    assert exported(rows_lake, "s3://exports/some where").tables[0].files == 0


def test_each_run_adds_a_version_if_the_table_has_changed(rows_lake, tmp_path):
    place = tmp_path / "out" / "main" / "t"
    assert exported(rows_lake, tmp_path / "out", snapshots=1).tables[0].is_new
    assert len(StaticTable.from_metadata(str(place)).metadata.snapshots) == 1
    [again] = exported(rows_lake, tmp_path / "out", snapshots=1).tables
    assert not again.is_new and again.metadata_location.endswith("v1.metadata.json")
    before = rows_in(place)
    rows_lake.sql("INSERT INTO t VALUES (5000, 'new')")
    [more] = exported(rows_lake, tmp_path / "out", snapshots=1).tables
    assert more.is_new and more.metadata_location.endswith("v2.metadata.json")
    assert rows_in(place) == sorted([*before, (5000, "new")])
    # A registered version is unchanged.
    old = StaticTable.from_metadata(str(place / "metadata" / "v1.metadata.json"))
    assert old.scan().to_arrow().num_rows == len(before)


def test_an_interrupted_run_leaves_the_previous_export(rows_lake, tmp_path, monkeypatch):
    place = tmp_path / "out" / "main" / "t"
    exported(rows_lake, tmp_path / "out")
    before = rows_in(place)
    rows_lake.sql("INSERT INTO t SELECT i, 'more' FROM range(2000, 2100) r(i)")
    rows_lake.sql("DELETE FROM t WHERE i = 2050")
    after = sorted(rows_lake.sql("FROM t"))
    put, create = destinations.Folder.put, destinations.storage.create
    steps = 0
    while True:
        left = [steps]

        def cut(inner, left=left):
            def write(*args):
                if not left[0]:
                    raise Unavailable("the plug is pulled")
                left[0] -= 1
                return inner(*args)

            return write

        with monkeypatch.context() as patch:
            patch.setattr(destinations.Folder, "put", cut(put))
            patch.setattr(destinations.storage, "create", cut(create))
            try:
                exported(rows_lake, tmp_path / "out")
                break
            except Unavailable:
                assert rows_in(place) == before
        steps += 1
        assert steps < 100
    assert steps > 5 and rows_in(place) == after


def test_a_slower_run_does_not_move_the_pointer_back(rows_lake, tmp_path, monkeypatch):
    place = tmp_path / "out" / "main" / "t"
    exported(rows_lake, tmp_path / "out")
    move = ExportPointer.move

    def overtaken(self, document):
        monkeypatch.setattr(ExportPointer, "move", move)
        rows_lake.sql("INSERT INTO t VALUES (7000, 'newest')")
        exported(rows_lake, tmp_path / "out")
        return move(self, document)

    rows_lake.sql("INSERT INTO t VALUES (6000, 'newer')")
    monkeypatch.setattr(ExportPointer, "move", overtaken)
    [table] = exported(rows_lake, tmp_path / "out").tables
    assert not table.is_new
    assert rows_in(place) == sorted(rows_lake.sql("FROM t"))


# (place of the export, data path of the lake, whether the place is refused)
PLACES = [
    ("s3://lake/l1", "s3://lake/l1/", True),
    ("s3://lake/l1/x", "s3://lake/l1/", True),
    ("s3a://lake/l1/x", "s3://lake/l1/", True),
    ("s3://lake/l1/x", "s3n://lake/l1", True),
    ("s3://lake//l1/x", "s3://lake/l1/", True),
    ("s3://lake/l1/x", "s3://lake//l1//", True),
    ("s3://lake/./l1/x", "s3://lake/l1/", True),
    ("s3://lake/l2/../l1/x", "s3://lake/l1/", True),
    ("s3://lake", "s3://lake/l1/", True),
    ("s3a://lake/a", "s3://lake/a/b/l1/", True),
    ("s3://lake/x", "s3://lake/", True),
    ("s3://lake/l10", "s3://lake/l1/", False),
    ("s3://lake/l", "s3://lake/l1/", False),
    ("s3://lake/exports/l1", "s3://lake/l1/", False),
    ("s3://other/l1", "s3://lake/l1/", False),
    ("s3://lake/L1", "s3://lake/l1/", False),
    ("s3://lake/l1", "gs://lake/l1/", False),
    ("{}/data/x", "{}/data/", True),
    ("{}//data/./x", "{}/data", True),
    ("{}/data/x", "file://{}/data/", True),
    ("{}/link/x", "{}/data/", True),
    ("{}/data/x", "{}/link/", True),
    ("{}", "{}/data/", True),
    ("/", "{}/data/", True),
    ("{}/data2", "{}/data/", False),
    ("{}/x", "s3://lake/l1/", False),
    ("{}/x", "", False),
]


@pytest.mark.parametrize(("place", "data_path", "is_refused"), PLACES)
def test_no_spelling_of_a_place_in_or_above_the_data_is_accepted(
    place, data_path, is_refused, tmp_path
):
    (tmp_path / "data").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "data")
    where = destinations.directory(place.format(tmp_path)), data_path.format(tmp_path)
    if is_refused:
        with pytest.raises(BadInput, match="DuckLake deletes files there"):
            destinations.check_directory(*where)
    else:
        destinations.check_directory(*where)


def test_forbidden_places_of_an_export(rows_lake, open_lake, tmp_path):
    with pytest.raises(BadInput, match="DuckLake deletes files there"):
        exported(rows_lake, f"{rows_lake.data_path}/export")
    with pytest.raises(BadInput, match="contains the lake's own data path"):
        exported(rows_lake, tmp_path)
    with pytest.raises(BadInput, match="must be a folder or s3://bucket/prefix"):
        exported(rows_lake, "gs://bucket/x")
    (tmp_path / "file").write_text("")
    with pytest.raises(Unavailable, match="cannot be written"):
        exported(rows_lake, tmp_path / "file")
    with pytest.raises(Unavailable, match="NoSuchBucket"):
        exported(rows_lake, "s3://no-such-bucket-at-all/x")
    exported(rows_lake, tmp_path / "out")
    other = open_lake(f"{tmp_path}/other/")
    other.sql("CREATE TABLE t(i INTEGER)")
    with pytest.raises((BadInput, Conflict), match="holds another table"):
        exported(other, tmp_path / "out")
