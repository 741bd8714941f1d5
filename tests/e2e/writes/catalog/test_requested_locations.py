"""The locations that clients ask for: dlt, Estuary and RisingWave always do, so does Trino.

One is kept as the directory of the table if it lies below the lake's data path and nothing else is
or may be there. Otherwise DuckLake chooses, and the answer says where the table is.
"""

import itertools
from contextlib import closing

import boto3
import pyarrow as pa
import pytest
import requests
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType

from tests.support.lakes import Lakes
from tests.support.servers.in_process import bridge
from tests.support.writes.writable import EMPTY, client_of, judging, set_up_writes

DIGITS = "0123456789abcdef" * 2
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "int", "required": False}]}

# `of` is the directory of the namespace, `lake` the data path.
KEPT = {
    "Trino, iceberg.unique-table-location": f"{{of}}/{{name}}-{DIGITS}",
    "Trino without it": "{of}/{name}",
    "dlt": "{of}/{name}/",
    "another scheme": f"{{s3a}}/{{name}}-{DIGITS}",
    "deeper": "{of}/more/{name}",
    "beside the namespaces": "{lake}/elsewhere/{name}",
}
OVERRIDDEN = {
    "another bucket": "s3://elsewhere/{name}",
    "a name alone": "{name}",
    "nothing": "",
    "the namespace's own": "{of}",
    "the lake's own": "{lake}",
    "another namespace's": "{lake}/main/{name}",
    "another table's": "{of}/taken",
    "below another table's": "{of}/taken/{name}",
    "a dropped table's": "{of}/dropped",
    "out of the namespace": "{of}/../{name}",
    "where commits have their files": "{lake}/.iceberg/{name}",
    "where virtual files are": "{lake}/../polynya/{name}",
    "odd characters": "{of}/{name}*",
    "encoded": "{of}/%2e%2e/{name}",
}


@pytest.fixture(scope="module")
def lake_of_all(lake: Lakes):
    script = f"""{EMPTY}
CREATE TABLE other.taken (a INTEGER);
CREATE TABLE other.dropped (a INTEGER);
INSERT INTO other.dropped VALUES (1);
DROP TABLE other.dropped;
"""
    return set_up_writes(lake.write("requested_locations", script))


@pytest.fixture(scope="module")
def served(lake_of_all, moto):
    with bridge(lake_of_all, moto, writes=True) as one:
        yield one


@pytest.fixture
def namespaces(served):
    return f"{served.catalog_uri.rstrip('/')}/v1/lake/namespaces"


@pytest.mark.parametrize("namespace", ["main", "other"])
def test_a_namespace_has_its_directory(served, lake_of_all, namespace):
    expected = {"location": f"{lake_of_all.data_path}/{namespace}"}
    assert _properties(served.catalog_uri, "lake", namespace) == expected


@pytest.mark.parametrize("case", KEPT)
def test_a_free_directory_of_the_lake_is_kept(namespaces, lake_of_all, case):
    name = f"kept{list(KEPT).index(case)}"
    location = _location(KEPT[case], lake_of_all, name)
    expected = location.replace("s3a://", "s3://").rstrip("/")
    assert _directory(_create(namespaces, name, location, False)) == expected


@pytest.mark.parametrize("case", OVERRIDDEN)
def test_for_any_other_location_ducklake_chooses(namespaces, lake_of_all, case):
    name = f"chosen{list(OVERRIDDEN).index(case)}"
    location = _location(OVERRIDDEN[case], lake_of_all, name)
    answer = _create(namespaces, name, location, False)
    assert _directory(answer) == f"{lake_of_all.data_path}/other/{name}"
    assert answer.json()["metadata"]["location"] != location


@pytest.mark.parametrize("case", ["dlt", "beside the namespaces", "another bucket"])
def test_for_a_staged_table_ducklake_chooses(namespaces, lake_of_all, case):
    """The commit that creates it need not repeat the location."""
    template = (KEPT | OVERRIDDEN)[case]
    answer = _create(namespaces, "staged", _location(template, lake_of_all, "staged"), True)
    assert _directory(answer) == f"{lake_of_all.data_path}/other/staged"


