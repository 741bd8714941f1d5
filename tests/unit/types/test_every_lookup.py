"""Every type of DuckLake has an entry in every lookup, or a stated refusal."""

import pyarrow as pa
import pytest
from polynya.commits.plan.columns import new_column_type
from polynya.ducklake.column_tree import ColumnNode
from polynya.ducklake.queries.file_columns import READ
from polynya.iceberg.types import Primitive
from polynya.runtime.errors import BadRequest
from polynya.types.names import (
    DUCKLAKE,
    FORMS,
    ICEBERG,
    comparable,
    default_json,
    ducklake_type,
    equivalent,
    iceberg_type,
    to_bytes,
    value,
)
from polynya_pipeline.common.errors import BadInput
from polynya_pipeline.ingest.types import arrow_type, columns_of, spark_type
from polynya_pipeline.publish.glue import hive_type

# A value of each DuckLake type, as DuckDB writes it in statistics. Types that are not here have no
# Iceberg type, or one that only tables of version 3 have: nothing else may refuse one.
TEXTS = {
    "boolean": "1",
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"), "7"),
    **dict.fromkeys(("float32", "float64", "decimal(9,2)", "decimal(38,0)"), "2"),
    "varchar": "a",
    "json": "{}",
    "blob": "00FF",
    "uuid": "00000000-0000-4000-8000-000000000001",
    "date": "2024-02-29",
    "time": "12:34:56",
    **dict.fromkeys(("timestamp", "timestamp_s", "timestamp_ms"), "2024-02-29 12:34:56"),
    "timestamptz": "2024-02-29 12:34:56+00",
}
NO_BOUNDS = {"uuid"}
NAMES = [*DUCKLAKE, "decimal(9,2)", "decimal(38,0)"]


@pytest.mark.parametrize("name", NAMES)
def test_a_type_has_an_iceberg_type_or_a_reason(name):
    is_hidden = equivalent(name) is None or ducklake_type(name).needs_version_3
    assert is_hidden == (name not in TEXTS)
    assert bool(ducklake_type(name).reason) == (name not in TEXTS)


@pytest.mark.parametrize("name", TEXTS)
def test_a_type_with_an_iceberg_type_has_every_reading(name):
    type_, text = ducklake_type(name), TEXTS[name]
    iceberg = type_.iceberg
    assert iceberg_type(iceberg.name) == iceberg or iceberg.name.startswith("decimal")
    assert (type_.duckdb and type_.in_files) or name.startswith("decimal")
    assert comparable(name, text) == comparable(name, text)
    assert isinstance(to_bytes(iceberg.name, value(iceberg.name, text)), bytes)
    if name in NO_BOUNDS:
        assert not iceberg.has_bounds and iceberg.form is None and iceberg.avro is None
        return
    assert iceberg.form in FORMS and iceberg.form in READ
    assert iceberg.avro
    assert not iceberg.parts or {"year", "month", "day"} <= iceberg.parts.keys()


@pytest.mark.parametrize("name", TEXTS)
def test_a_default_is_json(name):
    assert default_json(equivalent(name), TEXTS[name]) is not None


@pytest.mark.parametrize("name", sorted(DUCKLAKE.keys() - TEXTS.keys()))
def test_a_type_without_an_iceberg_type_is_not_written_by_clients(name):
    type_ = ducklake_type(name)
    assert bool(type_.in_files) == type_.needs_version_3
    assert not type_.has_same_buckets and not type_.has_same_calendar


@pytest.mark.parametrize("name", [*ICEBERG, "decimal(9, 2)"])
def test_clients_add_columns_of_every_iceberg_type(name):
    column_type = new_column_type(name, "c")
    assert equivalent(column_type) == name


@pytest.mark.parametrize("name", ["fixed[3]", "unknown", "decimal(39, 2)", ""])
def test_clients_add_no_column_of_another_type(name):
    with pytest.raises(BadRequest, match=r"no (exact form|fixed length)"):
        new_column_type(name, "c")


@pytest.mark.parametrize("name", NAMES)
def test_spark_and_arrow_have_the_type_or_refuse_it(name):
    column = ColumnNode(1, "c", name)
    try:
        kind = arrow_type(column)
    except BadInput:
        for refusing in (spark_type, arrow_type):
            with pytest.raises(BadInput, match="Spark"):
                refusing(column)
        assert name not in TEXTS
        return
    assert isinstance(kind, pa.DataType) and spark_type(column)


class SparkField:
    """What `columns_of` asks of a field of Spark."""

    def __init__(self, simple: str) -> None:
        self.name, self.nullable, self.metadata, self.dataType = "c", True, {}, self
        self._simple = simple

    def typeName(self) -> str:
        return self._simple.partition("(")[0]

    def simpleString(self) -> str:
        return self._simple


@pytest.mark.parametrize(
    "name", [name for name, type_ in DUCKLAKE.items() if type_.spark] + ["decimal(9,2)"]
)
def test_a_new_column_has_the_type_whose_spark_type_it_is_read_as(name):
    field = SparkField(spark_type(ColumnNode(1, "c", name)))
    [column] = columns_of([field], iter([1]))
    assert column.column_type == name


@pytest.mark.parametrize("name", [*ICEBERG, "decimal(9, 2)"])
def test_glue_has_the_type(name):
    assert " " not in hive_type(Primitive(name))
