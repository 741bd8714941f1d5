"""Tables with added files, with the packages and rights that each function has on AWS."""

import json

import pytest

from tests.support.servers.in_process import cache_settings, standing_in
from tests.support.servers.raw_http import send

DELIVERIES = ("object-lambda", "materialize")
LAKE = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE own(i INTEGER);
INSERT INTO own VALUES (1);
CREATE TABLE added(i INTEGER);
COPY (SELECT 2::INTEGER AS i) TO '{{DATA_PATH}}_ext/added.parquet';
CALL ducklake_add_data_files('lake', 'added', '{{DATA_PATH}}_ext/added.parquet');
CREATE TABLE text(i INTEGER);
COPY (SELECT 3::INTEGER AS i) TO '{{DATA_PATH}}_ext/text.parquet';
CALL ducklake_add_data_files('lake', 'text', '{{DATA_PATH}}_ext/text.parquet');
COPY (SELECT 'x' AS no_parquet FROM range(1000)) TO '{{DATA_PATH}}_ext/text.parquet' (FORMAT csv);
"""


@pytest.fixture(scope="module")
def odd(lake):
    return lake.write("lake", LAKE, prefix="as_deployed/")


def loaded(stand_in, table: str):
    answer = send(stand_in.api_uri, "GET", f"/v1/lake/namespaces/main/tables/{table}")
    return answer.status, json.loads(answer.body), answer.headers


@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_table_with_added_files_is_served_completely(odd, moto, delivery):
    with standing_in(odd, moto, delivery=delivery, data_prefix="as_deployed/") as stand_in:
        status, body, _ = loaded(stand_in, "added")
        assert status == 200
        [last] = body["metadata"]["snapshots"][-1:]
        location = last["manifest-list"].removeprefix("s3://")
        assert send(stand_in.s3_uri, "GET", f"/{location}").status == 200


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("delivery", DELIVERIES)
def test_a_missing_right_is_reported_with_the_remedy(odd, moto, delivery, cached):
    """The added files are not below the prefix. Other tables are still served."""
    settings = cache_settings(moto) if cached else {}
    how = {"delivery": delivery, "data_prefix": odd.data_path.removeprefix("s3://lakes/") + "/"}
    how["VIRTUAL_PREFIX"] = "denied"
    with standing_in(odd, moto, **how, **settings) as stand_in:
        assert loaded(stand_in, "own")[0] == 200
        status, body, headers = loaded(stand_in, "added")
        error = body["error"]
        assert (status, error["type"]) == (500, "InternalServerError")
        assert "AccessDenied" in error["message"] and "s3:GetObject" in error["message"]
        assert "DataPrefix" in error["message"] and "retry-after" not in headers


def test_an_added_file_that_is_not_parquet_refuses_its_table(odd, moto):
    with standing_in(odd, moto) as stand_in:
        status, body, _ = loaded(stand_in, "text")
        assert status == 400 and "does not end as a Parquet file does" in body["error"]["message"]
        assert loaded(stand_in, "added")[0] == 200
