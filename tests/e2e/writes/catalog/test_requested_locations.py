"""The locations that Trino asks for: within the namespace's, named after the table."""

import boto3
import pytest
import requests

from tests.support.lakes import Lakes
from tests.support.servers.in_process import bridge
from tests.support.writes.writable import EMPTY, set_up_writes

DIGITS = "0123456789abcdef" * 2
SCHEMA = {"type": "struct", "fields": [{"id": 1, "name": "a", "type": "int", "required": False}]}

ACCEPTED = {
    "iceberg.unique-table-location": f"{{of}}/{{name}}-{DIGITS}",
    "without it": "{of}/{name}",
    "with a slash": "{of}/{name}/",
    "another scheme": f"{{s3a}}/{{name}}-{DIGITS}",
}
REFUSED = {
    "elsewhere": "s3://elsewhere/{name}",
    "a name alone": "{name}",
    "the namespace's own": "{of}",
    "another table's": "{of}/another",
    "below another directory": "{of}/more/{name}",
    "out of the namespace": "{of}/../{name}",
    "fewer digits": "{of}/{name}-0123",
}


@pytest.fixture(scope="module")
def lake_of_all(lake: Lakes):
    return set_up_writes(lake.write("requested_locations", EMPTY))


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


@pytest.mark.parametrize("staged", [False, True])
@pytest.mark.parametrize("case", ACCEPTED)
def test_ducklake_chooses_another_directory(namespaces, lake_of_all, case, staged):
    name = f"t{list(ACCEPTED).index(case)}_{staged:d}"
    location = _location(ACCEPTED[case], lake_of_all, name)
    answer = _create(namespaces, name, location, staged)
    assert answer.status_code == 200, answer.text
    metadata = answer.json()["metadata"]
    assert metadata["location"].endswith(f"/polynya/{metadata['table-uuid']}")
    data = f"{lake_of_all.data_path}/other/{name}/{metadata['table-uuid']}"
    assert metadata["properties"]["write.data.path"] == data


@pytest.mark.parametrize("case", REFUSED)
def test_any_other_location_is_refused(namespaces, lake_of_all, case):
    location = _location(REFUSED[case], lake_of_all, "refused")
    answer = _create(namespaces, "refused", location, False)
    assert answer.status_code == 400
    assert "DuckLake chooses the location of a table" in answer.json()["error"]["message"]
    assert requests.head(f"{namespaces}/other/tables/refused", timeout=60).status_code == 404


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
    return template.format(of=of, s3a=of.replace("s3://", "s3a://"), name=name)


def _create(namespaces, name, location, staged):
    body = {"name": name, "location": location, "schema": SCHEMA, "stage-create": staged}
    return requests.post(f"{namespaces}/other/tables", json=body, timeout=60)
