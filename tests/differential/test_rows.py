"""Every Iceberg client reads exactly the rows that DuckLake has, at every listed snapshot.

The judge is DuckDB's own ducklake extension. A table may hide a column or be refused, with a
reason; it may never be wrong.
"""

import json
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from itertools import pairwise

import pytest
from polynya_local.clients import duckdb, native, pyiceberg, spark
from polynya_local.clients.canonical import difference, from_arrow
from polynya_local.clients.spark_jars import why_not
from polynya_local.processes.serving import serving

from tests.support import rest
from tests.support.lakes import number_of
from tests.support.native_lakes import snapshots
from tests.support.servers import in_process

# Lakes of which every table must be readable; elsewhere a refusal with a reason is accepted.
READABLE = {"01", "03", "04", "08", "09", "10", "13", "14", "16", "22", "25", "31", "40"}
# The ones with types that have no Iceberg equivalent: columns may be hidden.
HIDING = {"16"}
# (lake, table, snapshot) -> why DuckLake's own answer is wrong there
TWO_DELETE_FILES = "counts a row once for each of two delete files that are visible on its file"
NATIVE_DEFECTS: dict[tuple[str, str, int | None], str] = {
    ("60_rewrite_data_files", "rw", 8): TWO_DELETE_FILES,
    ("71_expire_middle", "em", 11): TWO_DELETE_FILES,
    ("71_expire_middle", "em", 12): TWO_DELETE_FILES,
}
# (lake, table, snapshot) -> why it cannot be shown exactly
DROPPED_FROM_PATH = "added files have a column in their path that was dropped since"
LEFT_OUT: dict[tuple[str, str, int], str] = {
    ("77_hive_deletes_rename", "hs", 15): DROPPED_FROM_PATH,
    ("77_hive_deletes_rename", "hs", 16): DROPPED_FROM_PATH,
}
# DuckDB's name of a type -> its name for --hide-type, if Spark refuses the whole table:
# "Spark does not support time fields", "Cannot convert unsupported type to Spark: timestamp_ns",
# "Unsupported logical type: UINT_32"
SPARK_CANNOT = {
    r"\bTIME\b(?! WITH| ZONE)": "time",
    r"\bTIME WITH TIME ZONE": "timetz",
    r"\bTIMESTAMP_NS\b": "timestamp_ns",
    r"\bUINTEGER\b": "uint32",
}
# (client, lake) -> a pattern for every line of a fault of this client itself
CLIENT_FAULTS = {
    # A NULL map is read as empty if PyIceberg has to cast something inside it.
    (
        "PyIceberg",
        "02",
    ): r"2 rows missing, 2 rows surplus|\{\}, not NULL|z: \{\}\}\], w: -0.01\}, not",
    # PyIceberg requires field ids on the group of a variant, although the column is not in the
    # schema. It does not skip a field of a struct that the name mapping omits.
    ("PyIceberg", "27"): "Could not find field with name: st.c",
    ("PyIceberg", "07"): "Parquet file does not have field-ids",
    # A NULL list of structs is read as empty.
    ("PyIceberg", "83"): r"rows? missing, \d+ rows? surplus|l is \[\], not NULL",
    # The row reader, which promoted ints need, cannot read unsigned ones.
    ("Spark", "23"): "Unsupported logical type: UINT_",
}
MADE_UP_FOR = {("PyIceberg", "07"), ("PyIceberg", "27"), ("Spark", "23")}
"""What CLIENTS=all makes up for."""
QUOTED_NAME = re.compile(r'"(?:[^"]|"")*"')
MOST_SNAPSHOTS = 40  # up to this number all of them are read
SPREAD = 6
# The generator is the same behind both deliveries; a few lakes verify this. In CI one client reads
# each of them: pairs of a lake, a client and a delivery occur, all three together are left out.
MATERIALIZED = {
    "10": pyiceberg,
    "13": duckdb,
    "14": spark,
    "17": pyiceberg,
    "22": duckdb,
    "36": pyiceberg,
}
# Lake -> how many files a chunk of manifests has: in CI, and in `make test-slow` only. The other
# lakes have chunks of two or three, with which a thousand snapshots take minutes.
CHUNKS = {"32": ((10,), (2, 100)), "78": ((100,), (2,))}
# (lake, files in a chunk) -> how often it runs the repeated line of its script: a tenth of a long
# history, in chunks that are a tenth as large.
SHORTENED = {("32", 10): 100}
# Lakes that the command itself serves, because a process takes 3 s to start; the same handlers in
# this process serve the others.
WITH_THE_COMMAND = {("13", "object-lambda")}

