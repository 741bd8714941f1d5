"""Tags and properties with the names of client settings do not configure clients."""

import json
import socket
import threading
from contextlib import closing, contextmanager

import pyarrow as pa
import pytest
import requests
from polynya_local.clients.pyiceberg import PyIceberg, s3_properties
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import BadRequestError

from tests.support.servers.in_process import bridge, standing_in
from tests.support.writes.writable import EMPTY, set_up_writes

LAKE = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE t(i INTEGER);
INSERT INTO t FROM range(3);
COMMENT ON TABLE t IS 'a table';
CREATE VIEW v AS FROM t;
COMMENT ON VIEW v IS 'a view';
"""
TAG = """
INSERT INTO ducklake_tag (object_id, begin_snapshot, key, value)
SELECT table_id, begin_snapshot, :key, :value FROM ducklake_table
UNION ALL SELECT view_id, begin_snapshot, :key, :value FROM ducklake_view"""


@pytest.fixture(scope="module")
def unexpected_server():
    """The address of a server that no client should call, and the connections it got."""
    called = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def listen():
            while True:
                try:
                    con, _ = server.accept()
                except OSError:
                    return
                called.append(con)
                con.close()

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", called
        server.shutdown(socket.SHUT_RDWR)
        thread.join(10)


@pytest.fixture(scope="module")
def tags(unexpected_server):
    return {
        "s3.endpoint": unexpected_server[0],
        "s3.proxy-uri": unexpected_server[0],
        "py-io-impl": "os.path",
        "io-impl": "com.example.Evil",
        "write.location-provider.impl": "com.example.Evil",
        "schema.name-mapping.default": json.dumps([{"field-id": 1, "names": ["x"]}]),
        "polynya.hidden-columns": '["x"]',
        "Comment": "ü",
    }


@pytest.fixture(scope="module")
def stand_in(lake, moto, tags):
    tagged = lake.write("tags", LAKE)
    con = tagged.database.connect()
    for key, value in tags.items():
        con.run(TAG, key=key, value=value)
    con.close()
    with standing_in(tagged, moto) as running:
        yield running


@pytest.mark.parametrize(
    ("kind", "name", "comment"), [("tables", "t", "a table"), ("views", "v", "a view")]
)
def test_tags_are_prefixed_properties(stand_in, tags, kind, name, comment):
    answer = requests.get(f"{stand_in.api_uri}/v1/lake/namespaces/main/{kind}/{name}", timeout=60)
    expected = {f"polynya.tag.{key}": value for key, value in tags.items()}
    assert answer.json()["metadata"]["properties"] == {"comment": comment, **expected}


def test_a_client_connects_to_no_other_server(stand_in, unexpected_server):
    _, called = unexpected_server
    client = PyIceberg(stand_in.api_uri, "lake", stand_in.s3_uri)
    assert client.rows("main", "t").num_rows == 3
    assert not called
    client.close()


PWN = " id > pwned; cat >/dev/null"
"""PyIceberg calls pydoc.pipepager(location, properties), which runs the first name in a shell."""

HOSTILE = {
    "a location provider": {PWN: "x", "write.py-location-provider.impl": "pydoc.pipepager"},
    "a file system": {PWN: "x", "py-io-impl": "pydoc.pipepager"},
    "a scheme without an implementation": {"DEFAULT_SCHEME": "http", "buffer-size": "nonsense"},
    "another place": {"s3.endpoint": "http://127.0.0.1:9", "write.data.path": "s3://other"},
    "other rows": {"snapshot-id": "1", "tag": "old", "limit": "0", "write.new-setting": "x"},
}


@pytest.fixture(scope="module", params=["", "*"])
def written(request, lake, moto):
    """A lake that clients write, and PyIceberg's client.

    The parameter is the setting CUSTOM_PROPERTIES.
    """
    one = set_up_writes(lake.write("hostile", EMPTY))
    settings = {"CUSTOM_PROPERTIES": request.param}
    with (
        bridge(one, moto, writes=True, settings=settings) as served,
        closing(
            RestCatalog(
                "c", uri=served.catalog_uri, warehouse="lake", **s3_properties(served.s3_endpoint)
            )
        ) as catalog,
    ):
        yield one, catalog


@pytest.mark.parametrize("case", HOSTILE)
def test_properties_of_a_writer_do_not_run_in_another_client(written, case, tmp_path, monkeypatch):
    lake, catalog = written
    rows = pa.table({"id": pa.array([1], pa.int64())})
    name = f"main.{case.replace(' ', '_')}"
    catalog.create_table(name, rows.schema)
    for key, value in HOSTILE[case].items():
        change = catalog.load_table(name).transaction().set_properties({key: value})
        if key.endswith(("impl", "endpoint", "path")):
            with pytest.raises(BadRequestError, match="would configure the clients of other users"):
                change.commit_transaction()
        else:
            change.commit_transaction()
    # An earlier version has stored all of them.
    con = lake.database.connect()
    for key, value in HOSTILE[case].items():
        con.run(TAG, key=f"polynya.property.{key}", value=value)
    con.close()
    monkeypatch.chdir(tmp_path)
    table = catalog.load_table(name)
    table.append(rows)
    assert table.refresh().scan().to_arrow() == rows.cast(table.schema().as_arrow())
    assert list(tmp_path.iterdir()) == []
    assert {key: table.properties[f"polynya.tag.{key}"] for key in HOSTILE[case]} == HOSTILE[case]


@pytest.fixture(scope="module")
def custom(lake):
    """A lake with properties of many names."""
    return set_up_writes(lake.write("custom", EMPTY))


@contextmanager
def catalog_with(lake, moto, delivery, custom_properties):
    settings = {"CUSTOM_PROPERTIES": custom_properties}
    with bridge(lake, moto, delivery=delivery, writes=True, settings=settings) as served:
        s3 = s3_properties(served.s3_endpoint)
        with closing(RestCatalog("c", uri=served.catalog_uri, warehouse="lake", **s3)) as catalog:
            yield catalog


SETTING = "team, pii.*"
GIVEN = {"team": "birds", "pii.level": "none", "other": "x", "snapshot-id": "1", "owner": "o"}


def expected(*names):
    """The properties of the table if these have their own names."""
    return {key if key in names else f"polynya.tag.{key}": value for key, value in GIVEN.items()}


@pytest.mark.parametrize("delivery", ["materialize", "object-lambda"])
def test_an_operator_names_properties_that_keep_their_names(custom, moto, delivery):
    name, rows = f"main.{delivery.replace('-', '_')}", pa.table({"id": pa.array([1], pa.int64())})
    documents = {}

    def check_documents(io):
        for location, properties in documents.items():
            with io.new_input(location).open() as file:
                assert json.load(file)["properties"] == properties

    def check(catalog, properties):
        table = catalog.load_table(name)
        documents[table.metadata_location] = table.metadata.properties
        check_documents(table.io)
        assert table.scan().to_arrow() == rows.cast(table.schema().as_arrow())
        assert properties.items() <= table.properties.items()
        assert not (GIVEN.keys() - properties.keys()) & table.properties.keys()

    with catalog_with(custom, moto, delivery, SETTING) as catalog:
        catalog.create_table(name, rows.schema, properties=GIVEN).append(rows)
        check(catalog, expected("team", "pii.level", "owner"))
    with catalog_with(custom, moto, delivery, "") as catalog:
        check(catalog, expected("owner"))
    # Each answer has a document of its own, which keeps its bytes.
    assert len(documents) == 2
    with catalog_with(custom, moto, delivery, SETTING) as catalog:
        check_documents(catalog.load_table(name).io)
        # They are changed by either name, and removed.
        changes = {"team": "ducks", "polynya.tag.pii.level": "low"}
        catalog.load_table(name).transaction().set_properties(changes).commit_transaction()
        found = catalog.load_table(name).properties
        assert (found["team"], found["pii.level"]) == ("ducks", "low")
        catalog.load_table(name).transaction().remove_properties(
            "team", "pii.level"
        ).commit_transaction()
        found = catalog.load_table(name).properties
        assert not [key for key in found if "team" in key or "pii" in key]


@pytest.mark.parametrize("entry", ["s3.endpoint", "py-io-impl", "tag", "a b", "a*b"])
def test_a_setting_with_a_name_that_clients_read_serves_nothing(custom, moto, entry):
    with standing_in(custom, moto, CUSTOM_PROPERTIES=f"team,{entry}") as stand_in:
        answer = requests.get(f"{stand_in.api_uri}/v1/lake/namespaces", timeout=60)
    assert answer.status_code == 500
    assert "birds" not in answer.text
