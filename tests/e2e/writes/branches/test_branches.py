"""Branches and staged snapshots of PyIceberg, beside the same calls in PyIceberg's own catalog.

Native DuckLake sees nothing of them until main is set to one.
"""

import json
from collections import Counter

import boto3
import pyarrow as pa
import pytest
import urllib3
from polynya.mapping.references import SHOWN_MS
from polynya.storage.s3_locations import bucket_and_key
from pyiceberg.catalog.sql import SqlCatalog
from pyiceberg.exceptions import BadRequestError, CommitFailedException

from tests.support.writes.everywhere import everywhere
from tests.support.writes.writable import judging

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "s": ["a", "b", "c"]})
MORE = pa.table({"id": pa.array([10, 11], pa.int64()), "s": ["x", None]})
OTHER = pa.table({"id": pa.array([2], pa.int64()), "s": ["other"]})


@pytest.fixture(scope="module")
def lake_of(lake, moto):
    with everywhere(lake, moto, "branches") as one:
        yield one


class Pair:
    """A table of the lake, and the same one in PyIceberg's own catalog."""

    def __init__(self, lake_of, folder, start=ROWS):
        self.at, self.name = lake_of, lake_of.new("t")
        uri = f"sqlite:///{folder}/catalog.db"
        self.oracle = SqlCatalog("oracle", uri=uri, warehouse=f"file://{folder}")
        self.oracle.create_namespace("main")
        self.tables = [
            catalog.create_table(f"main.{self.name}", ROWS.schema)
            for catalog in (lake_of.catalog, self.oracle)
        ]
        if start is not None:
            self.changes(lambda table: table.append(start))

    @property
    def table(self):
        return self.tables[0].refresh()

    def changes(self, call):
        """Make a change in both; in the lake it is one snapshot."""
        before = self.at.newest()
        with self.at.commits():
            call(self.table)
        call(self.tables[1].refresh())
        assert self.at.newest() == before + 1
        self.check()

    def both(self, sql, rows):
        """Append rows natively, and in the oracle."""
        self.at.native(sql.format(self.name))
        self.tables[1].append(rows)

    def check(self):
        """Compare the rows of each reference in both catalogs, and those of main natively."""
        ours, oracle = (table.refresh() for table in self.tables)
        names = [
            {name: ref.snapshot_ref_type for name, ref in table.refs().items()}
            for table in (ours, oracle)
        ]
        assert names[0] == names[1]
        for name in names[0]:
            assert rows(ours, name) == rows(oracle, name), name
        native = self.at.native(f"FROM main.{self.name}")
        assert rows(ours) == Counter(native)

    def check_duckdb(self):
        """Compare the rows of main, as DuckDB reads them as an Iceberg client."""
        assert rows(self.table) == Counter(self.at.duckdb(f"FROM ice.main.{self.name}"))


@pytest.fixture
def pair(lake_of, tmp_path):
    one = Pair(lake_of, tmp_path)
    yield one
    one.oracle.close()


def rows(table, name="main"):
    snapshot = table.snapshot_by_name(name)
    if snapshot is None:
        return Counter()
    scanned = table.scan(snapshot_id=snapshot.snapshot_id).to_arrow()
    return Counter(tuple(row.values()) for row in scanned.to_pylist())


def create_branch(table, name="b"):
    table.manage_snapshots().create_branch(table.current_snapshot().snapshot_id, name).commit()


def publish(table, name="b"):
    snapshot_id = table.snapshot_by_name(name).snapshot_id
    set_current(table, snapshot_id)


def set_current(table, snapshot_id):
    table.manage_snapshots().set_current_snapshot(snapshot_id).commit()


def set_main(pair, snapshot_id):
    """As a client that has not loaded the table again."""
    main = {"ref-name": "main", "type": "branch", "snapshot-id": snapshot_id}
    pair.at.commit(pair.name, {"action": "set-snapshot-ref", **main})


