"""Which client reads which type and which lake: writes results.md beside it, or named.md.

`make matrix` runs it. It is not part of CI, because it takes two hours. With `ARGS="--lakes 01,13"`
it reads only those lakes and takes the others from the last run (`--kept`);
`--clients polars,daft` selects clients; without `--write` it only prints.
Every table is read now and at one earlier snapshot, counted, and filtered (=, >=, IN, IS NULL) by
values of two columns, first those that it is partitioned by; the judge is DuckLake.
"""

import argparse
import json
import logging
import os
import re
import select
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import boto3
import pyarrow as pa
from moto.server import ThreadedMotoServer
from polynya_local.clients import duckdb, native, pyiceberg, spark
from polynya_local.clients.canonical import difference, from_arrow
from polynya_local.clients.native import write_lake
from polynya_local.clients.spark_jars import ICEBERG
from polynya_local.lakes.lake_files import ALIAS
from polynya_local.processes.postgres import postgres
from polynya_local.processes.serving import Bridge, environment, serving
from pyiceberg.expressions import EqualTo, GreaterThanOrEqual, In, IsNull

from tests.differential.test_rows import NATIVE_DEFECTS
from tests.matrix.condition import DUCKDB, SPARK, Condition
from tests.matrix.conditions import conditions
from tests.support import rest
from tests.support.databases import copy_database
from tests.support.variants import written_by_duckdb_2
from tests.support.zoned import make_zoned

