"""Columns of variants: shown where every file has them as all clients read them, else hidden.

The files are those of native DuckLake with DuckDB 1.5.5, and the same rows as DuckDB 2.0 writes
them. The rows are judged by native DuckLake, and by what it read before DuckDB 2.0 wrote them.
"""

import re
from collections import Counter
from contextlib import closing

import pytest
from polynya.virtual_files import variants
from polynya_local.clients import duckdb, native
from polynya_local.clients.duckdb import LAKE, connect

from tests.support import rest
from tests.support.native_lakes import snapshots
from tests.support.servers.in_process import bridge
from tests.support.variants import written_by_duckdb_2

TABLE = """
CREATE TABLE {t}(id INTEGER, v VARIANT);
INSERT INTO {t} VALUES (1, {{'b': 1, 'a': 'x', 'n': {{'m': 1.5}}}}::VARIANT),
  (2, {{'a': 2}}::VARIANT), (3, NULL), (4, 42::VARIANT), (5, [1, 2]::VARIANT),
  (6, {{'D': DATE '2024-01-01'}}::VARIANT);
INSERT INTO {t} SELECT 100 + i, {{'k': i, 'u': i / 2}}::VARIANT FROM range(50) AS r(i);
DELETE FROM {t} WHERE id IN (2, 101);
INSERT INTO {t} VALUES (7, NULL), (8, 'text'::VARIANT);
UPDATE {t} SET v = 'new'::VARIANT WHERE id = 4;
"""
SCRIPT = (
    "ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}'); USE lake;"
    + "".join(TABLE.format(t=name) for name in ("old", "new", "mixed"))
    + """
CREATE TABLE later(id INTEGER);
INSERT INTO later FROM range(20);
ALTER TABLE later ADD COLUMN v VARIANT;
INSERT INTO later VALUES (30, 30::VARIANT), (31, NULL);
CREATE TABLE alone(v VARIANT);
INSERT INTO alone VALUES (1::VARIANT), (NULL), ({'a': 1}::VARIANT);
CREATE TABLE alone_old(v VARIANT);
INSERT INTO alone_old VALUES (1::VARIANT);
"""
)
SHOWN = ("new", "later", "alone")


@pytest.fixture(scope="module")
def served(lake, moto):
    """The lake, what serves it, and the rows before DuckDB 2.0 wrote some of them again."""
    one = lake.write("variants", SCRIPT)
    with closing(native.open(one, moto)) as truth:
        before = {(name, at): _native(truth, name, at) for name in SHOWN for at in snapshots(truth)}
    assert written_by_duckdb_2(one, moto, ["new", "alone"]) == "2.0.1"
    written_by_duckdb_2(one, moto, ["later"], slice(1, None))
    written_by_duckdb_2(one, moto, ["mixed"], slice(0, 2))
    with bridge(one, moto) as found:
        yield one, found, before


@pytest.fixture(scope="module")
def client(served):
    where = served[1].catalog_uri, "lake+v3", served[1].s3_endpoint
    with closing(duckdb.open(*where)) as one:
        yield one


def _native(truth, name: str, at: int | None = None):
    """The rows with their variants as text; None if there is no such table, or no such column."""
    source = f"lake.main.{name}" + ("" if at is None else f" AT (VERSION => {at})")
    try:
        return Counter(truth.query(f"SELECT * REPLACE (v::VARCHAR AS v) FROM {source}"))
    except Exception as error:
        if re.search("does not exist|not found|in EXCLUDE list|REPLACE list", str(error)):
            return None
        raise


def load(served, name: str, warehouse: str = "lake+v3"):
    return rest.Rest(served[1].catalog_uri, warehouse).load_table("main", name)


def shown(document) -> list[bool]:
    """Whether each listed snapshot shows the column v."""
    schemas = {
        schema["schema-id"]: [field["name"] for field in schema["fields"]]
        for schema in document["schemas"]
    }
    return ["v" in schemas[snapshot["schema-id"]] for snapshot in document["snapshots"]]


# CREATE, INSERT, INSERT, DELETE, INSERT, UPDATE; before the first INSERT no file has the column.
AT_SNAPSHOTS = {
    "old": [True, False, False, False, False, False],
    "new": [True] * 6,
    "mixed": [True] * 4 + [False] * 2,
    "later": [False, False, True, True],
    "alone": [True] * 2,
}


@pytest.mark.parametrize("name", AT_SNAPSHOTS)
def test_a_column_is_shown_while_every_file_that_has_it_conforms(served, name):
    document = load(served, name)
    assert shown(document) == AT_SNAPSHOTS[name]
    reasons = document["properties"].get("polynya.hidden-columns-reason", "")
    assert ("DuckDB version v1.5.5 wrote data files" in reasons) == (False in shown(document)[2:])