# What dlt 1.31 sends: PyIceberg's create_table with the folder of the data set and the table, also
# if that is in the bucket of another lake; with a partition hint, create_table_transaction.
SCHEMA_OF_DLT = Schema(
    NestedField(1, "day", StringType(), required=False),
    NestedField(2, "id", LongType(), required=False),
    NestedField(3, "_dlt_load_id", StringType(), required=True),
)
BY_DAY = PartitionSpec(PartitionField(1, 1000, IdentityTransform(), "day"))
LOAD = pa.Table.from_pylist(
    [{"day": "mon", "id": 1, "_dlt_load_id": "1"}, {"day": None, "id": 2, "_dlt_load_id": "1"}],
    schema=SCHEMA_OF_DLT.as_arrow(),
)


PLACES = ("{lake}/birds/", "{lake}/folder/birds/", "s3://elsewhere/birds/")


def _ways() -> list:
    """All places, with and without a partition, created and staged; one of them in CI."""
    every = itertools.product(PLACES, (PartitionSpec(), BY_DAY), (False, True))
    in_ci = (PLACES[1], BY_DAY, False)
    return [pytest.param(*one, marks=[] if one == in_ci else pytest.mark.slow) for one in every]


@pytest.mark.parametrize(("place", "spec", "staged"), _ways())
def test_what_dlt_loads_is_there_and_native_writes_to_it(
    served, lake_of_all, moto, place, spec, staged
):
    name = f"seen{PLACES.index(place)}_{len(spec.fields)}{staged:d}"
    location = f"{place.format(lake=lake_of_all.data_path)}{name}/"
    with closing(client_of(served)) as client:
        client.create_namespace_if_not_exists("birds")
        if staged:
            with client.create_table_transaction(
                ("birds", name), SCHEMA_OF_DLT, location, partition_spec=spec
            ):
                pass
        else:
            client.create_table(("birds", name), SCHEMA_OF_DLT, location, partition_spec=spec)
        client.load_table(("birds", name)).append(LOAD)
    with judging(lake_of_all, moto) as judge:
        native = f"lake.birds.{name}"
        judge.query(f"INSERT INTO {native} VALUES ('tue', 3, '2')")
        rows = [("mon", 1, "1"), (None, 2, "1"), ("tue", 3, "2")]
        assert judge.query(f"SELECT * FROM {native} ORDER BY id") == rows
    with closing(client_of(served)) as client:
        table = client.load_table(("birds", name))
        assert sorted(table.scan().to_arrow()["id"].to_pylist()) == [1, 2, 3]


def test_who_may_only_read_sees_none(lake_of_all, moto):
    with bridge(lake_of_all, moto, settings={"WRITES": "no"}) as reading:
        assert _properties(reading.catalog_uri, "lake", "main") == {}


def test_a_pinned_lake_has_none(served):
    assert _properties(served.catalog_uri, "lake--at-1", "main") == {}


def test_the_location_of_a_staged_table_is_empty(namespaces, moto):
    """Trino refuses another one."""
    metadata = _create(namespaces, "staged", None, True).json()["metadata"]
    bucket, _, prefix = metadata["location"].removeprefix("s3://").partition("/")
    listed = boto3.client("s3", endpoint_url=moto).list_objects_v2(Bucket=bucket, Prefix=prefix)
    assert listed["KeyCount"] == 0


def _properties(catalog_uri, prefix, namespace):
    url = f"{catalog_uri.rstrip('/')}/v1/{prefix}/namespaces/{namespace}"
    return requests.get(url, timeout=60).json()["properties"]


def _location(template, lake, name):
    of = f"{lake.data_path}/other"
    s3a = of.replace("s3://", "s3a://")
    return template.format(lake=lake.data_path, of=of, s3a=s3a, name=name)


def _directory(answer: requests.Response) -> str:
    """The directory of the table that an answer names, without a slash."""
    assert answer.status_code == 200, answer.text
    metadata = answer.json()["metadata"]
    assert metadata["location"].endswith(f"/polynya/{metadata['table-uuid']}")
    directory, _, uuid = metadata["properties"]["write.data.path"].rpartition("/")
    assert uuid == metadata["table-uuid"]
    return directory


def _create(namespaces, name, location, staged):
    body = {"name": name, "location": location, "schema": SCHEMA, "stage-create": staged}
    return requests.post(f"{namespaces}/other/tables", json=body, timeout=60)
