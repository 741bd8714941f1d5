"""Plans by a partition value name each file whose statistics say that it may hold the value.

The rows of the catalog are changed by hand, in each way in which a partition value and the
statistics of its file can differ. What is expected follows from the statistics alone.
"""

import sys
from contextlib import closing

import pytest
import requests
from polynya_local.clients.native import Lake

from tests.support.servers import in_process

# As statistics have the values, and as a client writes them; None: no client can.
TYPES: dict[str, dict[str, object]] = {
    "DATE": {"2024-01-01": "2024-01-01", "0999-12-31": "0999-12-31", "infinity": None},
    "BOOLEAN": {"0": False, "1": True},
    "INTEGER": {"7": 7, "-3": -3, "12": 12},
    "BIGINT": {"7": 7, "-3": -3, "12": 12},
    "VARCHAR": {"a": "a", "": "", "NULL": "NULL", "soon": "soon"},
    "DECIMAL(9,2)": {"7.00": "7.00", "-0.50": "-0.50", "12.25": "12.25"},
    "TIMESTAMP": {
        "2024-01-01 00:00:00": "2024-01-01T00:00:00",
        "2024-01-01 00:00:00.5": "2024-01-01T00:00:00.5",
        "1969-12-31 23:59:59.999999": "1969-12-31T23:59:59.999999",
    },
}

SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE t(v TYPE, id INTEGER);
ALTER TABLE t SET PARTITIONED BY (v);
INSERT INTO t VALUES ROWS;
INSERT INTO t VALUES (NULL, 9);
"""
"""A file for each value, and then one for NULL."""

VALUES, STATS = "ducklake_file_partition_value", "ducklake_file_column_stats"
FIRST, SECOND, NULLS = (
    f"data_file_id = (SELECT {which} FROM ducklake_data_file)"
    for which in ("min(data_file_id)", "min(data_file_id) + 1", "max(data_file_id)")
)
OF_COLUMN = "column_id = 1"
OTHER = f"(SELECT partition_value FROM {VALUES} WHERE {SECOND})"
BOUND = f"(SELECT min_value FROM {STATS} WHERE {SECOND} AND {OF_COLUMN})"
SECOND_VALUE = (
    f"INSERT INTO {VALUES} SELECT data_file_id, table_id, partition_key_index, {OTHER}"
    f" FROM {VALUES} WHERE {FIRST}"
)
CHANGES = {
    "nothing": "SELECT",
    "another value": f"UPDATE {VALUES} SET partition_value = {OTHER} WHERE {FIRST}",
    "values of each other": f"UPDATE {VALUES} AS p SET partition_value = o.partition_value"
    f" FROM {VALUES} AS o WHERE p.{FIRST} AND o.{SECOND} OR p.{SECOND} AND o.{FIRST}",
    "a value and NULL of each other": f"UPDATE {VALUES} AS p SET partition_value ="
    f" o.partition_value FROM {VALUES} AS o"
    f" WHERE p.{FIRST} AND o.{NULLS} OR p.{NULLS} AND o.{FIRST}",
    "NULL for a value": f"UPDATE {VALUES} SET partition_value = NULL WHERE {FIRST}",
    "a value for NULL": f"UPDATE {VALUES} SET partition_value = {OTHER} WHERE {NULLS}",
    "a text of no value": f"UPDATE {VALUES} SET partition_value = 'soon' WHERE {FIRST}",
    "a text of no value, in statistics too": f"UPDATE {VALUES} SET partition_value = 'soon'"
    f" WHERE {FIRST}; UPDATE {STATS} SET min_value = 'soon', max_value = 'soon', null_count = NULL"
    f" WHERE {FIRST} AND {OF_COLUMN}",
    "no value": f"DELETE FROM {VALUES} WHERE {FIRST}",
    "two values": SECOND_VALUE,
    "two values, and one file without": f"{SECOND_VALUE}; DELETE FROM {VALUES} WHERE {SECOND}",
    "two rows of statistics": f"INSERT INTO {STATS} (data_file_id, table_id, column_id, min_value,"
    " max_value, value_count, null_count) SELECT data_file_id, table_id, column_id,"
    f" {BOUND}, {BOUND}, 1, 0 FROM {STATS} WHERE {FIRST} AND {OF_COLUMN}",
    "statistics of another file": f"UPDATE {STATS} SET min_value = {BOUND}, max_value = {BOUND}"
    f" WHERE {FIRST} AND {OF_COLUMN}",
    "a wider range": f"UPDATE {STATS} SET max_value = {BOUND} WHERE {FIRST} AND {OF_COLUMN}",
    "a NULL": f"UPDATE {STATS} SET null_count = 1 WHERE {FIRST} AND {OF_COLUMN}",
    "a NULL, and no bounds": f"UPDATE {STATS} SET null_count = 1, min_value = NULL,"
    f" max_value = NULL WHERE {FIRST} AND {OF_COLUMN}",
    "no NULL": f"UPDATE {STATS} SET null_count = 0, value_count = 1, min_value = {BOUND},"
    f" max_value = {BOUND} WHERE {NULLS} AND {OF_COLUMN}",
}


@pytest.fixture(scope="module", params=TYPES, ids=lambda type_: type_.partition("(")[0])
def partitioned(request, lake) -> tuple[Lake, dict[str, object]]:
    values = TYPES[request.param]
    rows = ", ".join(f"('{text}', {number})" for number, text in enumerate(values))
    name = f"contradicted_{request.param.partition('(')[0].lower()}"
    return lake.write(name, SCRIPT.replace("TYPE", request.param).replace("ROWS", rows)), values


@pytest.fixture
def joined(monkeypatch) -> list[str]:
    """Which values were compared with the statistics of their files, one by one."""
    module, conditions = sys.modules["polynya.ducklake.queries.planned_files"], []
    compare = module._contradicted

    def recorded(*arguments, **parameters):
        conditions.append(arguments[5])
        return compare(*arguments, **parameters)

    monkeypatch.setattr(module, "_contradicted", recorded)
    return conditions


@pytest.mark.slow(but=["[DATE-"])
@pytest.mark.parametrize("at_once", [1, 50_000], ids=["one", "all"])
def test_no_file_is_missing_whose_statistics_contradict_its_value(
    at_once, partitioned, joined, moto, monkeypatch
):
    one, values = partitioned
    module = sys.modules["polynya.ducklake.queries.planned_files"]
    monkeypatch.setattr(module, "FILES_AT_ONCE", at_once)
    filters = {
        text: {"type": "eq", "term": "v", "value": value}
        for text, value in values.items()
        if value is not None
    } | {None: {"type": "is-null", "term": "v"}}
    wrong = []
    with (
        in_process.bridge(one, moto, delivery="object-lambda") as bridge,
        closing(one.database.connect()) as con,
    ):
        url = f"{bridge.catalog_uri}/v1/lake/namespaces/main/tables/t/plan"
        names = dict(con.run("SELECT path, data_file_id FROM ducklake_data_file"))
        for table in (VALUES, STATS):
            con.run(f"CREATE TEMP TABLE kept_{table} AS FROM {table}".replace("FROM", "TABLE"))
        for what, statements in CHANGES.items():
            for statement in statements.split("; "):
                con.run(statement)
            in_process.reset_functions()
            joined.clear()
            found = {text: planned(url, filter_, names) for text, filter_ in filters.items()}
            for text, files in found.items():
                wrong += [
                    f"{what}: {text} in {file}" for file in may_hold(con, text, values) - files
                ]
            if what == "nothing":
                assert {len(files) for files in found.values()} == {
                    2 if None in values.values() else 1
                }
                assert set(joined) == {module.AND_NULL}
            for table in (VALUES, STATS):
                con.run(f"DELETE FROM {table}")
                con.run(f"INSERT INTO {table} TABLE kept_{table}")
    assert not wrong, "\n".join(wrong)


def planned(url: str, filter_: dict, names: dict[str, int]) -> set[int]:
    answer = requests.post(url, json={"filter": filter_}, timeout=60)
    assert answer.status_code == 200, answer.text
    paths = [task["data-file"]["file-path"] for task in answer.json()["file-scan-tasks"]]
    return {id_ for name, id_ in names.items() for path in paths if path.endswith(f"/{name}")}


def may_hold(con, text: str | None, values: dict[str, object]) -> set[int]:
    """The files that may hold a value or NULL, by their statistics alone."""
    rows = con.run(
        f"SELECT data_file_id, min_value, max_value, null_count FROM {STATS} WHERE {OF_COLUMN}"
    )
    return {
        id_
        for id_, *bounds, nulls in rows
        if {*bounds} - {*values, None} or (text in bounds if text is not None else nulls)
    }
