"""Sinks that write batches, and what each does about a commit that was not answered.

Batch n gives the keys n and n // 2 the text n; sinks that only append give it to n alone.
What a sink keeps in the table, to find its batch again, is what its sources say.
"""

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import urllib3
from polynya_local.clients import spark
from polynya_local.processes.serving import Bridge
from py4j.protocol import Py4JJavaError
from pyiceberg.exceptions import CommitFailedException, RESTError
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.table.name_mapping import create_mapping_from_schema

from tests.support.servers.lost_answers import LostAnswers
from tests.support.writes.hand_made import Entry, HandMade, equality_deletes, parquet
from tests.support.writes.java_deltas import Deltas, array
from tests.support.writes.writable import client_of


class ProgramFailed(Exception):
    """A program has ended with an error."""


FAILURES = (
    OSError,
    ProgramFailed,
    urllib3.exceptions.HTTPError,
    Py4JJavaError,
    RESTError,
    CommitFailedException,
)
"""What clients raise without an answer, or if their own retries are at an end."""

Rows = list[tuple[int, str]]


def appended(number: int) -> Rows:
    return [(number, f"{number}")]


def upserted(number: int) -> Rows:
    return [(id_, f"{number}") for id_ in sorted({number, number // 2})]


def arrow(rows: Rows) -> pa.Table:
    ids, texts = zip(*rows, strict=True)
    return pa.table({"id": pa.array(ids, pa.int32()), "s": texts})


class Sink:
    """Writes to the table main.t (id, s)."""

    delivery = "object-lambda"
    creates_its_table = False
    waits_for_the_server = False
    """It tries for minutes until the server is there again, and may need nobody to run it again."""
    commits = 1
    """Requests of a batch."""
    is_forgetful = False
    """It keeps nothing in the table, and writes a batch again that has landed."""

    def __init__(self, bridge: Bridge, s3_endpoint: str, proxy: LostAnswers) -> None:
        """Open the table. Args: bridge: with the proxy as catalog."""

    def write(self, number: int) -> None:
        """Commit a batch.

        Raises:
            FAILURES: it may have landed or not.
        """
        raise NotImplementedError

    def has_landed(self, number: int) -> bool:
        """Whether the sink finds the batch in the table; it writes it again if not."""
        return False

    def rows(self, batches: Sequence[int]) -> Rows:
        """The rows after commits of these batches."""
        raise NotImplementedError

    def close(self) -> None:
        pass


class Appending(Sink):
    def rows(self, batches):
        return sorted(row for number in batches for row in appended(number))


class Upserting(Sink):
    def rows(self, batches):
        return sorted(dict(row for number in batches for row in upserted(number)).items())


class PyIceberg(Appending):
    """Its request is sent again, twice, as Iceberg's Java does where it can."""

    def __init__(self, bridge, s3_endpoint, proxy):
        self._proxy, self._catalog = proxy, client_of(bridge)

    def write(self, number):
        self._catalog.load_table("main.t").append(arrow(appended(number)))

    def has_landed(self, number):
        sent = self._proxy.last
        for _ in range(2):
            answer = urllib3.request(
                "POST", self._proxy.uri + sent.path, body=sent.body, timeout=300
            )
            assert answer.status == 200, answer.data
        return True

    def close(self):
        self._catalog.close()


class OfPyIceberg(Sink):
    def __init__(self, bridge, s3_endpoint, proxy):
        self._catalog = client_of(bridge)

    def table(self):
        return self._catalog.load_table("main.t")

    def close(self):
        self._catalog.close()


class Tabular(OfPyIceberg, Appending):
    """Tabular's and Iceberg's Kafka Connect: offsets in the summary of an ancestor of main."""

    OFFSETS = "kafka.connect.offsets.control.sink"

    def write(self, number):
        offsets = {self.OFFSETS: json.dumps({"0": number})}
        self.table().append(arrow(appended(number)), snapshot_properties=offsets)

    def has_landed(self, number):
        table = self.table()
        snapshot = table.current_snapshot()
        while snapshot and self.OFFSETS not in snapshot.summary.additional_properties:
            snapshot = table.snapshot_by_id(snapshot.parent_snapshot_id)
        if not snapshot:
            return False
        return json.loads(snapshot.summary.additional_properties[self.OFFSETS])["0"] == number


class Estuary(OfPyIceberg, Appending):
    """S3 Iceberg: files without field ids, and a checkpoint in a property of the same commit."""

    def __init__(self, bridge, s3_endpoint, proxy):
        super().__init__(bridge, s3_endpoint, proxy)
        table = self.table()
        mapping = create_mapping_from_schema(table.schema()).model_dump_json()
        with table.transaction() as changes:
            changes.set_properties({"schema.name-mapping.default": mapping})

    def write(self, number):
        table = self.table()
        path = f"{table.properties['write.data.path']}/{number}.parquet"
        with PyArrowFileIO(self._catalog.properties).new_output(path).create(True) as file:
            pq.write_table(arrow(appended(number)), file)
        with table.transaction() as changes:
            changes.add_files([path])
            changes.set_properties({"flow_checkpoints_v1": json.dumps({"m": number})})

    def has_landed(self, number):
        checkpoints = json.loads(self.table().properties.get("flow_checkpoints_v1", "{}"))
        return checkpoints.get("m") == number


class Dlt(OfPyIceberg, Upserting):
    """Its merge is PyIceberg's upsert; a load that failed is loaded again."""

    is_forgetful = True

    def write(self, number):
        self.table().upsert(arrow(upserted(number)), join_cols=["id"])


class Staged(Upserting):
    """Uploads the files of a batch once, and commits them with deletes by key."""

    def __init__(self, bridge, s3_endpoint, proxy):
        self.client = HandMade(bridge, s3_endpoint)
        self._uploaded: dict[int, list[Entry]] = {}

    def files(self, number: int) -> list[Entry]:
        if number not in self._uploaded:
            rows = arrow(upserted(number))
            ids, texts = (column.combine_chunks() for column in rows.columns)
            deletes = equality_deletes({("id", 1): ids}, [1])
            files = parquet({("id", 1): ids, ("s", 2): texts}), deletes
            self._uploaded = {number: self.client.upload("t", *files)}
        return self._uploaded[number]

    def commit(self, number: int, **more: Any) -> None:
        """Commit the batch; after an answer of 409 on the table as it is then."""
        for _ in range(8):
            answer = self.client.commit("t", *self.files(number), **more)
            if answer[0] != 409:
                break
            print(answer[1])
        assert answer == (200, ""), answer


class RisingWave(Staged):
    """Asks for the snapshot by the id that it chose, and commits under that id again."""

    def write(self, number):
        self.commit(number, snapshot_id=2**42 + number)

    def has_landed(self, number):
        snapshots = self.client.load("t")["snapshots"]
        return 2**42 + number in [snapshot["snapshot-id"] for snapshot in snapshots]


class OLake(Staged):
    """The state of its two phases is a property, set in the commit of the rows."""

    def write(self, number):
        state = {"action": "set-properties", "updates": {"olake_2pc": f"{number}"}}
        self.commit(number, updates=[state])

    def has_landed(self, number):
        return self.client.load("t")["properties"].get("olake_2pc") == f"{number}"


class Debezium(Sink):
    """Iceberg's Java; an event without an acknowledged offset comes again, as an upsert.

    The expected rows are those of a table in Iceberg's in-memory catalog after the same commits.
    """

    is_forgetful = True

    def __init__(self, bridge, s3_endpoint, proxy):
        client = spark.open(bridge.catalog_uri, "lake", bridge.s3_endpoint)
        session = spark.session()
        self._iceberg = session._jvm.org.apache.iceberg
        self._java = SimpleNamespace(session=session, iceberg=self._iceberg)
        load = self._iceberg.spark.Spark3Util.loadIcebergTable
        table = load(session._jsparkSession, f"{client.catalog}.main.t")
        self.deltas = Deltas(self._java, table, ["id"])

    def write(self, number):
        self.commit(self.deltas, number)

    def commit(self, deltas: Deltas, number: int, branch: str = "main") -> None:
        deltas.commit(upserted(number), upserted(number), branch)

    def rows(self, batches):
        catalog = self._iceberg.inmemory.InMemoryCatalog()
        catalog.initialize("oracle", {})
        of = lambda *names: array(self._java.session, names)  # noqa: E731
        catalog.createNamespace(self._iceberg.catalog.Namespace.of(of("main")))
        name = self._iceberg.catalog.TableIdentifier.of(of("main", "t"))
        table = catalog.createTable(name, self.deltas.table.schema())
        oracle = Deltas(self._java, table, ["id"])
        for number in batches:
            self.commit(oracle, number)
        return sorted(oracle.rows().elements())


class DebeziumAppend(Debezium):
    """Without upsert an event that comes again is a second row: so it is with Iceberg, too."""

    def commit(self, deltas, number, branch="main"):
        deltas.commit(appended(number), [], branch)


class Airbyte(Debezium):
    """Writes to a branch, which then replaces main; a sync that failed begins again."""

    commits = 4
    BRANCH = "airbyte_staging"

    def write(self, number):
        table = self.deltas.table
        table.refresh()
        if not table.refs().containsKey(self.BRANCH):
            table.manageSnapshots().createBranch(self.BRANCH).commit()
        self.commit(self.deltas, number, self.BRANCH)
        table.manageSnapshots().replaceBranch("main", self.BRANCH).commit()
        table.manageSnapshots().removeBranch(self.BRANCH).commit()


SINKS: tuple[type[Sink], ...] = (PyIceberg, Tabular, Estuary, Dlt, RisingWave, OLake)
IN_JAVA: tuple[type[Sink], ...] = (Debezium, DebeziumAppend, Airbyte)