CHANGES = {
    "append": lambda table: table.append(MORE, branch="b"),
    "delete": lambda table: table.delete("id = 1", branch="b"),
    "overwrite": lambda table: table.overwrite(OTHER, "id = 2", branch="b"),
    "append again": lambda table: table.append(ROWS, branch="b"),
    "overwrite all": lambda table: table.overwrite(MORE, branch="b"),
}


def test_main_gets_the_net_change_of_a_branch_in_one_snapshot(pair):
    pair.both("INSERT INTO {} VALUES (7, 'native')", pa.table({"id": [7], "s": ["native"]}))
    pair.changes(create_branch)
    for call in CHANGES.values():
        pair.changes(call)
    pair.check_duckdb()
    pair.changes(publish)
    pair.check_duckdb()
    assert pair.table.refs()["b"].snapshot_id == pair.table.current_snapshot().snapshot_id
    pair.changes(CHANGES["append"])
    pair.changes(lambda table: table.manage_snapshots().create_tag(*head_of(table), "t").commit())
    pair.changes(publish)
    pair.changes(lambda table: table.manage_snapshots().remove_branch("b").commit())
    pair.changes(lambda table: table.append(ROWS))
    assert tags_of(pair) == []
    pair.at.maintain(pair.name, "UPDATE {0} SET s = 'native' WHERE id = 10")


def stored(endpoint, data_path, remove=None):
    """The keys of the objects of a lake; those that end with `remove` are deleted, and returned."""
    s3 = boto3.client("s3", endpoint_url=endpoint)
    bucket, prefix = bucket_and_key(f"{data_path.rstrip('/')}/")
    keys = {
        item["Key"]
        for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        for item in page.get("Contents", [])
    }
    if remove is None:
        return keys
    chosen = {key for key in keys if key.endswith(remove)}
    for key in chosen:
        s3.delete_object(Bucket=bucket, Key=key)
    return chosen


def staged_in(document):
    """The snapshots of a table's metadata that are not of main."""
    staging = document["properties"]["write.metadata.path"]
    return [s for s in document["snapshots"] if s["manifest-list"].startswith(staging)]


def head_of(table):
    return [table.snapshot_by_name("b").snapshot_id]


def tags_of(pair):
    """The staged snapshots that the catalog keeps, and the files that it names for them."""
    run = pair.at.lake.database.run
    tags = run(
        "SELECT key FROM ducklake_tag JOIN ducklake_table ON table_id = object_id "
        "WHERE key LIKE 'polynya.staged%' AND ducklake_tag.end_snapshot IS NULL "
        "AND table_name = :name",
        name=pair.name,
    )
    files = run(
        "SELECT f.path FROM ducklake_delete_file AS f JOIN ducklake_table USING (table_id) "
        "WHERE data_file_id = -1 AND table_name = :name",
        name=pair.name,
    )
    return [*tags, *files]


@pytest.mark.parametrize("moves", ["native", "iceberg"])
def test_a_branch_that_main_has_left_is_not_published(pair, moves):
    pair.changes(create_branch)
    pair.changes(CHANGES["append"])
    if moves == "native":
        pair.both("INSERT INTO {} VALUES (7, 'native')", pa.table({"id": [7], "s": ["native"]}))
        pair.check()
    else:
        pair.changes(lambda table: table.append(OTHER))
    before = pair.at.newest()
    with pytest.raises(CommitFailedException, match="the table is at"):
        publish(pair.table)
    assert pair.at.newest() == before
    pair.changes(CHANGES["append again"])


def test_two_branches_do_not_see_each_other(pair):
    for name in ("b", "c"):
        pair.changes(lambda table, name=name: create_branch(table, name))
    pair.changes(lambda table: table.append(MORE, branch="b"))
    pair.changes(lambda table: table.append(OTHER, branch="c"))
    pair.changes(lambda table: table.delete("id = 3", branch="c"))
    pair.changes(lambda table: publish(table, "c"))
    with pytest.raises(CommitFailedException, match="the table is at"):
        publish(pair.table)
    pair.check()


