"""Spark's SQL about the tables of a served lake."""

from typing import TYPE_CHECKING

from polynya_local.processes.serving import Bridge

from tests.support.writes.twin import Twin

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_CALL = "CALL {{c}}.system.{}(table => '{{of}}', options => map('rewrite-all', 'true'))"
REWRITE_DATA_FILES = _CALL.format("rewrite_data_files")
REWRITE_DELETE_FILES = _CALL.format("rewrite_position_delete_files")


class SparkSQL:
    """Runs statements in which `{t}` is a table, `{of}` its name, and `{c}` the catalog."""

    def __init__(self, served: Bridge) -> None:
        from polynya_local.clients import spark

        self.client = spark.Spark(served.catalog_uri, served.warehouse, served.s3_endpoint)
        self._session = spark.session()

    def __call__(self, twin: Twin, sql: str) -> "DataFrame":
        of, catalog = f"main.{twin.name}", self.client.catalog
        return self._session.sql(sql.format(t=f"{catalog}.{of}", c=catalog, of=of))


def set_modes(twin: Twin, mode: str) -> None:
    """Set the modes of Spark's deletes, updates and merges, as DuckLake's tags."""
    run = twin.lake.database.run
    [[table_id]] = run(
        "SELECT table_id FROM ducklake_table WHERE table_name = :name", name=twin.name
    )
    for what in ("delete", "update", "merge"):
        run(
            "INSERT INTO ducklake_tag VALUES (:table_id, :begin, NULL, :key, :mode)",
            table_id=table_id,
            begin=twin.newest(),
            key=f"polynya.property.write.{what}.mode",
            mode=mode,
        )
