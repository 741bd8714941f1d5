"""Columns that need Iceberg's format version 3: who sees them, under which names, with which rows.

The warehouse `lake+v3` shows them in every table, the settings decide for `lake`. Rows, and counts
of filtered rows, are those of native DuckLake.
"""

import itertools
import json
from contextlib import closing

import pyarrow as pa
import pytest
import requests
from polynya.storage.aws import AwsSettings
from polynya.virtual_files.names import parse
from polynya_local.clients import duckdb, native, pyiceberg, spark
from polynya_local.clients.canonical import difference, from_arrow
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.reports.generator import Generator
from pyiceberg.expressions import EqualTo, IsNull, NotNull
from pyiceberg.manifest import ManifestContent

from tests.differential.test_rows import SPARK_MARKS, hidden_columns, listed, reason
from tests.support import rest
from tests.support.lakes import SCRIPTS
from tests.support.native_lakes import snapshots
from tests.support.servers import in_process
from tests.support.zoned import make_zoned, without_zones

SCRIPT = SCRIPTS / "version_3" / "types.sql"
# Tables of which all columns need version 3: refused in version 2, or nearly so.
ALONE = {"ns", "geo"}
# Those with other columns, which every client reads today.
AMONG = {"many", "nest", "part", "merged", "inl", "older", "def"}
# Every column that changed to such a type is hidden.
NEVER = {"was"}
# (client, type of a column) -> why the client cannot read a table that shows it
CANNOT = {
    ("PyIceberg", "geometry"): "Cannot promote an binary to geometry",
    ("Spark", "geometry"): "Cannot convert unsupported type to Spark: geometry",
    ("Spark", "timestamp_ns"): "Cannot convert unsupported type to Spark: timestamp_ns",
    ("DuckDB", "timestamptz_ns"): "Unrecognized primitive type: timestamptz_ns",
}


@pytest.fixture(scope="module")
def written(lake):
    return lake.write("version_3", SCRIPT.read_text())


def serving(lake, moto, **settings: str):
    settings = {"CHUNK_FILES": "2", **settings}
    return in_process.bridge(lake, moto, delivery="object-lambda", settings=settings)


@pytest.fixture(scope="module")
def bridge(written, moto):
    with serving(written, moto) as bridge:
        yield bridge


@pytest.fixture(scope="module")
def truth(written, moto):
    with closing(native.open(written, moto)) as reader:
        yield reader


@pytest.fixture(scope="session", autouse=True)
def spark_session():
    yield
    spark.stop()


def documents(bridge, warehouse: str) -> dict[str, dict | str]:
    """The metadata of each table, or why it is refused."""
    catalog = rest.Rest(bridge.catalog_uri, warehouse)
    found: dict[str, dict | str] = {}
    for namespace, table in catalog.tables():
        try:
            found[table] = catalog.load_table(namespace, table)
        except rest.Refused as refusal:
            found[table] = refusal.message
    return found


def types_in(document: dict) -> set[str]:
    """The types of version 3 that a document shows."""
    schemas = json.dumps(document["schemas"])
    return {name for name in ("timestamp_ns", "geometry", "variant") if f'"{name}"' in schemas}


CLIENTS = [
    pytest.param(pyiceberg, id="pyiceberg"),
    pytest.param(duckdb, id="duckdb"),
    pytest.param(spark, id="spark", marks=SPARK_MARKS),
]


@pytest.mark.parametrize("client", CLIENTS)
def test_rows_are_those_of_ducklake_or_the_client_says_why_not(
    client, bridge, truth, shared_duckdb
):
    where = (bridge.catalog_uri, "lake+v3", bridge.s3_endpoint)
    reader = shared_duckdb.attached_to(*where) if client is duckdb else client.open(*where)
    wrong, compared = [], 0
    for table, document in documents(bridge, "lake+v3").items():
        unread = {type_ for type_ in types_in(document) if (client.NAME, type_) in CANNOT}
        hidden = hidden_columns(document)
        past = listed(document) if client is duckdb else listed(document)[-1:]
        for snapshot_id in [None] if unread else [None, *past]:
            columns = truth.columns("main", table, snapshot_id)
            expected = truth.canonical("main", table, snapshot_id, hidden)
            try:
                rows = from_arrow(reader.rows("main", table, snapshot_id), columns, hidden)
            except Exception as error:  # any error of a client is a finding
                assert unread, f"{table} at {snapshot_id}: {reason(error)}"
                assert any(CANNOT[client.NAME, type_] in str(error) for type_ in unread), error
                continue
            assert not unread, f"{client.NAME} has learned to read {unread}: {table}"
            compared += expected.rows.total()
            wrong += [f"{table} at {snapshot_id}: {line}" for line in difference(expected, rows)]
    assert not wrong, "\n".join(wrong)
    assert compared > 3