HERE = Path(__file__).parent
LAKES = HERE.parent / "lakes"
RESULTS, NAMED_RESULTS = HERE / "results.md", HERE / "named.md"
CACHE = HERE.parents[1] / ".cache"
BUCKET = "lakes"
VERSION_3 = "v3"
"""The lake with the types of format version 3, which is served as `lake+v3`."""
INTRODUCTION = """\
# What eight clients read of the test lakes

Written by `make matrix`. The first table has a row for each type (NULL, both ends, a value in
between, the last row inlined) and for each operation on a table. The clients read with the
delivery `materialize`. `yes`: all rows, at the newest snapshot and at one before, `count(*)`, and
how many rows have one value (of a partition column, if there is one), equal DuckLake's. `hidden`:
Polynya hides the column, because Iceberg has no such type. `no`: an error. `wrong`: other rows.
Spark reads without `HIDDEN_TYPES` here. The second table counts how many of these reads of each
test lake equal DuckLake's; the errors are named below it, each with the first three places.

"""
OF_NAMED = """\
# What eight clients read of their own warehouses

Written by `make matrix ARGS="--named --lakes …"`: each client reads the warehouse that makes up for
its faults and hides what nothing makes up for, such as `lake+spark`, of `polynya serve`. Past
snapshots are filtered, too, and fields of structs. [Without names](results.md), where all is
explained.

"""
OF_V3 = """\
The lake `v3`, read as `lake+v3`. DuckDB and Spark read variants in SQL, and cannot give them to
Arrow, as which the matrix compares rows:"""
SECONDS = 90  # the time limit for one answer of a client
INSIDE = {"PyIceberg": pyiceberg, "DuckDB": duckdb, "Spark": spark}
PLANNED = {"PyIceberg (planned)": pyiceberg, "Spark (planned)": spark}
"""The server plans their scans."""
OUTSIDE = {
    "Polars": "polars",
    "Daft": "daft",
    "DataFusion": "datafusion",
    "ClickHouse": "chdb",
    "Sail": "pysail",
}
MISREADS_AFTER_ERRORS = {"chdb"}
"""They may give the result of another query after an error: a new process reads on."""
NAMES = [*INSIDE, *PLANNED, *OUTSIDE]
EXPRESSIONS = {"=": EqualTo, ">=": GreaterThanOrEqual, "IN": In}
# One table for each type: NULL, its limits, a value between. The last value stays inlined.
TYPES = {
    "boolean": ("BOOLEAN", "true", "false"),
    "tinyint": ("TINYINT", "-128", "127"),
    "smallint": ("SMALLINT", "-32768", "32767"),
    "integer": ("INTEGER", "-2147483648", "2147483647"),
    "bigint": ("BIGINT", "-9223372036854775808", "9223372036854775807"),
    "hugeint": ("HUGEINT", "-1", "170141183460469231731687303715884105727"),
    "utinyint": ("UTINYINT", "0", "255"),
    "usmallint": ("USMALLINT", "0", "65535"),
    "uinteger": ("UINTEGER", "0", "4294967295"),
    "ubigint": ("UBIGINT", "0", "18446744073709551615"),
    "float": ("FLOAT", "'nan'", "'-inf'", "-0.0", "1.5"),
    "double": ("DOUBLE", "'nan'", "'-inf'", "-0.0", "1.5"),
    "decimal(4,1)": ("DECIMAL(4,1)", "-999.9", "999.9"),
    "decimal(18,4)": ("DECIMAL(18,4)", "-0.0001", "99999999999999.9999"),
    "decimal(38,10)": ("DECIMAL(38,10)", "-0.0000000001", "1234567890123456789012345678.5"),
    "date": ("DATE", "'1969-12-31'", "'2024-02-29'", "'9999-12-31'"),
    "date, BC and infinity": ("DATE", "'0044-03-15 (BC)'", "'infinity'", "'-infinity'"),
    "time": ("TIME", "'00:00:00'", "'23:59:59.999999'"),
    "timetz": ("TIMETZ", "'00:00:00+00'", "'23:59:59+05:30'"),
    "timestamp": ("TIMESTAMP", "'1969-12-31 23:59:59.5'", "'2024-02-29 01:02:03.456789'"),
    "timestamp, infinity": ("TIMESTAMP", "'infinity'", "'-infinity'"),
    "timestamp_s": ("TIMESTAMP_S", "'1969-12-31 23:59:59'", "'2024-02-29 01:02:03'"),
    "timestamp_ms": ("TIMESTAMP_MS", "'1969-12-31 23:59:59.5'", "'2024-02-29 01:02:03.456'"),
    "timestamp_ns": ("TIMESTAMP_NS", "'1969-12-31 23:59:59.5'", "'2024-02-29 01:02:03.456789123'"),
    "timestamptz": ("TIMESTAMPTZ", "'1969-12-31 23:59:59.5+00'", "'2024-02-29 01:02:03+05:30'"),
    "interval": ("INTERVAL", "'1 month 2 days 3 seconds'", "'0 seconds'"),
    "varchar": ("VARCHAR", "''", "'Ünï 🦆'", "'NULL'"),
    "blob": ("BLOB", "''", r"'\x00\xFF\x80'"),
    "json": ("JSON", """'{"a": [1, null]}'""", "'null'"),
    "uuid": (
        "UUID",
        "'00000000-0000-0000-0000-000000000000'",
        "'ffffffff-ffff-ffff-ffff-ffffffffffff'",
    ),
    "struct": ("STRUCT(a INTEGER, b VARCHAR)", "{'a': 1, 'b': NULL}", "{'a': NULL, 'b': 'x'}"),
    "list": ("INTEGER[]", "[]", "[1, NULL, 3]"),
    "list of structs": ("STRUCT(a INTEGER)[]", "[]", "[{'a': 1}, NULL, {'a': NULL}]"),
    "map": ("MAP(VARCHAR, INTEGER)", "MAP {}", "MAP {'k': 1, 'l': NULL}"),
    "struct of list and map": (
        "STRUCT(l VARCHAR[], m MAP(INTEGER, VARCHAR))",
        "{'l': ['a'], 'm': MAP {1: 'x'}}",
        "{'l': NULL, 'm': NULL}",
    ),
    "geometry": ("GEOMETRY", "'POINT (1 2)'", "'LINESTRING (0 0, 1 1)'"),
    "variant": ("VARIANT", "1", "'x'"),
}
# And one for each operation on tables. {t} is the table.
EVENTS = {
    "deleted rows": "CREATE TABLE {t} AS SELECT i FROM range(100) AS r(i); "
    "DELETE FROM {t} WHERE i % 3 = 0; DELETE FROM {t} WHERE i % 3 = 1",
    "rows deleted while inlined": "CREATE TABLE {t}(i INTEGER); INSERT INTO {t} VALUES (1), (2); "
    "DELETE FROM {t} WHERE i = 1; INSERT INTO {t} VALUES (3)",
    "flushed": "CREATE TABLE {t}(i INTEGER); INSERT INTO {t} VALUES (1), (2); "
    "DELETE FROM {t} WHERE i = 1; CALL ducklake_flush_inlined_data('lake', table_name => '{t}')",
    "merged files": "CREATE TABLE {t} AS SELECT i FROM range(50) AS r(i); "
    "INSERT INTO {t} SELECT i FROM range(50, 99) AS r(i); "
    "CALL ducklake_merge_adjacent_files('lake', '{t}'); DELETE FROM {t} WHERE i < 10",
    "column added": "CREATE TABLE {t} AS SELECT i FROM range(20) AS r(i); "
    "ALTER TABLE {t} ADD COLUMN n INTEGER; INSERT INTO {t} VALUES (1, 2)",
    "column added with a default": "CREATE TABLE {t} AS SELECT i FROM range(20) AS r(i); "
    "ALTER TABLE {t} ADD COLUMN n INTEGER DEFAULT 42; INSERT INTO {t} VALUES (1, NULL)",
    "column dropped and added again": "CREATE TABLE {t} AS SELECT i, i AS n FROM range(20) AS r(i);"
    "ALTER TABLE {t} DROP COLUMN n; ALTER TABLE {t} ADD COLUMN n VARCHAR; "
    "INSERT INTO {t} VALUES (1, 'x')",
    "column renamed": "CREATE TABLE {t} AS SELECT i, i AS n FROM range(20) AS r(i); "
    "ALTER TABLE {t} RENAME COLUMN n TO m; INSERT INTO {t} VALUES (1, 2)",
    "integer became bigint": "CREATE TABLE {t} AS SELECT i::INTEGER AS i FROM range(20) AS r(i); "
    "ALTER TABLE {t} ALTER COLUMN i SET DATA TYPE BIGINT; INSERT INTO {t} VALUES (5000000000)",
    "float became double": "CREATE TABLE {t} AS SELECT i::FLOAT AS i FROM range(20) AS r(i); "
    "ALTER TABLE {t} ALTER COLUMN i SET DATA TYPE DOUBLE; INSERT INTO {t} VALUES (0.1)",
    "partitioned by a column": "CREATE TABLE {t}(k VARCHAR, i INTEGER); "
    "ALTER TABLE {t} SET PARTITIONED BY (k); "
    "INSERT INTO {t} SELECT 'k%/' || i % 3, i FROM range(30) AS r(i); "
    "INSERT INTO {t} SELECT NULL, i FROM range(20) AS r(i); DELETE FROM {t} WHERE i < 4",
    "partitioned by month, then bucket": "CREATE TABLE {t}(d DATE, i INTEGER); "
    "ALTER TABLE {t} SET PARTITIONED BY (year(d), month(d)); "
    "INSERT INTO {t} SELECT DATE '2024-01-01' + i::INT * 10, i FROM range(20) AS r(i); "
    "ALTER TABLE {t} SET PARTITIONED BY (bucket(3, i)); "
    "INSERT INTO {t} SELECT DATE '2024-01-01' + i::INT * 10, i FROM range(20, 40) AS r(i)",
    "never written": "CREATE TABLE {t}(i INTEGER, s VARCHAR)",
    "all rows deleted": "CREATE TABLE {t} AS SELECT i FROM range(20) AS r(i); DELETE FROM {t}",
}
SPACE = "name with a space"
OF_VERSION_3 = {name: TYPES[name] for name in ("timestamp_ns", "geometry", "variant")}
OF_VERSION_3["timestamptz_ns"] = TYPES["timestamp_ns"]
ZONED = ["timestamptz_ns", "zoned_nanoseconds"]
"""The tables whose column v is in UTC. DuckDB 1.5.5, the judge, reads it without a zone."""
# Tables of format version 3 because of one more column, which the clients need not read.
EVENTS_OF_VERSION_3 = {
    "deletion vectors": "CREATE TABLE {t} AS SELECT i, 'a' || i AS s FROM range(100) AS r(i); "
    "ALTER TABLE {t} ADD COLUMN n INTEGER DEFAULT 42; "
    "INSERT INTO {t} SELECT i, 'b', i FROM range(100, 150) AS r(i); "
    "DELETE FROM {t} WHERE i % 3 = 0; DELETE FROM {t} WHERE i % 3 = 1",
    "nanoseconds and deletion vectors": "CREATE TABLE {t} AS SELECT i, "
    "make_timestamp_ns(1700000000000000000 + i) AS v FROM range(100) AS r(i); "
    "INSERT INTO {t} SELECT i, make_timestamp_ns(1700000000000000000 - i) FROM range(9) AS r(i); "
    "DELETE FROM {t} WHERE i % 3 = 0",
    "zoned nanoseconds": "CREATE TABLE {t} AS SELECT i, "
    "make_timestamp_ns(1700000000000000000 + i) AS v FROM range(100) AS r(i); "
    "INSERT INTO {t} SELECT i, make_timestamp_ns(1700000000000000000 - i) FROM range(9) AS r(i); "
    "DELETE FROM {t} WHERE i % 3 = 0",
    "nanoseconds by day": "CREATE TABLE {t}(i INTEGER, v TIMESTAMP_NS); "
    "ALTER TABLE {t} SET PARTITIONED BY (year(v), month(v), day(v)); "
    "INSERT INTO {t} SELECT i, make_timestamp_ns(i * 43200000000000 + i) "
    "FROM range(-4, 4) AS r(i)",
}
ATTACH = "ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}'); USE lake;\n"