def test_a_snapshot_under_others_is_not_published(pair):
    pair.changes(create_branch)
    pair.changes(CHANGES["append"])
    first = pair.table.snapshot_by_name("b").snapshot_id
    pair.changes(CHANGES["delete"])
    with pytest.raises(BadRequestError, match="other snapshots follow"):
        set_current(pair.table, first)
    with pytest.raises(BadRequestError, match="cannot go back"):
        set_main(pair, 12345678901234567)
    pair.check()


def test_files_are_safe_from_the_clean_up_of_ducklake(pair, moto):
    def data_files():
        uuid = str(pair.table.metadata.table_uuid)
        return {key for key in stored(moto, pair.at.lake.data_path) if f"{uuid}/" in key}

    clean_up = (
        "CALL ducklake_cleanup_old_files('lake', cleanup_all => true)",
        "CALL ducklake_delete_orphaned_files('lake', cleanup_all => true)",
    )
    pair.changes(create_branch)
    pair.changes(CHANGES["append"])
    pair.changes(CHANGES["delete"])
    before = data_files()
    pair.at.native(*clean_up)
    assert data_files() == before
    pair.check()
    pair.changes(publish)
    pair.changes(CHANGES["append again"])
    kept = {key for key in data_files() if key.endswith(".parquet")}
    pair.changes(lambda table: table.manage_snapshots().remove_branch("b").commit())
    assert len(tags_of(pair)) == 2
    remove = {"action": "remove-snapshots"}
    [staged] = [
        s for s in pair.at.document(pair.name)["snapshots"] if ".polynya" in s["manifest-list"]
    ]
    pair.at.commit(pair.name, {**remove, "snapshot-ids": [staged["snapshot-id"]]})
    assert tags_of(pair) == []
    pair.at.native(*clean_up)
    assert len(kept - data_files()) >= 1
    assert rows(pair.table) == Counter(pair.at.native(f"FROM {pair.name}"))


def test_files_go_with_the_table(pair, moto):
    pair.changes(create_branch)
    pair.changes(CHANGES["append"])
    [(path,)] = tags_of(pair)[1:]
    assert any(key.endswith(path) for key in stored(moto, pair.at.lake.data_path))
    pair.at.native(
        f"DROP TABLE {pair.name}",
        "CREATE TABLE afterwards (i INTEGER)",
        "DROP TABLE afterwards",
        "CALL ducklake_expire_snapshots('lake', older_than => now())",
        "CALL ducklake_cleanup_old_files('lake', cleanup_all => true)",
    )
    assert not any(key.endswith(path) for key in stored(moto, pair.at.lake.data_path))


def test_a_branch_ends_with_the_files_of_its_base(pair):
    """They are merged into another file, and could not be read any more."""
    pair.both("INSERT INTO {} VALUES (7, 'native')", pa.table({"id": [7], "s": ["native"]}))
    pair.changes(create_branch)
    pair.changes(CHANGES["append"])
    assert set(pair.table.refs()) == {"main", "b"}
    staged = pair.table.snapshot_by_name("b").snapshot_id
    pair.at.native(
        "CALL ducklake_flush_inlined_data('lake')", "CALL ducklake_merge_adjacent_files('lake')"
    )
    table = pair.table
    assert set(table.refs()) == {"main"} and table.snapshot_by_id(staged) is None
    assert rows(table) == Counter(pair.at.native(f"FROM {pair.name}"))
    with pytest.raises(BadRequestError, match="cannot go back"):
        set_main(pair, staged)
    create_branch(table)
    table.refresh().append(MORE, branch="b")
    assert rows(table.refresh(), "b") == rows(table) + Counter([(10, "x"), (11, None)])