def test_the_default_shows_them_only_where_the_table_would_be_refused(bridge, written, moto):
    by_default, every = documents(bridge, "lake"), documents(bridge, "lake+v3")
    assert by_default.keys() == ALONE | AMONG | NEVER
    with serving(written, moto, FORMAT_VERSION_3="never") as other:
        never = documents(other, "lake")
    with serving(written, moto, FORMAT_VERSION_3="always-shown") as other:
        always = documents(other, "lake")
    for table in ALONE:
        assert types_in(every[table]) and by_default[table] == every[table] == always[table]
        assert "format version 3" in never[table]
    for table in AMONG:
        # No byte and no name is another than without the types.
        assert by_default[table] == never[table] and not types_in(by_default[table])
        assert types_in(every[table]) and every[table] == always[table]
        assert every[table]["format-version"] == 3
    for table in NEVER:
        assert by_default[table] == never[table] and every[table] == always[table]
        assert by_default[table]["schemas"] == every[table]["schemas"]


def test_a_pinned_lake_shows_them_too(bridge):
    newest = documents(bridge, "lake+v3")["many"]
    for snapshot in newest["snapshots"]:
        pinned = documents(bridge, f"lake+v3@{snapshot['snapshot-id']}")["many"]
        assert pinned["snapshots"][-1]["manifest-list"] == snapshot["manifest-list"]
        without = documents(bridge, f"lake@{snapshot['snapshot-id']}")["many"]
        assert without["snapshots"][-1]["manifest-list"] != snapshot["manifest-list"]


def test_files_are_built_from_their_names_alone(bridge, written, moto, monkeypatch):
    """A process that has served neither warehouse builds the files of both."""
    monkeypatch.setenv("CHUNK_FILES", "2")
    monkeypatch.setenv("VIRTUAL_BUCKET", "virtual")
    generator = Generator(
        written.database.url, written.metadata_schema, AwsSettings.from_s3_endpoint(moto)
    )
    with closing(generator.database):
        for warehouse in ("lake", "lake+v3"):
            for table, document in documents(bridge, warehouse).items():
                is_marked = warehouse == "lake+v3" or table in ALONE
                for snapshot in document["snapshots"]:
                    key = snapshot["manifest-list"].partition("//")[2].partition("/")[2]
                    name = parse(key, generator.config.files.virtual_prefix)
                    assert name.shows_version_3 == is_marked, (warehouse, table)
                    assert generator._virtual_files.read(key)


OPERATIONS = {"eq": "=", "lt": "<", "gt-eq": ">="}
NULLS = [("IS NULL", IsNull), ("IS NOT NULL", NotNull)]
TIMES = [
    *("2023-11-14T22:13:20", "2023-11-14T22:13:20.000000002", "2023-11-14T22:13:20.000000023"),
    *("2024-02-29T01:02:03.000000004", "1969-12-31T23:59:59.999999999", "2262-04-11T23:47:16"),
]


def counts(truth, table: str) -> dict[str, int]:
    """How many rows pass each comparison with each time, and with NULL."""
    conditions = [f"n {sql} '{time}'" for time in TIMES for sql in OPERATIONS.values()]
    conditions += [f"n {sql}" for sql, _ in NULLS]
    sql = ", ".join(f"count(*) FILTER (WHERE {condition})" for condition in conditions)
    [row] = truth.query(f"SELECT {sql} FROM lake.main.{table}")
    return dict(zip(conditions, row, strict=True))


@pytest.mark.parametrize("table", ["ns", "many", "part", "inl"])
def test_duckdb_finds_every_row_of_a_filter(table, bridge, truth, shared_duckdb):
    reader = shared_duckdb.attached_to(bridge.catalog_uri, "lake+v3", bridge.s3_endpoint)
    for condition, count in counts(truth, table).items():
        rows = reader.query(f'SELECT n FROM ice."main"."{table}" WHERE {condition}')
        assert rows.num_rows == count, condition


@pytest.mark.parametrize("table", ["ns", "part", "inl"])
def test_pyiceberg_finds_every_row_of_a_filter(table, bridge, truth):
    expected = counts(truth, table)
    with closing(pyiceberg.open(bridge.catalog_uri, "lake+v3", bridge.s3_endpoint)) as reader:
        loaded = reader._catalog.load_table(("main", table))
        for sql, make in NULLS:
            found = loaded.scan(row_filter=make("n")).to_arrow().num_rows
            assert found == expected[f"n {sql}"]
        with pytest.raises(TypeError, match="Cannot convert StringLiteral into timestamp_ns"):
            loaded.scan(row_filter=EqualTo("n", TIMES[0])).to_arrow()