@dataclass
class Seen:
    """What one client read of one lake."""

    same: int = 0
    hidden: set[str] = field(default_factory=set)  # tables with a hidden column
    faults: list[tuple[str, str]] = field(default_factory=list)  # (table, what was wrong)

    def say(self, table: str, words: str) -> None:
        self.faults.append((table, words))


class Outside:
    """A client in the other Python; after a crash the next question starts it again."""

    def __init__(self, python: str, package: str, where: dict) -> None:
        self._command = [python, str(HERE / "reader.py"), package]
        self._where, self._process = where, None

    def rows(self, namespace, table, snapshot_id, blobs) -> pa.Table | None:
        with tempfile.TemporaryDirectory() as folder:
            file = f"{folder}/rows"
            more = {"snapshot_id": snapshot_id, "file": file, "blobs": blobs}
            if self._ask("rows", namespace, table, **more)["rows"] is None:
                return None
            return pa.ipc.open_stream(Path(file).read_bytes()).read_all()

    def count(self, namespace, table) -> int:
        return self._ask("count", namespace, table)["count"]

    def count_where(self, namespace, table, condition: Condition) -> int | None:
        return self._ask("count_where", namespace, table, condition=condition)["count"]

    def _ask(self, what: str, namespace: str, table: str, **more) -> dict:
        if self._process is None:
            self._start()
        self._write({"what": what, "namespace": namespace, "table": table, **more})
        ready, _, _ = select.select([self._process.stdout], [], [], SECONDS)
        line = self._process.stdout.readline() if ready else ""
        if not line:
            self.close()
            raise RuntimeError("the process died" if ready else f"no answer within {SECONDS} s")
        answer = json.loads(line)
        if "error" in answer:
            if self._command[-1] in MISREADS_AFTER_ERRORS:
                self.close()
            raise RuntimeError(answer["error"])
        return answer

    def _start(self) -> None:
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._write(self._where)

    def _write(self, message: dict) -> None:
        with suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(message) + "\n")
            self._process.stdin.flush()

    def close(self) -> None:
        if self._process:
            with self._process:
                self._process.kill()
            self._process = None


