"""The tables with VARIANT and GEOMETRY of DuckLake's own tests: shown and right, or hidden.

Once as DuckDB 1.5.5 writes them, whose variants are hidden, and once with the variants that DuckDB
2.0 writes. Native DuckLake judges, at every snapshot.
"""

import json
from collections import Counter
from contextlib import closing

import pytest
from polynya_local.clients import duckdb, native, pyiceberg, spark
from polynya_local.clients.duckdb import identifier

from tests.differential.test_rows import SPARK_MARKS, hidden_columns, listed
from tests.support import rest
from tests.support.lakes import SCRIPTS
from tests.support.servers import in_process
from tests.support.variants import written_by_duckdb_2

pytestmark = pytest.mark.slow

SCRIPT = SCRIPTS / "version_3" / "suite.sql"
SETTINGS = {"FORMAT_VERSION_3": "always-shown"}
VARIANTS = ("v_", "s_", "m_")
"""How the names of the tables with variants begin."""
REFUSED = {"g_added": "files were added that have it"}
TABLES = {"DuckDB 1.5.5": {"shown": 10, "hidden": 1, "refused": 25}}
TABLES |= {"DuckDB 2.0": {"shown": 35, "refused": 1}}
READ_BY_SPARK = {"DuckDB 1.5.5": 1, "DuckDB 2.0": 25}


@pytest.fixture(scope="module", params=TABLES)
def served(request, lake, moto):
    """What wrote the variants, native DuckLake, what serves the lake, and the tables' documents."""
    made = lake.write("suite", SCRIPT.read_text())
    with closing(native.open(made, moto)) as truth:
        names = [table.name for table in truth.tables()]
        if request.param == "DuckDB 2.0":
            with_variants = [name for name in names if name.startswith(VARIANTS)]
            written_by_duckdb_2(made, moto, with_variants)
        how = {"delivery": "object-lambda", "settings": SETTINGS}
        with in_process.bridge(made, moto, **how) as bridge:
            catalog = rest.Rest(bridge.catalog_uri, "lake")
            yield request.param, truth, bridge, {name: load(catalog, name) for name in names}


def load(catalog, name: str) -> dict | str:
    """The metadata of a table, or why it is refused."""
    try:
        return catalog.load_table("main", name)
    except rest.Refused as refusal:
        return refusal.message


def source(lake: str, name: str, snapshot_id: int | None) -> str:
    at = "" if snapshot_id is None else f" AT (VERSION => {snapshot_id})"
    return f"{lake}.main.{identifier(name)}{at}"


def as_texts(columns) -> str:
    return ", ".join(f"{identifier(name)}::VARCHAR" for name in columns)


def test_each_table_is_shown_or_there_is_a_reason(served):
    writer, _, _, documents = served
    counts = Counter(
        "refused" if isinstance(d, str) else "hidden" if hidden_columns(d) else "shown"
        for d in documents.values()
    )
    assert counts == TABLES[writer]
    for name, document in documents.items():
        reason = document if isinstance(document, str) else json.dumps(document["properties"])
        expected = REFUSED.get(name, "DuckDB version v1.5.5 wrote data files that have it")
        is_served = not isinstance(document, str) and not hidden_columns(document)
        assert (expected in reason) != is_served


def test_duckdb_reads_the_rows_of_every_snapshot(served):
    _, truth, bridge, documents = served
    compared = 0
    with closing(duckdb.open(bridge.catalog_uri, "lake", bridge.s3_endpoint)) as client:
        for name, document in documents.items():
            for snapshot_id in () if isinstance(document, str) else (None, *listed(document)):
                described = client.query(f"DESCRIBE FROM {source('ice', name, snapshot_id)}")
                columns = described.column("column_name").to_pylist()
                every = truth.columns("main", name, snapshot_id)
                assert set(every) - set(columns) <= hidden_columns(document)
                sql = f"SELECT {as_texts(columns)} FROM "
                expected = Counter(truth.query(sql + source("lake", name, snapshot_id)))
                answer = client.query(sql + source("ice", name, snapshot_id))
                rows = Counter(zip(*(c.to_pylist() for c in answer.columns), strict=True))
                assert rows == expected, (name, snapshot_id)
                compared += rows.total()
    assert compared > 50


def test_pyiceberg_reads_the_other_columns_of_geometries(served):
    _, truth, bridge, documents = served
    compared: Counter[str] = Counter()
    with closing(pyiceberg.open(bridge.catalog_uri, "lake", bridge.s3_endpoint)) as reader:
        for name, document in documents.items():
            if isinstance(document, str):
                continue
            try:
                table = reader._catalog.load_table(("main", name))
            except Exception as error:  # any error of a client is a finding
                assert "variant" in str(error) and name.startswith(VARIANTS)
                compared["variant"] += 1
                continue
            types = truth.columns("main", name)
            hidden = hidden_columns(document)
            others = [c for c, type_ in types.items() if "GEO" not in str(type_)]
            columns = [c for c in others if c not in hidden]
            if columns:
                answer = table.scan(selected_fields=tuple(columns)).to_arrow()
                rows = Counter(zip(*(c.to_pylist() for c in answer.columns), strict=True))
                names = ", ".join(map(identifier, columns))
                assert rows == Counter(truth.query(f"SELECT {names} FROM lake.main.{name}"))
                compared["read"] += 1
    assert compared["read"] >= 4


@pytest.fixture(scope="module")
def session():
    yield spark.session()
    spark.stop()


@pytest.mark.parametrize("_", [pytest.param(0, marks=SPARK_MARKS, id="spark")])
def test_spark_reads_variants_and_refuses_geometries(served, session, _):
    writer, truth, bridge, documents = served
    where = spark.Spark(bridge.catalog_uri, "lake", bridge.s3_endpoint)
    compared: Counter[str] = Counter()
    for name, document in documents.items():
        if isinstance(document, str):
            continue
        shown = [c for c in truth.columns("main", name) if c not in hidden_columns(document)]
        texts = ", ".join(f"to_json({c})" if c in ("v", "col") else c for c in shown)
        try:
            rows = session.sql(f"SELECT {texts} FROM {where.catalog}.main.{name}").collect()
        except Exception as error:  # any error of a client is a finding
            assert "Cannot convert unsupported type to Spark: geometry" in str(error)
            compared["geometry"] += 1
            continue
        text = "CASE WHEN {0} IS NOT NULL THEN {0}::JSON::VARCHAR END"
        of_native = ", ".join(text.format(c) if c in ("v", "col") else c for c in shown)
        expected = truth.query(f"SELECT {of_native} FROM lake.main.{name}")
        assert normalised(map(tuple, rows)) == normalised(expected), name
        compared["read"] += 1
    assert compared == {"geometry": 10, "read": READ_BY_SPARK[writer]}


def normalised(rows) -> Counter:
    """Rows with the texts of JSON as one spelling."""

    def value(of: object) -> object:
        return json.dumps(json.loads(of), sort_keys=True) if isinstance(of, str) else of

    return Counter(tuple(map(value, row)) for row in rows)