def test_a_table_that_has_nothing_else_is_served_if_it_conforms(served):
    assert shown(load(served, "alone", "lake")) == [True] * 2
    assert "v" not in str(load(served, "new", "lake")["schemas"])
    for warehouse in ("lake", "lake+v3"):
        with pytest.raises(rest.Refused, match="wrote data files"):
            load(served, "alone_old", warehouse)


@pytest.mark.parametrize("name", SHOWN)
def test_rows_at_every_snapshot(served, client, moto, name):
    document = load(served, name)
    with closing(native.open(served[0], moto)) as truth:
        snapshots = zip(document["snapshots"], shown(document), strict=True)
        for at in [snapshot["snapshot-id"] for snapshot, is_shown in snapshots if is_shown]:
            rows = _native(truth, name, at)
            assert rows == served[2][name, at]
            found = client.query(
                f"SELECT * REPLACE (v::VARCHAR AS v) FROM ice.main.{name} AT (VERSION => {at})"
            )
            assert Counter(zip(*(c.to_pylist() for c in found.columns), strict=True)) == rows


@pytest.mark.spark
@pytest.mark.slow
def test_spark_reads_the_same(served, moto):
    from polynya_local.clients import spark

    where = spark.Spark(served[1].catalog_uri, "lake+v3", served[1].s3_endpoint)
    value = "variant_get(v, '$.{}', 'string')"
    fields = ", ".join(value.format(path) for path in ("a", "b", "n.m", "D", "k", "u"))
    asked = f"id, v IS NULL, replace(coalesce({fields}, variant_get(v, '$', 'string')), ' ')"
    rows = spark.session().sql(f"SELECT {asked} FROM {where.catalog}.main.new").collect()
    with closing(native.open(served[0], moto)) as truth:
        texts = ", ".join(f"v.{path}::VARCHAR" for path in ("a", "b", "n.m", "D", "k", "u"))
        text = f"replace(coalesce({texts}, v::VARCHAR), ' ', '')"
        expected = truth.query(f"SELECT id, v IS NULL, {text} FROM lake.main.new")
    assert Counter(map(tuple, rows)) == Counter(expected)


@pytest.fixture
def reads(monkeypatch):
    """The sizes of the files whose footers are read."""
    sizes: list[int] = []
    read = variants.created_by

    def counted(read_range, size):
        sizes.append(size)
        return read(read_range, size)

    monkeypatch.setattr(variants, "created_by", counted)
    return sizes


def test_each_footer_is_read_once(served, reads, moto):
    one = served[0]
    with closing(connect(LAKE, moto)) as writer:
        native.attach(writer, one, read_only=False)
        writer.execute("CREATE TABLE lake.main.grown(id INTEGER, v VARIANT)")
        for number in range(3):
            writer.execute(f"INSERT INTO lake.main.grown VALUES (1, {number}::VARIANT)")
        written_by_duckdb_2(one, moto, ["grown"])
        assert [shown(load(served, "grown")) for _ in range(2)] == [[True] * 4] * 2
        assert len(reads) == 3
        writer.execute("INSERT INTO lake.main.grown VALUES (1, 4::VARIANT)")
        assert shown(load(served, "grown")) == [True] * 4 + [False]
        assert len(reads) == 4


def test_of_too_many_files_none_is_read(served, reads, monkeypatch):
    monkeypatch.setattr(variants, "MOST_FILES", 1)
    document = load(served, "mixed")
    assert shown(document) == [True] * 2 + [False] * 4
    assert "what wrote each" in document["properties"]["polynya.hidden-columns-reason"]
    assert len(reads) <= 1


def test_no_field_id_is_below_a_variant(served, moto, tmp_path):
    """Neither in schemas, nor in name mappings: DuckLake adds no file that has a variant."""
    [schema] = load(served, "alone")["schemas"]
    assert [(field["name"], field["type"]) for field in schema["fields"]] == [("v", "variant")]
    with closing(connect(LAKE, moto)) as writer:
        native.attach(writer, served[0], read_only=False)
        file = tmp_path / "added.parquet"
        writer.execute(f"COPY (SELECT 1::VARIANT AS v) TO '{file}' (FORMAT parquet)")
        with pytest.raises(Exception, match="Expected VARIANT, found type STRUCT"):
            writer.execute(f"CALL ducklake_add_data_files('lake', 'alone', '{file}')")