class Inside:
    """A client that the tests use too."""

    def __init__(self, module, where: dict) -> None:
        self._module = module
        self._client = module.open(where["catalog_uri"], where["warehouse"], where["s3_endpoint"])
        if module is spark:
            spark.session().sparkContext.setLogLevel("OFF")

    def rows(self, namespace, table, snapshot_id, blobs) -> pa.Table:
        return self._client.rows(namespace, table, snapshot_id)

    def count(self, namespace, table) -> int:
        if self._module is pyiceberg:
            return self._client._catalog.load_table((namespace, table)).scan().count()
        sql = f"SELECT count(*) AS n FROM {self._client.source(namespace, table)}"
        return self._query(sql).column(0)[0].as_py()

    def count_where(self, namespace, table, condition: Condition) -> int | None:
        if self._module is pyiceberg:
            name, values = ".".join(condition.path), condition.python_values()
            if condition.operator == "IS NULL":
                wanted = IsNull(name)
            else:
                value = values if condition.operator == "IN" else values[0]
                wanted = EXPRESSIONS[condition.operator](name, value)
            loaded = self._client._catalog.load_table((namespace, table))
            rows = loaded.scan(row_filter=wanted, snapshot_id=condition.snapshot_id).to_arrow()
            return rows.num_rows
        where = condition.sql(DUCKDB if self._module is duckdb else SPARK)
        if where is None:
            return None
        source = self._client.source(namespace, table, condition.snapshot_id)
        if self._module is duckdb:
            # Not count(*), which DuckDB may answer from the metadata.
            return self._query(f"SELECT * FROM {source} WHERE {where}").num_rows
        return self._query(f"SELECT count(*) FROM {source} WHERE {where}").column(0)[0].as_py()

    def _query(self, sql: str) -> pa.Table:
        if self._module is duckdb:
            return self._client.query(sql)
        return spark.session().sql(sql).toArrow()

    def close(self) -> None:
        self._client.close()


