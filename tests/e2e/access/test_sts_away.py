"""createTable while STS does not answer."""

import pytest
import requests
from moto.core import DEFAULT_ACCOUNT_ID
from polynya_local.processes.postgres import free_port

from tests.support.servers.in_process import bridge
from tests.support.writes.writable import EMPTY, set_up_writes

HEADER = {"X-Iceberg-Access-Delegation": "vended-credentials"}
SCHEMA = {
    "type": "struct",
    "fields": [{"id": 1, "name": "id", "type": "long", "required": False}],
}


@pytest.fixture(scope="module")
def tables(lake, moto):
    one = set_up_writes(lake.write("sts_away", EMPTY))
    settings = {
        "VENDING_ROLE": f"arn:aws:iam::{DEFAULT_ACCOUNT_ID}:role/Vended",
        "WRITER_ROLE": f"arn:aws:iam::{DEFAULT_ACCOUNT_ID}:role/Writer",
        "AWS_ENDPOINT_URL_STS": f"http://127.0.0.1:{free_port()}",
    }
    with bridge(one, moto, settings=settings, writes=True) as found:
        yield f"{found.catalog_uri}/v1/lake/namespaces/main/tables"


# Whether the creation is staged: then nothing has happened, and the client tries again.
@pytest.mark.parametrize(("stage_create", "status"), [(False, 200), (True, 503)])
def test_a_table_that_was_created_is_answered_without_credentials(tables, stage_create, status):
    name = f"created_{status}"
    body = {"name": name, "stage-create": stage_create, "schema": SCHEMA}
    answer = requests.post(tables, json=body, headers=HEADER, timeout=60)
    assert answer.status_code == status
    assert "storage-credentials" not in answer.json()
    found = requests.head(f"{tables}/{name}", timeout=60).status_code
    assert found == (404 if stage_create else 204)
