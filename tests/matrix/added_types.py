"""A lake of added files that have other types than their tables: all that DuckLake takes."""

import re

VALUES = {
    "TINYINT": ("(-128)", "127"),
    "SMALLINT": ("(-32768)", "32767"),
    "INTEGER": ("(-2147483648)", "2147483647"),
    "UTINYINT": ("0", "255"),
    "USMALLINT": ("0", "65535"),
    "UINTEGER": ("0", "4294967295"),
    "UBIGINT": ("0", "18446744073709551615"),
    "FLOAT": ("(-1.5)", "3.25"),
    "HUGEINT": ("(-5)", "7"),
    "UHUGEINT": ("5", "7"),
    "DECIMAL(5, 2)": ("(-1.25)", "3.5"),
    "BIT": ("'101'", "'0'"),
    "ENUM('a', 'zz')": ("'a'", "'zz'"),
    "GEOMETRY": ("'POINT(1 2)'", "'POINT(3 4)'"),
    "INTERVAL": ("'1 day'", "'2 days'"),
    "JSON": ("'1'", "'{}'"),
    "TIME": ("'00:00:00'", "'23:59:59.999999'"),
    "TIMETZ": ("'00:00:00+00'", "'23:59:59.999999+00'"),
    "TIMESTAMP": ("'1969-12-31 23:59:59.5'", "'2024-02-29 01:02:03.456789'"),
    "TIMESTAMP_S": ("'1969-12-31 23:59:59'", "'2024-02-29 01:02:03'"),
    "TIMESTAMP_MS": ("'1969-12-31 23:59:59.5'", "'2024-02-29 01:02:03.456'"),
    "TIMESTAMP_NS": ("'1969-12-31 23:59:59.5'", "'2024-02-29 01:02:03.456789123'"),
    "UUID": ("'00000000-0000-0000-0000-000000000001'", "'ffffffff-0000-0000-0000-000000000001'"),
    "VARIANT": ("1", "'x'"),
}
"""Two values of each type."""
IN_FILES = {
    "SMALLINT": ("TINYINT", "UTINYINT"),
    "INTEGER": ("TINYINT", "SMALLINT", "UTINYINT", "USMALLINT"),
    "BIGINT": ("TINYINT", "SMALLINT", "INTEGER", "UTINYINT", "USMALLINT", "UINTEGER"),
    "USMALLINT": ("UTINYINT",),
    "UINTEGER": ("UTINYINT", "USMALLINT"),
    "UBIGINT": ("UTINYINT", "USMALLINT", "UINTEGER"),
    "DOUBLE": ("FLOAT", "HUGEINT", "UHUGEINT"),
    "DECIMAL(20, 3)": ("DECIMAL(5, 2)",),
    "VARCHAR": ("BIT", "ENUM('a', 'zz')"),
    "TIME": ("TIMETZ",),
    "TIMESTAMP": ("TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP_NS"),
    "TIMESTAMP_S": ("TIMESTAMP", "TIMESTAMP_MS"),
    "TIMESTAMP_MS": ("TIMESTAMP", "TIMESTAMP_S"),
    "TIMESTAMP_NS": ("TIMESTAMP", "TIMESTAMP_S", "TIMESTAMP_MS"),
}
"""The types of files that ducklake_add_data_files takes for a column, but for its own: tried with
DuckDB 1.5.5. GEOMETRY for BLOB is left out, which DuckLake itself cannot read."""
BESIDE = (
    *("UINTEGER", "UBIGINT", "HUGEINT", "TIME", "TIMETZ", "TIMESTAMP_NS", "TIMESTAMP_MS", "BIT"),
    *("GEOMETRY", "INTERVAL", "UUID", "JSON", "VARIANT"),
)
"""Types of columns that only the file has."""
IN_GROUPS = frozenset(BESIDE) - {"VARIANT"}
"""DuckDB 1.5.5 writes those in lists and structs."""


def added_types() -> str:
    """The statements: each table has one added file, the same rows in a file of its own, and a
    deleted row."""
    lines = [
        "ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', "
        "DATA_INLINING_ROW_LIMIT 0);",
        "USE lake;",
    ]
    for column, types in IN_FILES.items():
        for type_ in types:
            table = f"{_name(column)}_from_{_name(type_)}"
            first, second = VALUES[type_]
            rows = " UNION ALL ".join(
                f"SELECT {i}::INTEGER AS i, {value}::{type_} AS v, {items}::{type_}[] AS l"
                for i, (value, items) in enumerate(
                    (
                        (first, f"[{first}]"),
                        (second, f"[{second}, NULL]"),
                        ("NULL", "NULL"),
                        ("NULL", "[]"),
                    )
                )
            )
            lines += [
                f"CREATE TABLE {table}(i INTEGER, v {column}, l {column}[]);",
                *_added(table, rows),
                f"INSERT INTO {table} SELECT 10 + i, v, l FROM {table} WHERE i % 2 = 0;",
                f"DELETE FROM {table} WHERE i = 3;",
            ]
    for type_ in BESIDE:
        table = f"beside_{_name(type_)}"
        value = f"{VALUES[type_][0]}::{type_}"
        groups = f", [{value}] AS l, {{'v': {value}}} AS s" if type_ in IN_GROUPS else ""
        lines += [
            f"CREATE TABLE {table}(i INTEGER);",
            *_added(table, f"SELECT 1::INTEGER AS i, {value} AS v{groups}"),
        ]
    return "\n".join(lines)


def _added(table: str, rows: str) -> tuple[str, str]:
    file = f"'{{{{DATA_PATH}}}}_ext/{table}.parquet'"
    options = "ignore_extra_columns => true"
    return (
        f"COPY ({rows}) TO {file};",
        f"CALL ducklake_add_data_files('lake', '{table}', {file}, {options});",
    )


def _name(type_: str) -> str:
    return re.split(r"\W", type_)[0].lower()