def opened(name: str, python: str, where: dict):
    if module := (INSIDE | PLANNED).get(name):
        return Inside(module, where)
    return Outside(python, OUTSIDE[name], where)


def read(
    lake,
    s3_endpoint: str,
    clients: list[str],
    python: str,
    delivery: str,
    are_named: bool = False,
) -> dict[str, Seen]:
    """Read every table that the bridge serves of a lake with every client.

    Args:
        are_named: each client reads the lake that makes up for its faults alone (`lake+spark`).
    """
    seen = {name: Seen() for name in clients}
    if are_named:
        read_one_by_one(lake, s3_endpoint, seen, python)
        return seen
    judge = native.open(lake, s3_endpoint)
    planned = [name for name in clients if name in PLANNED]
    serving_clients = serve(lake, s3_endpoint, "client", delivery)
    with serving_clients as (bridge, where), ExitStack() as more:
        readers = {name: opened(name, python, where) for name in clients if name not in PLANNED}
        if planned:
            _, server = more.enter_context(serve(lake, s3_endpoint, "server", delivery))
            readers |= {name: opened(name, python, server) for name in planned}
        try:
            catalog = rest.Rest(bridge.catalog_uri, bridge.warehouse)
            for table in judge.tables():
                read_table(lake.name, judge, catalog, table, readers, seen)
        except rest.Refused as refused:
            print(f"  refused: {refused}", flush=True)
        finally:
            for reader in readers.values():
                reader.close()
            judge.close()
    return seen


def read_one_by_one(
    lake, s3_endpoint: str, seen: dict[str, Seen], python: str, most_past: int = 1
) -> None:
    """Read the warehouse of each client with it, with conditions at past snapshots too."""
    judge = native.open(lake, s3_endpoint)
    with serve(lake, s3_endpoint, "client", "object-lambda") as (bridge, where), closing(judge):
        for client in seen:
            warehouse = f"{where['warehouse']}+{client.lower()}"
            catalog = rest.Rest(bridge.catalog_uri, warehouse)
            with closing(opened(client, python, {**where, "warehouse": warehouse})) as reader:
                for table in judge.tables():
                    reading = {client: reader}
                    read_table(lake.name, judge, catalog, table, reading, seen, most_past, True)


@contextmanager
def serve(lake, s3_endpoint: str, planning: str, delivery: str) -> Iterator[tuple[Bridge, dict]]:
    """Serve a lake, with scans that the client or the server plans."""
    settings = {"SCAN_PLANNING": planning}
    schema = lake.metadata_schema
    with serving(
        lake.database.url,
        s3_endpoint,
        delivery=delivery,
        metadata_schema=schema,
        settings=settings,
    ) as bridge:
        bridge = named(bridge, lake.name)
        yield (
            bridge,
            {
                "catalog_uri": bridge.catalog_uri,
                "warehouse": bridge.warehouse,
                "s3_endpoint": bridge.s3_endpoint,
                "bucket": ALIAS if delivery == "object-lambda" else BUCKET,
            },
        )


def named(bridge: Bridge, lake: str) -> Bridge:
    """With the warehouse that shows types of version 3, for the lake that has them."""
    return replace(bridge, warehouse=f"{bridge.warehouse}+v3") if lake == VERSION_3 else bridge


