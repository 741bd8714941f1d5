"""What `make write-demo` does: a notebook in PyIceberg, and a walk-through in Spark and DuckDB.

Nothing in it is special to Polynya: only the catalog's URL is another one.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pyarrow as pa

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog

NAMESPACE = "ducks"
ROWS = 30_000

SCHEMA = pa.schema(
    [
        ("id", pa.int64()),
        ("species", pa.string()),
        ("region", pa.string()),
        ("grams", pa.float64()),
        ("seen_at", pa.timestamp("us")),
    ]
)
SPECIES = ("mallard", "teal", "eider", "pintail", None)
REGIONS = ("north", "south", "east")
START = 1_767_225_600_000_000  # 2026-01-01


def sightings(first: int) -> pa.Table:
    """Rows of a table of sightings, with ids from `first` on."""
    ids = range(first, first + ROWS)
    return pa.table(
        {
            "id": list(ids),
            "species": [SPECIES[number % 5] for number in ids],
            "region": [REGIONS[number % 3] for number in ids],
            "grams": [300 + number % 1500 / 2 for number in ids],
            "seen_at": pa.array([START + number * 1_000_000 for number in ids], pa.timestamp("us")),
        },
        schema=SCHEMA,
    )


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that a person types."""

    table: str
    """The table that it changes; empty: none."""
    code: str
    run: Callable[[Any], Any]
    """Takes the client; gives what the client shows, or nothing."""


def notebook() -> list[Step]:
    """The cells of a notebook; each gets the catalog of PyIceberg."""
    name = "notebook"
    table = f"{NAMESPACE}.{name}"

    def cell(code: str, run: Callable[["Catalog"], Any]) -> Step:
        return Step(name, code, run)

    return [
        Step(
            "",
            f'catalog.create_namespace("{NAMESPACE}")',
            lambda catalog: catalog.create_namespace(NAMESPACE),
        ),
        cell(
            f'table = catalog.create_table("{table}", df.schema)',
            lambda catalog: catalog.create_table(table, SCHEMA),
        ),
        cell("table.append(df)", lambda catalog: catalog.load_table(table).append(sightings(0))),
        cell("table.append(df)", lambda catalog: catalog.load_table(table).append(sightings(ROWS))),
        cell(
            "table.delete(\"species = 'mallard'\")",
            lambda catalog: catalog.load_table(table).delete("species = 'mallard'"),
        ),
        Step(
            "",
            "table.history()",
            lambda catalog: "\n".join(
                f"{datetime.fromtimestamp(entry.timestamp_ms / 1000, UTC):%H:%M:%S}  "
                f"{entry.snapshot_id}"
                for entry in catalog.load_table(table).history()
            ),
        ),
        Step(
            "",
            "table.inspect.snapshots()",
            lambda catalog: "\n".join(
                f"{row['snapshot_id']:<20} {row['operation']:<10} ducklake.snapshot-id "
                + dict(row["summary"])["ducklake.snapshot-id"]
                for row in catalog.load_table(table).inspect.snapshots().to_pylist()
            ),
        ),
    ]


WALK_THROUGH = {
    "spark": (
        "CREATE TABLE {table} (id bigint, species string, region string, grams double) "
        "USING iceberg PARTITIONED BY (region)",
        "INSERT INTO {table} VALUES (1, 'eider', 'north', 2200), (2, 'teal', 'south', 330), "
        "(3, 'mallard', 'north', 1100)",
        "INSERT INTO {table} VALUES (4, 'pintail', 'east', 850), (5, NULL, 'south', NULL)",
        "UPDATE {table} SET grams = grams + 10 WHERE region = 'north'",
        "DELETE FROM {table} WHERE species = 'teal'",
        "MERGE INTO {table} AS t USING (SELECT 4L AS id, 900D AS grams UNION ALL "
        "SELECT 6L, 1200D) AS s ON t.id = s.id WHEN MATCHED THEN UPDATE SET t.grams = s.grams "
        "WHEN NOT MATCHED THEN INSERT (id, species, region, grams) "
        "VALUES (s.id, 'mallard', 'east', s.grams)",
    ),
    "duckdb": (
        "CREATE TABLE {table} (id BIGINT, species VARCHAR, region VARCHAR, grams DOUBLE)",
        "INSERT INTO {table} VALUES (1, 'eider', 'north', 2200), (2, 'teal', 'south', 330), "
        "(3, 'mallard', 'north', 1100)",
        "INSERT INTO {table} VALUES (4, 'pintail', 'east', 850), (5, NULL, 'south', NULL)",
        "UPDATE {table} SET grams = grams + 10 WHERE region = 'north'",
        "DELETE FROM {table} WHERE species = 'teal'",
    ),
}
"""The statements of a table's life, by client."""


def walk_through(client: str, catalog: str) -> list[Step]:
    """The statements for a client whose catalog has this name; each gets a function from SQL."""
    name = f"walk_{client}"

    def step(template: str) -> Step:
        sql = template.format(table=f"{catalog}.{NAMESPACE}.{name}")
        return Step(name, sql, lambda execute: execute(sql))

    return [step(template) for template in WALK_THROUGH[client]]
