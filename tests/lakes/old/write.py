"""Run by `make.py` with an old DuckDB: writes the lake, and says what that DuckDB reads in it.

    python write.py SCRIPT LIBPQ DATA_PATH S3_HOST_AND_PORT > truth.json

Every value is DuckDB's own text of it. Needs only duckdb, its extensions' packages and pytz.
"""

import json
import sys
from importlib.util import find_spec
from pathlib import Path

import duckdb

CATALOG = "__ducklake_metadata_lake.public"
VISIBLE_TABLES = f"""
SELECT t.table_id, s.schema_name, t.table_name FROM {CATALOG}.ducklake_table AS t
JOIN {CATALOG}.ducklake_schema AS s USING (schema_id)
WHERE ? >= t.begin_snapshot AND (? < t.end_snapshot OR t.end_snapshot IS NULL) ORDER BY 1"""


def connect(s3: str):
    con = duckdb.connect(
        config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    )
    con.execute("SET TimeZone = 'UTC'")
    for name in ("ducklake", "postgres_scanner", "httpfs"):
        folder = Path(find_spec(f"duckdb_extension_{name}").submodule_search_locations[0])
        file = folder / "extensions" / f"v{duckdb.__version__}" / f"{name}.duckdb_extension"
        con.execute(f"LOAD '{file}'")
    con.execute(
        "CREATE SECRET (TYPE s3, PROVIDER config, KEY_ID 'test', SECRET 'test', "
        f"REGION 'us-east-1', ENDPOINT '{s3}', URL_STYLE 'path', USE_SSL false)"
    )
    return con


def truth(con) -> dict:
    """{table_id: {snapshot_id: {"name": …, "columns": {name: type}, "rows": [[text]]}}}.

    Dropped tables too. Only the snapshots at which a table is another than before.
    """
    [(newest,)] = con.execute(
        f"SELECT max(snapshot_id) FROM {CATALOG}.ducklake_snapshot"
    ).fetchall()
    answer = {}
    for snapshot_id in range(1, newest + 1):
        for table_id, schema, table in con.execute(VISIBLE_TABLES, [snapshot_id] * 2).fetchall():
            source = f'lake."{schema}"."{table}" AT (VERSION => {snapshot_id})'
            relation = con.sql(f"SELECT * FROM {source}")
            columns = dict(zip(relation.columns, map(str, relation.types), strict=True))
            texts = ", ".join(f'CAST("{name}" AS VARCHAR)' for name in columns)
            rows = con.execute(f"SELECT {texts} FROM {source} ORDER BY ALL").fetchall()
            now = {"name": [schema, table], "columns": columns, "rows": rows}
            at = answer.setdefault(table_id, {})
            if not at or now != at[max(at)]:
                at[snapshot_id] = now
    return answer


def main(script: str, libpq: str, data_path: str, s3: str) -> None:
    text = Path(script).read_text().replace("{{CATALOG}}", f"postgres:{libpq}")
    text = text.replace("{{DATA_PATH}}", data_path)
    with connect(s3) as con:
        for statement in con.extract_statements(text):
            con.execute(statement)
        json.dump(truth(con), sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