@pytest.mark.versions("1.0")  # while a native transaction is open no catalog is migrated
def test_native_writers_and_commits_to_a_branch_are_no_conflict(pair):
    pair.changes(create_branch)
    with judging(pair.at.lake, pair.at._s3) as judge:
        judge.query("BEGIN")
        judge.query(f"INSERT INTO lake.main.{pair.name} VALUES (7, 'native')")
        pair.tables[0].refresh().append(MORE, branch="b")
        judge.query("COMMIT")
    for change in ({"branch": "b"}, {}):
        rows_of = MORE if change else pa.table({"id": [7], "s": ["native"]})
        pair.tables[1].append(rows_of, **change)
    pair.check()


def test_clients_plan_scans_while_there_are_staged_snapshots(pair):
    def url(of=""):
        return pair.at.catalog.url(f"namespaces/main/tables/{pair.name}{of}")

    def mode():
        return urllib3.request("GET", url()).json()["config"].get("scan-planning-mode")

    pair.changes(create_branch)
    assert mode() is None
    pair.changes(CHANGES["append"])
    assert mode() == "client"
    planned = urllib3.request("POST", url("/plan"), json={})
    assert sum(task["data-file"]["record-count"] for task in planned.json()["file-scan-tasks"]) == 3
    staged = {"snapshot-id": pair.table.refs()["b"].snapshot_id}
    refused = urllib3.request("POST", url("/plan"), json=staged)
    assert refused.status == 400 and "planned by the client" in refused.json()["error"]["message"]
    pair.changes(publish)
    assert mode() is None


def test_columns_are_not_changed_by_a_commit_to_a_branch(staged):
    document = staged.at.document(staged.name)
    schema = {**document["schemas"][-1], "schema-id": 7}
    field = {"id": 3, "name": "more", "type": "long", "required": False}
    updates = [
        {"action": "add-schema", "schema": {**schema, "fields": [*schema["fields"], field]}},
        {"action": "set-current-schema", "schema-id": -1},
        {"action": "add-snapshot", "snapshot": another(document)},
    ]
    with pytest.raises(BadRequestError, match="columns, partitioning or sort order"):
        staged.at.commit(staged.name, *updates)
    main = {"action": "set-snapshot-ref", "ref-name": "main", "type": "branch"}
    both = [updates[2], {**updates[2], "snapshot": another(document, **{"snapshot-id": 2**51})}]
    with pytest.raises(BadRequestError, match="to main or to branches"):
        staged.at.commit(staged.name, *both, {**main, "snapshot-id": 2**51})


def test_a_missing_file_of_a_branch_leaves_main_as_it_is(pair, moto):
    pair.changes(create_branch)
    pair.changes(CHANGES["append"])
    [(path,)] = tags_of(pair)[1:]
    before = pair.at.newest()
    deleted = stored(moto, pair.at.lake.data_path, remove=path)
    assert len(deleted) == 1
    with pytest.raises(BadRequestError, match="does not exist in S3"):
        publish(pair.table)
    assert pair.at.newest() == before and "b" in pair.table.refs()


def test_a_branch_is_shown_before_the_template_deletes_its_manifests(pair):
    pair.changes(create_branch)
    pair.changes(CHANGES["append"])
    [since] = {
        json.loads(value)[2]
        for [value] in pair.at.lake.database.run(
            "SELECT value FROM ducklake_tag WHERE key LIKE 'polynya.staged%' "
            "AND end_snapshot IS NULL AND object_id = (SELECT table_id FROM ducklake_table "
            "WHERE table_name = :name)",
            name=pair.name,
        )
    }
    for earlier, shown in ((SHOWN_MS - 60_000, True), (SHOWN_MS + 60_000, False)):
        pair.at.lake.database.run(
            "UPDATE ducklake_tag SET value = replace(value, :since, :earlier) "
            "WHERE key LIKE 'polynya.staged%'",
            since=f", {since},",
            earlier=f", {since - earlier},",
        )
        assert ("b" in pair.table.refs()) == shown
        since -= earlier
    create_branch(pair.table)
    pair.table.append(MORE, branch="b")
    assert len(tags_of(pair)) == 2