def test_a_plan_loses_no_row_and_skips_files(bridge, truth, moto):
    """Table `part` has no deletes: the rows of the files of a plan are all that can pass."""
    url = f"{bridge.catalog_uri}/v1/lake.v3/namespaces/main/tables/part/plan"
    con = connect(LAKE, moto)
    every = planned(url, None)
    skipped = 0
    expected = counts(truth, "part")
    for time, (operation, sql) in itertools.product(TIMES, OPERATIONS.items()):
        condition = f"n {sql} '{time}'"
        filter_ = {"type": operation, "term": "n", "value": time}
        files = planned(url, filter_)
        skipped += len(every) - len(files)
        rows = 0
        if files:
            text = (
                f"SELECT count(*) FROM read_parquet(?, hive_partitioning = false) WHERE {condition}"
            )
            [(rows,)] = con.execute(text, [files]).fetchall()
        assert rows == expected[condition], condition
        # A number may mean micros or nanos, and a text may be another zone's: nothing is skipped.
        for value in (1700000000000000000, f"{time}+02:00", "x"):
            assert planned(url, filter_ | {"value": value}) == every
    assert skipped > 0
    con.close()


def planned(url: str, filter_: object) -> list[str]:
    answer = requests.post(url, json={} if filter_ is None else {"filter": filter_}, timeout=60)
    assert answer.status_code == 200, answer.text
    return sorted(task["data-file"]["file-path"] for task in answer.json()["file-scan-tasks"])


AROUND = "g && 'POLYGON((4.5 5.5, 5.5 5.5, 5.5 6.5, 4.5 6.5, 4.5 5.5))'::GEOMETRY"


def test_boxes_of_geometries_are_too_small_so_that_manifests_have_none(
    bridge, truth, shared_duckdb
):
    """One coordinate that is NaN is enough. DuckDB reads the boxes in the files themselves, too."""
    every = f"SELECT count(*) FILTER (WHERE {AROUND}) FROM {{}}"
    filtered = f"SELECT count(*) FROM {{}} WHERE {AROUND}"
    both = every, filtered
    counts = [truth.query(sql.format("lake.main.geo"))[0][0] for sql in both]
    client = shared_duckdb.attached_to(bridge.catalog_uri, "lake+v3", bridge.s3_endpoint)
    of_client = [client.query(sql.format("ice.main.geo"))[0][0].as_py() for sql in both]
    # If no row is lost any more, boxes may become bounds.
    assert (counts, of_client) == ([3, 2], [3, 2])
    with closing(pyiceberg.open(bridge.catalog_uri, "lake+v3", bridge.s3_endpoint)) as reader:
        loaded = reader._catalog.load_table(("main", "geo"))
        files = [
            entry.data_file
            for manifest in loaded.current_snapshot().manifests(loaded.io)
            for entry in manifest.fetch_manifest_entry(loaded.io)
            if manifest.content == ManifestContent.DATA
        ]
    assert len(files) == 2
    assert not any(file.lower_bounds or file.upper_bounds for file in files)


ADDED = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE added (i INTEGER, v TIMESTAMP_NS, w TIMESTAMP_NS);
INSERT INTO added VALUES (1, '2024-01-01 00:00:00.123456789', NULL);
COPY (SELECT 2 AS i, TIMESTAMP '2024-01-02 00:00:00.123456' AS v) TO '{{DATA_PATH}}_ext/a.parquet';
CALL ducklake_add_data_files('lake', 'added', '{{DATA_PATH}}_ext/a.parquet', allow_missing => true);
"""


def test_a_column_of_added_files_is_hidden_because_ducklake_converts_their_values(lake, moto):
    """DuckLake reads microseconds of an added file as nanoseconds; no Iceberg client has to."""
    made = lake.write("version_3_added", ADDED)
    with serving(made, moto) as bridge, closing(native.open(made, moto)) as truth:
        metadata = rest.Rest(bridge.catalog_uri, "lake+v3").load_table("main", "added")
        assert hidden_columns(metadata) == {"v"}
        assert "files were added" in metadata["properties"]["polynya.hidden-columns-reason"]
        with closing(duckdb.open(bridge.catalog_uri, "lake+v3", bridge.s3_endpoint)) as client:
            rows = client.rows("main", "added")
        hidden = frozenset({"v"})
        expected = truth.canonical("main", "added", None, hidden)
        columns = truth.columns("main", "added", None)
        assert difference(expected, from_arrow(rows, columns, hidden)) == []


ZONED = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 10);
USE lake;
CREATE TABLE filed(id INTEGER, z TIMESTAMP_NS, n TIMESTAMP_NS);
CALL lake.set_option('data_inlining_row_limit', 0, table_name => 'filed');
INSERT INTO filed VALUES (1, '2024-02-29 01:02:03.000000004', '2024-02-29 01:02:03.000000005'),
  (2, '1969-12-31 23:59:59.999999999', NULL), (3, NULL, NULL);
CREATE TABLE inlined(id INTEGER, z TIMESTAMP_NS, n TIMESTAMP_NS, l TIMESTAMP_NS[],
  m MAP(VARCHAR, TIMESTAMP_NS));
CREATE TABLE solo(z TIMESTAMP_NS);
CREATE TABLE older(id INTEGER);
CALL lake.set_option('data_inlining_row_limit', 10, table_name => 'filed');
INSERT INTO filed VALUES (4, '2262-04-11 23:47:16.854775806', '1677-09-22'), (5, 'infinity', NULL);
DELETE FROM filed WHERE id IN (1, 4);
INSERT INTO inlined VALUES (1, '2024-02-29 01:02:03.000000004', '2024-02-29 01:02:03.1',
  ['2024-02-29 01:02:03.5', NULL], MAP {'x': '1969-12-31 23:59:59.999999999'::TIMESTAMP_NS});
INSERT INTO inlined VALUES (2, NULL, NULL, NULL, NULL), (3, '-infinity', 'infinity', [], MAP {}),
  (4, '2024-02-29', '2024-02-29', NULL, NULL);
DELETE FROM inlined WHERE id = 4;
UPDATE inlined SET z = '2024-02-29 01:02:03.000000006' WHERE id = 1;
INSERT INTO solo VALUES ('2024-02-29 01:02:03.000000004'), (NULL);
INSERT INTO older VALUES (1);
ALTER TABLE older ADD COLUMN z TIMESTAMP_NS;
INSERT INTO older VALUES (2, '2024-02-29 01:02:03.000000004');
"""


