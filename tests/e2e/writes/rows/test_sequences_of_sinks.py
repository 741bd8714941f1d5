"""The requests of sinks that are not in the tests' environment, in their order.

Each sends what it sends by its sources; SQL in a twin is the judge.
"""

from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import urllib3
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table.name_mapping import create_mapping_from_schema

from tests.support.writes.hand_made import Entry, HandMade, equality_deletes, parquet

COLUMNS = "(id BIGINT, s VARCHAR)"
FIELDS = [
    {"id": 1, "name": "id", "type": "long", "required": True},
    {"id": 2, "name": "s", "type": "string", "required": False},
]

OF_FILES = pa.schema([pa.field("id", pa.int64(), nullable=False), pa.field("s", pa.string())])


@pytest.fixture
def client(served, moto):
    return HandMade(served[1], moto)


@pytest.fixture
def tables(served):
    return f"{served[1].catalog_uri}/v1/lake/namespaces/main/tables"


def rows(*pairs: tuple[int, str | None]) -> Entry:
    ids, texts = zip(*pairs, strict=True)
    return parquet({("id", 1): pa.array(ids, pa.int64()), ("s", 2): pa.array(texts, pa.string())})


def keys(*ids: int) -> Entry:
    return equality_deletes({("id", 1): pa.array(ids, pa.int64())}, [1])


def create(twin, tables, **more):
    """createTable with an identifier field, as most sinks do; gives the metadata."""
    schema = {"type": "struct", "fields": FIELDS, "identifier-field-ids": [1]}
    body = {"name": twin.name, "schema": schema, **more}
    answers = []
    post = lambda: answers.append(urllib3.request("POST", tables, json=body))  # noqa: E731
    twin.changes(f"CREATE TABLE {{t}} {COLUMNS}", post)
    assert answers[0].status == 200
    return answers[0].json()["metadata"]


def test_risingwave(twin, client, tables):
    """One `append` with data, equality and position deletes, under an id that it asks for later.

    It gives up if the ids of the current schema and the default spec have changed.
    """
    properties = {"format-version": "2"}
    created = create(
        twin, tables, location=f"s3://elsewhere/main/{twin.name}", properties=properties
    )
    ids = created["current-schema-id"], created["default-spec-id"]
    for epoch, pairs in enumerate([((1, "a"), (2, None)), ((2, "b"), (3, "c")), ((1, None),)]):
        values = ", ".join(f"({id_}, {s!r})".replace("None", "NULL") for id_, s in pairs)
        gone = ", ".join(str(id_) for id_, _ in pairs)
        files = [rows(*pairs), *([keys(*(id_ for id_, _ in pairs))] if epoch else [])]
        sql = f"DELETE FROM {{t}} WHERE id IN ({gone}); INSERT INTO {{t}} VALUES {values}"
        twin.changes(sql, lambda files=files: client.commit(twin.name, *files))
        newest = twin.newest()
        # A lost answer: the same request once more, which is no second commit.
        assert client.post_again() == (200, "")
        assert twin.newest() == newest
        metadata = client.load(twin.name)
        assert client.last_snapshot_id in [s["snapshot-id"] for s in metadata["snapshots"]]
        assert (metadata["current-schema-id"], metadata["default-spec-id"]) == ids
    twin.check()
    # When its snapshot has expired, the request is still known.
    twin.native("INSERT INTO {t} VALUES (9, 'native')")
    twin.con.execute("CALL ducklake_expire_snapshots('lake', older_than => now())")
    twin.forget(twin.newest())
    newest = twin.newest()
    assert client.post_again() == (200, "")
    assert twin.newest() == newest
    twin.check()


def test_olake(twin, client, tables):
    """The state of its two phases is a property, set in the commit of the rows."""
    create(twin, tables, properties={"format-version": "2"})
    for number in (1, 2):
        state = f'{{"thread-{number}": "done"}}'
        update = {"action": "set-properties", "updates": {"olake_2pc": state}}
        files = [rows((1, f"{number}"), (number + 1, "x")), *([keys(1, 3)] if number > 1 else [])]
        sql = f"DELETE FROM {{t}} WHERE id IN (1, 3); INSERT INTO {{t}} VALUES (1, '{number}')"
        twin.changes(
            f"{sql}, ({number + 1}, 'x')",
            lambda files=files, update=update: client.commit(twin.name, *files, updates=(update,)),
        )
        assert client.load(twin.name)["properties"]["olake_2pc"] == state
    # A commit that is refused changes no property.
    twin.native("INSERT INTO {t} VALUES (7, 'native')")
    assert client.post_again()[0] == 200  # it has landed
    stale = {"action": "set-properties", "updates": {"olake_2pc": "stale"}}
    requirement = {"type": "assert-ref-snapshot-id", "ref": "main", "snapshot-id": 1}
    assert client.post(twin.name, [requirement], [stale])[0] == 409
    assert client.load(twin.name)["properties"]["olake_2pc"] == state
    twin.check()


def test_estuary(twin, tables, served):
    """Files without field ids, found by a name mapping, with its checkpoint in the same commit."""
    location = f"{served[0].data_path}/main/{twin.name}"
    create(twin, tables, location=location)
    table = twin.table()
    mapping = create_mapping_from_schema(table.schema()).model_dump_json()
    table.transaction().set_properties(
        {"schema.name-mapping.default": mapping}
    ).commit_transaction()
    twin.past[twin.newest()] = twin.past[max(twin.past)]
    io = PyArrowFileIO(twin.pyiceberg.properties)
    for number in (1, 2):
        path = f"{location}/{uuid4()}.parquet"
        with io.new_output(path).create() as file:
            values = {"id": [number], "s": [f"row {number}"]}
            pq.write_table(pa.table(values, schema=OF_FILES), file)
        checkpoint = f'{{"m": "{number}"}}'

        def commit(path=path, checkpoint=checkpoint):
            with twin.table().transaction() as changes:
                changes.set_properties({"flow_checkpoints_v1": checkpoint})
                changes.add_files([path])

        twin.changes(f"INSERT INTO {{t}} VALUES ({number}, 'row {number}')", commit)
        assert twin.table().properties["flow_checkpoints_v1"] == checkpoint
    twin.check()
