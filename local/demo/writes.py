"""`make write-demo`: Iceberg clients write to a DuckLake; after each step, what DuckLake has.

A notebook in PyIceberg and a walk-through in Spark SQL and DuckDB SQL run unchanged. After each
step the rows that native DuckLake has are compared with those that PyIceberg reads.
"""

import sys
from argparse import ArgumentParser
from collections.abc import Callable
from contextlib import ExitStack, closing
from typing import Any, NamedTuple

from duckdb import DuckDBPyConnection
from polynya.ducklake.queries.writers import writer_rights
from polynya.ducklake.writes import commits
from polynya_pipeline.common.database import connect as open_database
from polynya_pipeline.common.progress import Failed, Progress, console
from pyiceberg.catalog import Catalog, load_catalog
from rich.console import Console
from rich.table import Table as Grid

from ..clients import spark
from ..clients.duckdb import ICEBERG, KEY_ID, LAKE, REGION, SECRET, attaching, connect, identifier
from ..clients.spark_jars import why_not
from ..processes.postgres import postgres
from ..processes.serving import Bridge, serving
from .environment import BUCKET, only_this_machine, s3
from .steps import NAMESPACE, Step, notebook, walk_through

DIFFERENT = """
SELECT (SELECT count(*) FROM (SELECT * FROM ours EXCEPT ALL SELECT * FROM theirs))
     + (SELECT count(*) FROM (SELECT * FROM theirs EXCEPT ALL SELECT * FROM ours))"""


class State(NamedTuple):
    """A table after a step."""

    rows: int
    different: int
    """Rows that native DuckLake and PyIceberg do not both have."""
    snapshots: int
    manifests: int
    data_files: int
    delete_files: int
    newest: int
    """DuckLake's newest snapshot."""
    changes: str


def main() -> None:
    parser = ArgumentParser(prog="make write-demo", description=__doc__)
    parser.add_argument("--without-spark", action="store_true")
    with_spark = not parser.parse_args().without_spark and why_not() is None
    try:
        sys.exit(demonstrate(with_spark))
    except (Failed, RuntimeError) as error:
        sys.exit(f"polynya: {error}")


def demonstrate(with_spark: bool) -> int:
    """Run the demo; gives the exit code: 1 if any rows differ."""
    only_this_machine()
    progress, out = Progress(), console(sys.stdout)
    with ExitStack() as stack:
        with progress.stage("Starting PostgreSQL and S3") as stage:
            database = stack.enter_context(postgres()).create_database("demo")
            endpoint = stack.enter_context(s3())
            stage.result = f"PostgreSQL at port {database.port}, S3 at {endpoint}"
        native = stack.enter_context(connect(LAKE, endpoint))
        native.execute(
            f"ATTACH 'ducklake:postgres:{database.libpq}' AS lake (DATA_PATH 's3://{BUCKET}/lake')"
        )
        with closing(open_database(database.url, "public")) as con:
            commits.set_up(con, writer_rights().run(con))
        with progress.stage("Starting `polynya serve --writes`") as stage:
            bridge = stack.enter_context(serving(database.url, endpoint, writes=True))
            stage.result = f"polynya serve --writes at {bridge.catalog_uri}"
        catalog = open_pyiceberg(bridge)
        different = 0
        for client, execute, steps in clients(stack, bridge, catalog, with_spark, progress):
            different += show(out, client, execute, steps, lambda t: state(native, catalog, t))
    is_well = different == 0
    out.print(
        "After each step native DuckLake and PyIceberg have the same rows."
        if is_well
        else "Rows differ: see above.",
        style="bold green" if is_well else "bold red",
    )
    return 0 if is_well else 1


def open_pyiceberg(bridge: Bridge) -> Catalog:
    """PyIceberg's catalog: the one line that another catalog would change."""
    return load_catalog(
        "lake",
        type="rest",
        uri=bridge.catalog_uri,
        warehouse=bridge.warehouse,
        **{
            "s3.endpoint": bridge.s3_endpoint,
            "s3.access-key-id": KEY_ID,
            "s3.secret-access-key": SECRET,
            "s3.region": REGION,
        },
    )


Client = tuple[str, Any, list[Step]]
"""The name of a client, what its steps get, and the steps."""


def clients(
    stack: ExitStack, bridge: Bridge, catalog: Catalog, with_spark: bool, progress: Progress
) -> list[Client]:
    """The clients and what they do."""
    programs: list[Client] = [("PyIceberg", catalog, notebook())]
    if with_spark:
        with progress.stage("Starting Spark") as stage:
            session = spark.session()
            stack.callback(spark.stop)
            name = spark.open(bridge.catalog_uri, bridge.warehouse, bridge.s3_endpoint).catalog
            stage.result = f"Spark {session.version}"
        programs.append(("Spark", lambda sql: session.sql(sql), walk_through("spark", name)))
    con = stack.enter_context(connect(ICEBERG, bridge.s3_endpoint))
    con.execute(attaching(bridge.catalog_uri, bridge.warehouse))
    programs.append(("DuckDB", con.execute, walk_through("duckdb", "ice")))
    return programs


def show(
    out: Console,
    client: str,
    execute: Any,
    steps: list[Step],
    state_of: Callable[[str], State],
) -> int:
    """Run the steps of a client, print what there is after each; gives the rows that differ."""
    grid = Grid(title=client, title_justify="left", box=None, pad_edge=False, header_style="bold")
    grid.add_column("statement", ratio=1, overflow="fold")
    for column in ("rows", "differ", "snapshots", "manifests", "files", "delete files", "DuckLake"):
        grid.add_column(column, justify="right" if column != "DuckLake" else "left")
    different = 0
    for step in steps:
        shown = step.run(execute)
        if not step.table:
            grid.add_row(step.code)
            if isinstance(shown, str):
                grid.add_row(shown, style="dim")
            continue
        after = state_of(step.table)
        different += after.different
        numbers = map(str, after[:6])
        grid.add_row(step.code, *numbers, f"{after.newest}: {after.changes}")
    out.print(grid)
    return different


def state(native: DuckDBPyConnection, catalog: Catalog, name: str) -> State:
    """What native DuckLake and PyIceberg know of a table now."""
    table = catalog.load_table(f"{NAMESPACE}.{name}")
    theirs = table.scan().to_arrow()
    source = f"lake.{NAMESPACE}.{identifier(name)}"
    native.register("theirs", theirs)
    native.execute(f"CREATE OR REPLACE TEMP VIEW ours AS FROM {source}")
    [[different]] = native.execute(DIFFERENT).fetchall()
    [[rows]] = native.execute(f"SELECT count(*) FROM {source}").fetchall()
    newest, changes = native.execute(
        "SELECT snapshot_id, changes FROM ducklake_snapshots('lake') ORDER BY 1 DESC LIMIT 1"
    ).fetchall()[0]
    files = table.inspect.files().to_pylist()
    return State(
        rows=rows,
        different=different,
        snapshots=len(table.snapshots()),
        manifests=len(table.inspect.manifests()),
        data_files=sum(file["content"] == 0 for file in files),
        delete_files=sum(file["content"] != 0 for file in files),
        newest=newest,
        changes=", ".join(changes),
    )


if __name__ == "__main__":
    main()
