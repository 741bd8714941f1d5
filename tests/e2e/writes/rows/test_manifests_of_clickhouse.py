"""ClickHouse puts manifests below the table's location, whatever `write.metadata.path` says."""

import pyarrow as pa
import pytest

from tests.support.servers.in_process import bridge
from tests.support.writes.hand_made import HandMade, parquet
from tests.support.writes.writable import EMPTY, judging, set_up_writes

pytestmark = pytest.mark.versions("1.0")

ROW = parquet({("id", 1): pa.array([7], pa.int32())})


class BelowTheLocation(HandMade):
    def __init__(self, served, s3_endpoint, folder):
        super().__init__(served, s3_endpoint)
        self._folder = folder

    def put(self, document, property_, name, body):
        if property_ == "write.metadata.path":
            properties = {property_: f"{document['location']}/{self._folder}"}
            document = {**document, "properties": properties}
        return super().put(document, property_, name, body)


@pytest.mark.parametrize(
    ("folder", "status", "rows"),
    [("metadata", 200, [(7,)]), ("metadata/more", 400, []), ("g3", 400, [])],
)
def test_manifests_below_the_location(lake, moto, folder, status, rows):
    written = set_up_writes(lake.write("beside", EMPTY))
    with judging(written, moto) as judge:
        judge.query("CREATE TABLE lake.main.t (id INTEGER)")
        with bridge(written, moto, writes=True, delivery="materialize") as served:
            answer = BelowTheLocation(served, moto, folder).commit("t", ROW)
        assert (answer[0], "is not below" in answer[1]) == (status, status == 400), answer
        assert judge.query("FROM lake.main.t") == rows
