"""Statistics files (Puffin) that clients set, as Trino does after INSERT and ANALYZE."""

from contextlib import closing

import pyarrow as pa
import pytest
import urllib3
from polynya.mapping.tables import SHOWN_MS
from pyiceberg.exceptions import BadRequestError
from pyiceberg.table.statistics import BlobMetadata, StatisticsFile

from tests.support.servers.in_process import bridge
from tests.support.writes.writable import EMPTY, client_of, judging, set_up_writes

DATA = pa.table({"id": pa.array([1, 2], pa.int64())})


@pytest.fixture(scope="module")
def served(lake, moto):
    one = set_up_writes(lake.write("statistics_files", EMPTY))
    with bridge(one, moto, writes=True) as served, closing(client_of(served)) as catalog:
        yield one, served, catalog


def file_of(table, name: str, snapshot_id: int | None = None) -> StatisticsFile:
    snapshot = table.snapshot_by_id(snapshot_id) if snapshot_id else table.current_snapshot()
    blob = BlobMetadata(
        type="apache-datasketches-theta-v1",
        snapshot_id=snapshot.snapshot_id,
        sequence_number=snapshot.sequence_number,
        fields=[1],
        properties={"ndv": "2"},
    )
    return StatisticsFile(
        snapshot_id=snapshot.snapshot_id,
        statistics_path=f"{table.properties['write.metadata.path']}/{name}.stats",
        file_size_in_bytes=400,
        file_footer_size_in_bytes=300,
        blob_metadata=[blob],
    )


def test_each_snapshot_has_its_statistics_until_they_are_removed(served, moto):
    one, _, catalog = served
    table = catalog.create_table("main.kept", DATA.schema)
    table.append(DATA)
    table.append(DATA)
    first, second = (snapshot.snapshot_id for snapshot in table.snapshots())

    def shown():
        return catalog.load_table("main.kept").metadata.statistics

    files = [file_of(table, "a", first), file_of(table, "b", second)]
    for file in files:
        with table.update_statistics() as update:
            update.set_statistics(file)
    assert table.metadata.statistics == shown() == files
    again = file_of(table, "c", first)
    with table.update_statistics() as update:
        update.set_statistics(again)
    assert shown() == [files[1], again]
    with table.update_statistics() as update:
        update.remove_statistics(second)
    assert shown() == [again]
    assert [snapshot.snapshot_id for snapshot in table.snapshots()] == [first, second]
    assert not [name for name in table.properties if "statistics" in name]
    version = table.snapshot_by_id(first).sequence_number
    with judging(one, moto) as judge:
        judge.query(f"CALL ducklake_expire_snapshots('lake', versions => [{version}])")
    assert shown() == []


def test_a_commit_that_creates_a_table_sets_statistics(served):
    _, _, catalog = served
    with catalog.create_table_transaction("main.created", DATA.schema) as transaction:
        transaction.append(DATA)
        file = file_of(transaction.table_metadata, "a")
        with transaction.update_statistics() as update:
            update.set_statistics(file)
    assert catalog.load_table("main.created").metadata.statistics == [file]


def test_statistics_of_partitions_are_returned(served):
    """PyIceberg has no function for it; Spark's procedure compute_partition_stats writes them."""
    _, at, catalog = served
    table = catalog.create_table("main.partitions", DATA.schema)
    table.append(DATA)
    file = {
        "snapshot-id": table.current_snapshot().snapshot_id,
        "statistics-path": f"{table.properties['write.metadata.path']}/p.parquet",
        "file-size-in-bytes": 400,
    }
    uri = f"{at.catalog_uri}/v1/lake/namespaces/main/tables/partitions"
    update = {"action": "set-partition-statistics", "partition-statistics": file}
    answer = urllib3.request("POST", uri, json={"requirements": [], "updates": [update]})
    assert answer.status == 200
    document = urllib3.request("GET", uri).json()["metadata"]
    assert document["partition-statistics"] == [file] and "statistics" not in document


@pytest.mark.versions("1.0")
def test_statistics_are_no_conflict_with_native_writers(served, moto):
    one, _, catalog = served
    table = catalog.create_table("main.both", DATA.schema)
    table.append(DATA)
    with judging(one, moto) as judge:
        judge.query("BEGIN")
        judge.query("INSERT INTO lake.main.both VALUES (3)")
        with table.update_statistics() as update:
            update.set_statistics(file_of(table, "a"))
        judge.query("COMMIT")
        assert judge.query("SELECT count(*) FROM lake.main.both") == [(3,)]


def test_statistics_end_before_the_template_deletes_their_file(served):
    one, _, catalog = served
    table = catalog.create_table("main.old", DATA.schema)
    table.append(DATA)
    with table.update_statistics() as update:
        update.set_statistics(file_of(table, "a"))
    for more, shown in ((60_000, 1), (-60_000, 0)):
        one.database.run(
            "UPDATE ducklake_tag SET value = regexp_replace(value, '\"at\": [0-9]+', "
            "'\"at\": ' || trunc(extract(epoch FROM now()) * 1000 + :more)) "
            "WHERE key = 'polynya.statistics' AND end_snapshot IS NULL",
            more=more - SHOWN_MS,
        )
        assert len(catalog.load_table("main.old").metadata.statistics) == shown


def test_a_file_elsewhere_is_refused(served):
    _, _, catalog = served
    table = catalog.create_table("main.elsewhere", DATA.schema)
    table.append(DATA)
    file = file_of(table, "a").model_copy(update={"statistics_path": "s3://other/a.stats"})
    with (
        pytest.raises(BadRequestError, match="the statistics file is not below"),
        table.update_statistics() as update,
    ):
        update.set_statistics(file)