def read_table(
    lake: str,
    judge,
    catalog,
    table,
    readers: dict,
    seen: dict[str, Seen],
    most_past: int = 1,
    filters_past: bool = False,
) -> None:
    """Ask all clients about a table, also at a few past snapshots."""
    name = f"{table.namespace}.{table.name}"
    try:
        metadata = catalog.load_table(table.namespace, table.name)
    except rest.Refused as refused:
        print(f"  {name} refused: {refused}", flush=True)
        return
    hidden = frozenset(json.loads(metadata["properties"].get("polynya.hidden-columns", "[]")))
    ids = sorted(snapshot["snapshot-id"] for snapshot in metadata["snapshots"])
    past = ids[:-1]
    then = {past[len(past) * (2 * n + 1) // (2 * most_past)] for n in range(most_past) if past}
    truths = {
        n: (judge.canonical(table.namespace, table.name, n, hidden), columns)
        for n in [None, *sorted(then)]
        if (lake, table.name, n) not in NATIVE_DEFECTS
        and not hidden.issuperset(columns := judge.columns(table.namespace, table.name, n))
    }
    asked = [None, *(sorted(then) if filters_past else ())]
    wanted = [c for n in asked for c in conditions(judge, table.namespace, table.name, metadata, n)]
    for client, reader in readers.items():
        if hidden:
            seen[client].hidden.add(name)
        for snapshot_id, (truth, columns) in truths.items():
            at = name if snapshot_id is None else f"{name} at {snapshot_id}"
            blobs = [column for column, type_ in columns.items() if str(type_) == "BLOB"]
            try:
                rows = reader.rows(table.namespace, table.name, snapshot_id, blobs)
                if rows is None:
                    continue
                rows = in_native_units(rows, columns)
                wrong = difference(truth, from_arrow(rows, columns, hidden))
            except Exception as error:
                wrong = [words_of(error)]
            note(seen[client], at, wrong)
        total = truths[None][0].rows.total() if None in truths else None
        where = (table.namespace, table.name)
        counts = {"count(*)": (total, partial(reader.count, *where))} | {
            str(one): (one.expected, partial(reader.count_where, *where, one)) for one in wanted
        }
        for what, (expected, count) in counts.items():
            if (wrong := miscount(count, expected)) is not None:
                note(seen[client], f"{what} of {name}", wrong)


def miscount(count: Callable[[], int | None], expected: int | None) -> list[str] | None:
    """The difference between two numbers of rows, empty if DuckLake's number is unknown; None if
    the client cannot be asked."""
    try:
        found = count()
    except Exception as error:
        return [words_of(error)]
    if found is None:
        return None
    return [] if expected in (None, found) else [f"the client finds {found} rows, not {expected}"]


def in_native_units(rows: pa.Table, columns: dict) -> pa.Table:
    """The same values: some clients return time in nanoseconds, and ClickHouse adds UTC."""
    for place, given in enumerate(rows.schema):
        if given.name in columns:
            type_ = _native_units(given.type, columns[given.name])
            if type_ != given.type:
                rows = rows.set_column(place, given.name, rows[given.name].cast(type_))
    return rows


def _native_units(given: pa.DataType, native: Any) -> pa.DataType:
    wanted = str(native)
    if wanted == "TIME" and pa.types.is_time64(given):
        return pa.time64("us")
    if wanted.startswith("TIMESTAMP") and "ZONE" not in wanted and pa.types.is_timestamp(given):
        return pa.timestamp(given.unit)
    if native.id == "struct" and pa.types.is_struct(given):
        types = dict(native.children)
        return pa.struct(
            [
                field.with_type(_native_units(field.type, types[field.name]))
                if field.name in types
                else field
                for field in given
            ]
        )
    if native.id == "list" and (pa.types.is_list(given) or pa.types.is_large_list(given)):
        of = dict(native.children)["child"]
        item = given.value_field.with_type(_native_units(given.value_type, of))
        return pa.list_(item) if pa.types.is_list(given) else pa.large_list(item)
    return given


def note(seen: Seen, what: str, wrong: list[str]) -> None:
    if wrong:
        seen.say(what, "; ".join(wrong[:2]))
    else:
        seen.same += 1


def words_of(error: Exception) -> str:
    lines = [line for line in str(error).splitlines() if not line.startswith(("\tat ", "\t..."))]
    cause = " ".join(lines).rsplit("Caused by: ", 1)[-1]  # Java puts the cause last
    return " ".join(cause.split())[:400]


@contextmanager
def s3():
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    os.environ.update(environment({}))
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    endpoint = f"http://{host}:{port}"
    boto3.client("s3", endpoint_url=endpoint).create_bucket(Bucket=BUCKET)
    yield endpoint
    server.stop()


def table_of(name: str) -> str:
    return re.sub(r"\W+", "_", name).strip("_")


def scripts(folder: Path) -> list[Path]:
    """All lakes: that of the types, that of version 3, and the test lakes."""
    types, version_3 = folder / "types.sql", folder / f"{VERSION_3}.sql"
    space = f'CREATE TABLE "{SPACE}" AS SELECT 1 AS "column with a space";\n'
    types.write_text(ATTACH + of_types(TYPES) + of_events(EVENTS) + space)
    _, _, more = (LAKES / "version_3" / "types.sql").read_text().partition("USE lake;\n")
    version_3.write_text(
        ATTACH
        + of_types(OF_VERSION_3)
        + of_events(EVENTS_OF_VERSION_3)
        + "CALL lake.set_option('data_inlining_row_limit', 0);\n"
        + more
    )
    return [types, version_3, *sorted(LAKES.glob("*.sql"))]


def written(script: Path, name: str, server, s3_endpoint: str):
    """The lake of a script; that of version 3 with what DuckDB 2.0 writes."""
    database, place = server.create_database(name), f"s3://{BUCKET}/{script.stem}"
    lake = write_lake(script.stem, script.read_text(), database, place, s3_endpoint)
    if script.stem == VERSION_3:
        written_by_duckdb_2(lake, s3_endpoint, ["variant"])
        database = copy_database(server, lake.database, f"{name}_zoned")
        lake = replace(lake, database=database, native=lake.database)
        make_zoned(lake, s3_endpoint, ZONED)
    return lake


def of_types(types: dict) -> str:
    """SQL of a table for each type."""
    text = ""
    for name, (type_, *values) in types.items():
        rows = ", ".join(f"({n}, CAST({value} AS {type_}))" for n, value in enumerate(values))
        table = table_of(name)
        text += (
            f"CREATE TABLE {table}(n INTEGER, v {type_});\n"
            f"CALL lake.set_option('data_inlining_row_limit', 0, table_name => '{table}');\n"
            f"INSERT INTO {table} VALUES (-1, NULL), {rows};\n"
            f"CALL lake.set_option('data_inlining_row_limit', 10, table_name => '{table}');\n"
            f"INSERT INTO {table} VALUES ({len(values)}, CAST({values[-1]} AS {type_}));\n"
        )
    return text


def of_events(events: dict[str, str]) -> str:
    """SQL of a table for each event."""
    return "".join(sql.format(t=table_of(name)) + ";\n" for name, sql in events.items())


def versions(python: str, clients: list[str]) -> dict[str, str]:
    script = "import sys; from importlib.metadata import version; print(version(sys.argv[1]))"
    found = {
        "PyIceberg": version("pyiceberg"),
        "DuckDB": version("duckdb"),
        "Spark": f"{version('pyspark')}, Iceberg {ICEBERG}",
    }
    found |= {name: found[module.NAME] for name, module in PLANNED.items()}
    for name, package in OUTSIDE.items():
        if name in clients:
            command = [python, "-c", script, package]
            found[name] = subprocess.run(command, capture_output=True, text=True).stdout.strip()
    return {name: found[name] for name in clients}


def kinds(seen: dict[str, Seen], names: Iterable[str]) -> list[str]:
    """The table type x client, from the lake that has a table for each."""
    header = ["", *seen]
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for name in names:
        table = "main." + (name if name == SPACE else table_of(name))
        cells = [cell(one, table) for one in seen.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return lines


def cell(seen: Seen, table: str) -> str:
    about = {
        what.replace(table, ""): words
        for what, words in seen.faults
        if re.fullmatch(rf"(.+ of )?{re.escape(table)}( at \d+)?", what, re.DOTALL)
    }
    if not about:
        return "hidden" if table in seen.hidden else "yes"
    if all(re.search(r"rows missing|the client finds|columns missing", w) for w in about.values()):
        return "**wrong**"
    return "**no**" if "" in about else "**not all**"


def lakes_table(results: dict[str, dict[str, Seen]], clients: list[str]) -> list[str]:
    lines = ["| lake | " + " | ".join(clients) + " |", "|---|" + "---|" * len(clients)]
    for lake, seen in results.items():
        cells = [
            f"{one.same}" if not one.faults else f"{one.same} of {one.same + len(one.faults)}"
            for one in seen.values()
        ]
        lines.append(f"| {lake} | " + " | ".join(cells) + " |")
    return lines


def faults(results: dict[str, dict[str, Seen]], clients: list[str]) -> list[str]:
    """Every message of a client, once, with the tables that it concerns."""
    lines = []
    for client in clients:
        where: dict[str, list[str]] = defaultdict(list)
        for lake, seen in results.items():
            for what, words in seen[client].faults:
                where[generalised(words)].append(f"{lake} {what}")
        lines.append(f"### {client}\n")
        lines += [
            f"- `{words.replace('`', '´')}`: {', '.join(places[:3])}"
            + (f" and {len(places) - 3} more" if len(places) > 3 else "")
            for words, places in sorted(where.items(), key=lambda item: -len(item[1]))
        ] or ["none"]
        lines.append("")
    return lines


def generalised(words: str) -> str:
    """The message without names of files and numbers of rows, so that equal faults are equal."""
    words = re.sub(r"s3://\S+?(?=[\s'\",)]|$)", "s3://…", words)
    words = re.sub(r"[\w-]+/[0-9a-f-]{36}/g3/[\w.-]+", "…", words)
    words = re.sub(r"ducklake-[0-9a-f-]{36}", "ducklake-…", words)
    words = re.sub(r"The table or view .*", "", words)
    words = re.sub(r"scans of the table \S+ are", "scans of the table … are", words)
    words = re.sub(r"\btask \d+ ", "task … ", words)
    words = re.sub(r"^\d+ rows missing, \d+ rows surplus; (.*?) in .*", r"\1", words)
    return words[:200]


def keep(file: Path, results: dict[str, dict[str, Seen]]) -> None:
    plain = {
        lake: {
            client: {"same": s.same, "hidden": sorted(s.hidden), "faults": s.faults}
            for client, s in seen.items()
        }
        for lake, seen in results.items()
    }
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps(plain))


def kept(file: Path, clients: list[str]) -> dict[str, dict[str, Seen]]:
    if not file.exists():
        return {}
    return {
        lake: {
            client: Seen(s["same"], set(s["hidden"]), [tuple(fault) for fault in s["faults"]])
            for client, s in seen.items()
        }
        for lake, seen in json.loads(file.read_text()).items()
        if seen.keys() == set(clients)
        and (lake in ("types", VERSION_3) or (LAKES / f"{lake}.sql").exists())
    }


def add_delivery(parser: argparse.ArgumentParser) -> None:
    """Add the option --delivery."""
    parser.add_argument(
        "--delivery",
        choices=("materialize", "object-lambda"),
        default="materialize",
        help="that of `polynya serve`; with object-lambda it makes up for faults (CLIENTS)",
    )


def add_named(parser: argparse.ArgumentParser) -> None:
    """Add the option with which each client reads a warehouse of its own."""
    parser.add_argument(
        "--named",
        action="store_true",
        help="each client reads the lake for itself, such as lake+spark, with object-lambda",
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "python", help="the Python of the virtual environment with the other clients"
    )
    parser.add_argument("--lakes", default="", help="only these: 01,13; `types` is the first table")
    parser.add_argument("--clients", default=",".join(NAMES))
    parser.add_argument("--kept", type=Path, help="earlier results of each lake")
    add_delivery(parser)
    add_named(parser)
    parser.add_argument(
        "--write",
        action="store_true",
        help=f"write the tables into {RESULTS.name}, or {NAMED_RESULTS.name}",
    )
    chosen = parser.parse_args()
    names = [*INSIDE, *OUTSIDE] if chosen.named else NAMES
    clients = [name for name in names if name.lower() in chosen.clients.lower().split(",")]
    results_file, introduction = (
        (NAMED_RESULTS, OF_NAMED) if chosen.named else (RESULTS, INTRODUCTION)
    )
    file = chosen.kept or CACHE / f"matrix-{results_file.stem}.json"
    wanted = set(filter(None, chosen.lakes.split(",")))
    results = kept(file, clients) if wanted else {}
    with tempfile.TemporaryDirectory() as folder, postgres() as server, s3() as endpoint:
        for script in scripts(Path(folder)):
            if wanted and script.stem.split("_")[0] not in wanted:
                continue
            print(script.stem, flush=True)
            try:
                lake = written(script, f"m_{script.stem}", server, endpoint)
                asked = (clients, chosen.python, chosen.delivery, chosen.named)
                results[script.stem] = read(lake, endpoint, *asked)
            except Exception as error:
                print(f"  not read: {words_of(error)}", flush=True)
                continue
            keep(file, results)
            for client, seen in results[script.stem].items():
                print(f"  {client}: {seen.same} same, {len(seen.faults)} not", flush=True)
                for what, words in seen.faults:
                    print(f"    {what}: {words}", flush=True)
    spark.stop()
    results = dict(sorted(results.items(), key=lambda item: (item[0] != "types", item[0])))
    keep(file, results)
    used = ", ".join(f"{name} {v}" for name, v in versions(chosen.python, clients).items())
    text = [f"{datetime.now(UTC):%Y-%m-%d}, {used}.", ""]
    if "types" in results:
        text += kinds(results["types"], [*TYPES, *EVENTS, SPACE])
    if VERSION_3 in results:
        text += ["", OF_V3, "", *kinds(results[VERSION_3], [*OF_VERSION_3, *EVENTS_OF_VERSION_3])]
    text += ["", *lakes_table(results, clients), "", *faults(results, clients)]
    body = "\n".join(text)
    print(body)
    if chosen.write:
        results_file.write_text(introduction + body.rstrip("\n") + "\n")


if __name__ == "__main__":
    sys.exit(main())