@pytest.fixture(scope="module")
def zoned(lake, moto):
    """A lake of 1.1 with `timestamptz_ns`, and the rows that native DuckLake has without zones."""
    made = lake.write("version_3_zoned", ZONED)
    rows = {}
    with closing(native.open(made, moto)) as truth:
        for snapshot_id in (None, *snapshots(truth)):
            for table in truth.tables(snapshot_id):
                at = (table.namespace, table.name, snapshot_id)
                rows[at] = truth.columns(*at), truth.canonical(*at)
    make_zoned(made, moto, ["filed", "inlined", "solo", "older"])
    with serving(made, moto) as bridge:
        yield bridge, rows


def test_pyiceberg_reads_nanoseconds_in_utc(zoned):
    bridge, expected = zoned
    wrong = []
    with closing(pyiceberg.open(bridge.catalog_uri, "lake+v3", bridge.s3_endpoint)) as reader:
        for table, document in documents(bridge, "lake+v3").items():
            assert not hidden_columns(document)
            for snapshot_id in (None, *listed(document)):
                columns, truth = expected["main", table, snapshot_id]
                rows = reader.rows("main", table, snapshot_id)
                if "z" in rows.schema.names:
                    assert rows.schema.field("z").type == pa.timestamp("ns", "UTC")
                found = from_arrow(without_zones(rows), columns)
                wrong += [f"{table} at {snapshot_id}: {one}" for one in difference(truth, found)]
    assert not wrong, "\n".join(wrong)


def test_duckdb_has_no_nanoseconds_in_utc(zoned, shared_duckdb):
    bridge = zoned[0]
    reader = shared_duckdb.attached_to(bridge.catalog_uri, "lake+v3", bridge.s3_endpoint)
    reader.restart()  # once it answered from the catalog that it had before; why is not known
    with pytest.raises(RuntimeError, match=CANNOT["DuckDB", "timestamptz_ns"]):
        reader.rows("main", "filed")


def test_a_plan_of_zoned_nanoseconds_loses_no_row_and_skips_the_file(zoned):
    """Table `filed` has one file with these times; texts of one form have the order of times."""
    url = f"{zoned[0].catalog_uri}/v1/lake.v3/namespaces/main/tables/filed/plan"
    least, most = "1969-12-31T23:59:59.999999999", "2024-02-29T01:02:03.000000004"
    may_match = {
        "eq": lambda time: time in (least, most),
        "lt": lambda time: least < time,
        "gt-eq": lambda time: time <= most,
    }
    every = planned(url, None)
    skipped = 0
    for time, (operation, matches) in itertools.product(
        ["1969-12-31T23:59:59.999999998", least, *TIMES, most, "2024-02-29T01:02:03.000000005"],
        may_match.items(),
    ):
        filter_ = {"type": operation, "term": "z", "value": f"{time}+00:00"}
        files = {file for file in planned(url, filter_) if "/main/filed/" in file}
        assert files or not matches(time), filter_
        skipped += not files
        # A text without a zone is of another type, and of another zone is not compared.
        for value in (time, f"{time}+02:00"):
            assert planned(url, filter_ | {"value": value}) == every
    assert skipped > 5