needs_spark = pytest.mark.skipif(why_not() is not None, reason=why_not() or "")
# Each client, the most past snapshots of a table that it reads, and who plans its scans. A read
# takes DuckDB 0.05 s of CPU, PyIceberg 0.15 s, Spark 0.5 s.
SPARK_MARKS = [pytest.mark.spark, needs_spark]
SLOW = pytest.mark.slow
CLIENTS = [
    pytest.param(pyiceberg, 0, "client", id="pyiceberg"),
    pytest.param(duckdb, 2, "client", id="duckdb"),
    pytest.param(spark, 0, "client", id="spark", marks=SPARK_MARKS),
    pytest.param(pyiceberg, MOST_SNAPSHOTS, "client", id="pyiceberg-everywhere", marks=SLOW),
    pytest.param(duckdb, MOST_SNAPSHOTS, "client", id="duckdb-everywhere", marks=SLOW),
    pytest.param(spark, SPREAD, "client", id="spark-everywhere", marks=[*SPARK_MARKS, SLOW]),
    # PyIceberg's scans that the server plans: test_scan_planning.py.
    pytest.param(spark, SPREAD, "server", id="spark-planned", marks=[*SPARK_MARKS, SLOW]),
]


def is_left_to_test_slow(lake_name, delivery, client=None, **_) -> bool:
    """Whether a combination of parameters is read by `make test-slow` only."""
    number = number_of(lake_name)
    if delivery == "materialize":
        return client is not MATERIALIZED.get(number)
    # DuckDB reads all, each of the others a quarter, of both versions.
    others = {1: pyiceberg, 2: spark}
    return client not in {duckdb, others.get(int(number) % 8 // 2), None}


def cases(lakes: list[str], delivery: str | None) -> tuple[str, list]:
    """Each lake with chunks so small that every boundary occurs; a few by the other delivery, with
    chunks as large as in production."""
    found = []
    for name in lakes:
        number = number_of(name)
        in_ci, slow = CHUNKS.get(number, ((2 + int(number) % 2,), ()))
        where = (name, delivery or "object-lambda")
        found += [(*where, size) for size in in_ci]
        found += [pytest.param(*where, size, marks=pytest.mark.slow) for size in slow]
        if number in MATERIALIZED and not delivery:
            found.append((name, "materialize", 2048))
    return "lake_name, delivery, chunk_files", found


class Case:
    """One served lake; DuckLake's answers are cached, because several clients need them."""

    def __init__(self, lake, s3_endpoint: str, delivery: str, chunk_files: int) -> None:
        self.name, self.number = lake.name, number_of(lake.name)
        self.native = native.open(lake, s3_endpoint)
        self.tables = self.native.tables()
        self._lake, self._s3_endpoint, self._delivery = lake, s3_endpoint, delivery
        self._chunk_files = str(chunk_files)
        # Those of 1.1, which are half, with files that make up for the faults of clients.
        self.clients = "all" if lake.native and delivery == "object-lambda" else "none"
        self.truth = cache(self.native.canonical)
        self.columns = cache(self.native.columns)

    def serving(self, hide_types: tuple[str, ...] = (), planning: str = "client"):
        how = {
            "delivery": self._delivery,
            "settings": {
                "SNAPSHOT_LIMIT": "2000",  # all of them
                "CHUNK_FILES": self._chunk_files,
                "SCAN_PLANNING": planning,
                "CLIENTS": self.clients,
            },
        }
        lake, schema = self._lake, self._lake.metadata_schema
        if (self.number, self._delivery) in WITH_THE_COMMAND:
            options = tuple(word for name in hide_types for word in ("--hide-type", name))
            how |= {"metadata_schema": schema, "options": options}
            return serving(lake.database.url, self._s3_endpoint, **how)
        return in_process.bridge(lake, self._s3_endpoint, hide_types=hide_types, **how)

    def hidden_from(self, client) -> tuple[str, ...]:
        if client is not spark:
            return ()
        words = " ".join(
            str(type)
            for table in self.tables
            for type in self.native.columns(table.namespace, table.name).values()
        )
        return tuple(name for type, name in SPARK_CANNOT.items() if re.search(type, words))


@pytest.fixture(scope="module")
def case(lake_name, delivery, chunk_files, lake, moto):
    times = SHORTENED.get((number_of(lake_name), chunk_files))
    written = lake.shortened(lake_name, times) if times else lake(lake_name)
    case = Case(written, moto, delivery, chunk_files)
    yield case
    case.native.close()


@pytest.fixture(scope="module")
def bridge(case):
    with case.serving() as bridge:
        yield bridge


@pytest.fixture(scope="session", autouse=True)
def spark_session():
    yield
    spark.stop()


@pytest.mark.parametrize(("client", "most", "planning"), CLIENTS)
def test_client_reads_what_ducklake_reads(
    client, most, planning, case, bridge, shared_duckdb, left_out
):
    hidden_types = case.hidden_from(client)
    if hidden_types or planning == "server":
        with case.serving(hidden_types, planning) as other:
            wrong = differences(client, most, case, other, shared_duckdb, left_out)
    else:
        wrong = differences(client, most, case, bridge, shared_duckdb, left_out)
    of_client = client.NAME, case.number
    is_made_up_for = of_client in MADE_UP_FOR and case.clients == "all"
    fault = None if is_made_up_for else CLIENT_FAULTS.get(of_client)
    if fault is None:
        assert not wrong, "\n".join(wrong)
    else:
        assert wrong, f"{client.NAME} has fixed: {fault}"
        left_out.extend(f"{client.NAME} is wrong by itself: {line}" for line in wrong)
        assert all(re.search(fault, line) for line in wrong), "\n".join(wrong)


def differences(client, most, case, bridge, shared_duckdb, left_out) -> list[str]:
    """One line for each difference from DuckLake."""
    catalog = catalog_of(case, bridge, left_out)
    if catalog is None:
        return []
    wrong = []
    with opened(client, bridge, shared_duckdb, case.tables) as reader:
        for table in case.tables:
            metadata = metadata_of(case, catalog, table, left_out)
            if metadata is None:
                continue
            for snapshot_id in snapshots_to_read(most, metadata):
                where = f"{case.name} {table.namespace}.{table.name} at {snapshot_id}"
                report = compared(reader, case, table, snapshot_id, hidden_columns(metadata))
                if (case.name, table.name, snapshot_id) in NATIVE_DEFECTS:
                    assert report, f"{where}: DuckLake has fixed this fault"
                    continue
                wrong += [f"{where}: {line}" for line in report]
    return wrong


@contextmanager
def opened(client, bridge, shared_duckdb, tables=()) -> Iterator:
    where = (bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint)
    if client is duckdb:
        reader = shared_duckdb.attached_to(*where)
        if any("." in table.namespace for table in tables):
            reader.query(duckdb.listing_namespaces())  # as docs/clients/duckdb.md says
        yield reader
    else:
        with closing(client.open(*where)) as reader:
            if client is pyiceberg:  # it loads a table once, as an application does
                reader._catalog.load_table = cache(reader._catalog.load_table)
            yield reader


def compared(reader, case, table, snapshot_id, hidden) -> list[str]:
    truth = case.truth(table.namespace, table.name, snapshot_id, hidden)
    columns = case.columns(table.namespace, table.name, snapshot_id)
    try:
        rows = reader.rows(table.namespace, table.name, snapshot_id)
        return difference(truth, from_arrow(rows, columns, hidden))
    except Exception as error:  # any error of a client is a finding; the next may show more
        return [f"{type(error).__name__}: {reason(error)}"]


def reason(error: Exception) -> str:
    """A client's message; for a Java stack trace, the cause without the frames."""
    lines = str(error).splitlines()
    return " ".join(line for line in lines if not line.startswith(("\tat ", "\t...")))[:1000]


def catalog_of(case, bridge, left_out) -> rest.Rest | None:
    try:
        return rest.Rest(bridge.catalog_uri, bridge.warehouse)
    except rest.Refused as refusal:
        refused_with_a_reason(case, "the whole lake", refusal, left_out)
        return None


def metadata_of(case, catalog, table, left_out) -> dict | None:
    try:
        return catalog.load_table(table.namespace, table.name)
    except rest.Refused as refusal:
        refused_with_a_reason(case, f"{table.namespace}.{table.name}", refusal, left_out)
        return None


def refused_with_a_reason(case, what: str, refusal: rest.Refused, left_out) -> None:
    assert case.number not in READABLE, f"{case.name}: {what} must be readable: {refusal}"
    assert refusal.status == 400 and refusal.message, f"{case.name}: {what}: {refusal}"
    left_out.append(f"{case.name}: {what} is refused: {refusal.message}")


def hidden_columns(metadata: dict) -> frozenset[str]:
    return frozenset(json.loads(metadata["properties"].get("polynya.hidden-columns", "[]")))


def listed(metadata: dict) -> list[int]:
    return sorted(snapshot["snapshot-id"] for snapshot in metadata.get("snapshots", []))


def snapshots_to_read(most: int, metadata: dict) -> list[int | None]:
    """Now (None), and past snapshots."""
    ids = listed(metadata)
    return [None, *spread(ids, most if len(ids) <= MOST_SNAPSHOTS else min(most, SPREAD))]


def spread(ids: list[int], most: int) -> list[int]:
    """At most `most` of `ids`, the first and the last among them; the middle one if it is one."""
    if len(ids) <= most:
        return ids
    if most == 1:
        return [ids[len(ids) // 2]]
    return [ids[i * (len(ids) - 1) // (most - 1)] for i in range(most)]


def test_every_table_is_listed(case, bridge, left_out):
    catalog = catalog_of(case, bridge, left_out)
    if catalog is None:
        return
    with_names = sorted((table.namespace, table.name) for table in case.tables)
    assert sorted(catalog.tables()) == with_names


def test_a_hidden_column_has_a_reason(case, bridge, left_out):
    catalog = catalog_of(case, bridge, left_out)
    if catalog is None:
        return
    for table in case.tables:
        metadata = metadata_of(case, catalog, table, left_out)
        if metadata is None or not hidden_columns(metadata):
            continue
        reason = metadata["properties"]["polynya.hidden-columns-reason"]
        what = f"{case.name} {table.namespace}.{table.name}: {sorted(hidden_columns(metadata))}"
        assert case.number not in READABLE - HIDING, f"{what} must be readable: {reason}"
        assert reason, f"{what} hidden without a reason"
        left_out.append(f"{what} hidden: {reason}")


def test_no_change_is_omitted(case, bridge, left_out):
    catalog = catalog_of(case, bridge, left_out)
    if catalog is None:
        return
    for table in case.tables:
        metadata = metadata_of(case, catalog, table, left_out)
        if metadata is None:
            continue
        for snapshot_id in changes_beside(set(listed(metadata)), case, table):
            where = f"{case.name} {table.namespace}.{table.name} at {snapshot_id}"
            assert (case.name, table.name, snapshot_id) in LEFT_OUT, f"{where} is not listed"
            left_out.append(
                f"{where} is not listed: {LEFT_OUT[case.name, table.name, snapshot_id]}"
            )


def changes_beside(listed_ids: set[int], case, table) -> Iterator[int]:
    """The snapshots at which the content of a table changed, but those that are listed."""
    mentioned = [
        snapshot_id
        for snapshot_id, changes in snapshots(case.native).items()
        # A name may look like a change: `"a:1,"`.
        if str(table.table_id) in re.findall(r":(\d+)", QUOTED_NAME.sub("", changes))
    ]
    for before, snapshot_id in pairwise([None, *mentioned]):
        if snapshot_id in listed_ids:
            continue
        if len(mentioned) > MOST_SNAPSHOTS:
            yield snapshot_id  # too many to read; in that lake every mention is a change
            continue
        after = case.truth(table.namespace, table.name, snapshot_id, frozenset())
        if before is None:
            is_change = bool(after.rows)
        else:
            is_change = after != case.truth(table.namespace, table.name, before, frozenset())
        if is_change:
            yield snapshot_id
