"""Loaders that are programs, as sinks of tests/support/writes/sinks.py."""

import json
import os
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path

from polynya_local.clients.pyiceberg import s3_properties
from polynya_local.processes.serving import KEY_ID, SECRET

from tests.engines.go.program import PROGRAM, build
from tests.engines.sling import program as sling
from tests.support.lakes import BUCKET
from tests.support.writes.sinks import (
    Appending,
    ProgramFailed,
    Sink,
    Upserting,
    appended,
    upserted,
)
from tests.support.writes.writable import client_of

HERE = Path(__file__).parent
ENGINES = HERE.parents[2] / ".cache" / "engines"


class Program(Sink):
    """A process for each batch."""

    delivery = "materialize"
    is_forgetful = True

    def __init__(self, bridge, s3_endpoint, proxy):
        self.bridge, self.s3_endpoint = bridge, s3_endpoint
        self.scratch = tempfile.TemporaryDirectory()
        self.folder = self.scratch.name

    def run(self, *words: object, **environment: str) -> str:
        """What it prints.

        Raises:
            ProgramFailed: it ended with another code than 0.
        """
        own = {"HOME": self.folder, "AWS_EC2_METADATA_DISABLED": "true", **environment}
        ended = subprocess.run(
            [str(word) for word in words],
            env={**os.environ, **own},
            capture_output=True,
            text=True,
            timeout=300,
        )
        if ended.returncode:
            raise ProgramFailed(f"{ended.returncode}: {(ended.stdout + ended.stderr)[-1500:]}")
        return ended.stdout

    def close(self):
        self.scratch.cleanup()


class Creating(Program):
    """Creates the table itself, by a first batch."""

    creates_its_table = True

    def __init__(self, bridge, s3_endpoint, proxy):
        super().__init__(bridge, s3_endpoint, proxy)
        self.write(-1)

    def rows(self, batches):
        return super().rows([-1, *batches])


class Dlt(Creating):
    """dlt itself: the load that failed is run again, and loads the package that is left."""

    disposition = "merge"

    def write(self, number):
        catalog = {
            "type": "rest",
            "uri": self.bridge.catalog_uri,
            "warehouse": self.bridge.warehouse,
            **s3_properties(self.bridge.s3_endpoint),
        }
        values = [str(value) for row in self.batch(number) for value in row]
        self.run(
            ENGINES / "dlt" / "bin" / "python",
            HERE / "dlt_load.py",
            self.folder,
            self.disposition,
            *values,
            ICEBERG_CATALOG__ICEBERG_CATALOG_TYPE="rest",
            ICEBERG_CATALOG__ICEBERG_CATALOG_CONFIG=json.dumps(catalog),
            DESTINATION__FILESYSTEM__BUCKET_URL=f"s3://{BUCKET}/{Path(self.folder).name}",
            DESTINATION__FILESYSTEM__CREDENTIALS__ENDPOINT_URL=self.s3_endpoint,
            DESTINATION__FILESYSTEM__CREDENTIALS__AWS_ACCESS_KEY_ID=KEY_ID,
            DESTINATION__FILESYSTEM__CREDENTIALS__AWS_SECRET_ACCESS_KEY=SECRET,
            RUNTIME__DLTHUB_TELEMETRY="false",
        )


class DltMerge(Dlt, Upserting):
    batch = staticmethod(upserted)


class DltAppend(Dlt, Appending):
    disposition = "append"
    batch = staticmethod(appended)


class IcebergGo(Program, Appending):
    """Looks for the batch in the summaries after a commit of unknown state."""

    is_forgetful = False

    def __init__(self, bridge, s3_endpoint, proxy):
        super().__init__(bridge, s3_endpoint, proxy)
        build()

    def go(self, step: str, number: int) -> str:
        where = [self.bridge.catalog_uri, self.bridge.s3_endpoint, "main", "t"]
        return self.run(PROGRAM, *where, f"{step} {number}")

    def write(self, number):
        self.go("append the row", number)

    def has_landed(self, number):
        return self.go("has the row", number).strip() == "true"


class IcebergGoUpsert(IcebergGo, Upserting):
    """Rows and deletes by key; the batch again."""

    is_forgetful = True

    def write(self, number):
        self.go("upsert the rows", number)

    def has_landed(self, number):
        return False

    def rows(self, batches):
        return Upserting.rows(self, batches)


class Sling(Creating, Appending):
    """Incremental: it loads what is greater than the greatest `load` of the table.

    It compares numbers as texts (1.4.11), with any catalog: all have the same length here. What it
    commits again has no rows.
    """

    def rows(self, batches):
        return super().rows(sorted({*batches}))

    def write(self, number):
        file = Path(self.folder) / "rows.csv"
        batches = range(-1, number + 1)
        rows = [(*row, 20_000 + batch) for batch in batches for row in appended(batch)]
        file.write_text("\n".join(["id,s,load", *(",".join(map(str, row)) for row in rows), ""]))
        self.run(
            sling.PROGRAM,
            *("run", "--src-stream", f"file://{file}", "--tgt-conn", "ICE"),
            *("--tgt-object", "main.t", "--mode", "incremental", "--update-key", "load"),
            **sling.environment(self.bridge, self.folder),
        )


class ClickHouse(Program):
    """An INSERT that failed is sent again, unless ClickHouse finds its rows."""

    waits_for_the_server = True
    is_forgetful = False

    FILES = 3
    """Of an INSERT, each with a row."""

    def __init__(self, bridge, s3_endpoint, proxy):
        super().__init__(bridge, s3_endpoint, proxy)
        with closing(client_of(bridge)) as client:
            location = client.load_table("main.t").location()
        self.bucket = location.removeprefix("s3://").partition("/")[0]

    def write(self, number):
        self.query(
            "INSERT INTO ice.`main.t` "
            f"SELECT toInt32({number}), toString(number) FROM numbers({self.FILES})"
        )

    def has_landed(self, number):
        count = int(self.query(f"SELECT count() FROM ice.`main.t` WHERE id = {number}"))
        assert count in (0, self.FILES), count
        return count > 0

    def rows(self, batches):
        return sorted((number, f"{part}") for number in batches for part in range(self.FILES))

    def query(self, sql: str) -> str:
        return self.run(
            ENGINES / "chdb" / "bin" / "python",
            HERE / "chdb_query.py",
            self.bridge.catalog_uri,
            f"{self.bridge.s3_endpoint}/{self.bucket}",
            sql,
        )


PROGRAMS: tuple[type[Program], ...] = (
    DltMerge,
    DltAppend,
    IcebergGo,
    IcebergGoUpsert,
    Sling,
    ClickHouse,
)