def test_a_repeated_commit_to_a_branch_is_recognised(pair):
    pair.changes(create_branch)
    pair.changes(CHANGES["append"])
    document = pair.at.document(pair.name)
    staged = next(
        s for s in document["snapshots"] if s["snapshot-id"] == document["refs"]["b"]["snapshot-id"]
    )
    before = pair.at.newest()
    head = pair.table.current_snapshot().snapshot_id
    body = {
        "requirements": [
            {"type": "assert-table-uuid", "uuid": document["table-uuid"]},
            {"type": "assert-ref-snapshot-id", "ref": "b", "snapshot-id": head},
        ],
        "updates": [
            {"action": "add-snapshot", "snapshot": staged},
            {
                "action": "set-snapshot-ref",
                "ref-name": "b",
                "type": "branch",
                "snapshot-id": staged["snapshot-id"],
            },
        ],
    }
    url = pair.at.catalog.url(f"namespaces/main/tables/{pair.name}")
    answer = urllib3.request("POST", url, json=body)
    assert answer.status == 200 and pair.at.newest() == before
    body["updates"][0]["snapshot"] = {**staged, "snapshot-id": staged["snapshot-id"] + 1}
    assert urllib3.request("POST", url, json=body).status == 409
    pair.check()


def another(document, **fields):
    """A snapshot beside the one that is staged."""
    [snapshot] = staged_in(document)
    number = document["last-sequence-number"] + 1
    return {**snapshot, "snapshot-id": 2**50, "sequence-number": number, **fields}


REFUSED = {
    "no sequence number": (lambda d: {"sequence-number": None}, 400, "sequence number"),
    "a late sequence number": (lambda d: {"sequence-number": 2**60}, 400, "sequence number"),
    "an old sequence number": (lambda d: {"sequence-number": 1}, 409, "the table's last is"),
    "an unknown parent": (lambda d: {"parent-snapshot-id": 2**51}, 409, "does not list any more"),
    "an unknown schema": (lambda d: {"schema-id": 77}, 400, "a schema or a partition spec"),
    "a list elsewhere": (lambda d: {"manifest-list": "s3://other/x.avro"}, 400, "is not below"),
    "no list": (
        lambda d: {"manifest-list": f"{d['properties']['write.metadata.path']}/none.avro"},
        400,
        "does not exist in S3",
    ),
    "a long summary": (
        lambda d: {"summary": {"operation": "append", "x": "x" * 100_000}},
        400,
        "is too long for a branch",
    ),
    "an id of DuckLake": (lambda d: {"snapshot-id": 7}, 400, "one of DuckLake's own"),
    "virtual manifests without a base": (
        lambda d: {"parent-snapshot-id": None},
        409,
        "metadata was rewritten",
    ),
}


@pytest.fixture(scope="module")
def staged(lake_of, tmp_path_factory):
    """A table with a staged snapshot."""
    pair = Pair(lake_of, tmp_path_factory.mktemp("oracle"))
    pair.changes(create_branch)
    pair.changes(CHANGES["append"])
    yield pair
    pair.oracle.close()


@pytest.mark.parametrize("case", REFUSED)
def test_staged_snapshots_that_are_refused(staged, case):
    pair = staged
    fields, status, reason = REFUSED[case]
    document = pair.at.document(pair.name)
    snapshot = {k: v for k, v in another(document, **fields(document)).items() if v is not None}
    body = {"requirements": [], "updates": [{"action": "add-snapshot", "snapshot": snapshot}]}
    url = pair.at.catalog.url(f"namespaces/main/tables/{pair.name}")
    before = pair.at.newest()
    answer = urllib3.request("POST", url, json=body)
    assert (answer.status, reason in answer.json()["error"]["message"]) == (status, True), (
        answer.data
    )
    assert pair.at.newest() == before
