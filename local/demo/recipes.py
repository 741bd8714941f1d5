"""What to paste into other programs while `polynya demo --keep` runs."""

from dataclasses import replace

from ..clients.duckdb_connection import KEY_ID, REGION, SECRET, literal
from ..clients.lakes import Lake
from ..clients.spark_jars import jars
from ..processes.serving import Bridge
from ..reports.reading.place import Place
from ..reports.reading.snippets import Client, client

DUCKDB = """\
SELECT species, sum(birds) AS birds FROM ice.birds.flocks GROUP BY species ORDER BY birds DESC;
SELECT count(*) FROM ice.birds.flocks AT (VERSION => 5);
"""

PYICEBERG = """\
from pyiceberg.expressions import EqualTo
print(catalog.list_tables("birds"), catalog.list_tables("ice"))
flocks = catalog.load_table("birds.flocks")
print(flocks.scan(row_filter=EqualTo("species", "KIEI"), limit=5).to_arrow().to_pylist())
print([snapshot.snapshot_id for snapshot in flocks.snapshots()])
print(flocks.scan(snapshot_id=5).count())
"""

SPARK = """\
spark.sql("SELECT satellite, avg(concentration) FROM ice.ice.cover GROUP BY satellite").show()
spark.sql("SELECT count(*) FROM ice.birds.flocks VERSION AS OF 5").show()
"""

DUCKLAKE = """\
INSTALL httpfs; INSTALL postgres; INSTALL ducklake; LOAD httpfs; LOAD postgres; LOAD ducklake;
CREATE SECRET (TYPE s3, KEY_ID '{key_id}', SECRET '{secret}', REGION '{region}',
    ENDPOINT '{lake_s3_host}', URL_STYLE 'path', USE_SSL false);
ATTACH {lake} AS lake;
INSERT INTO lake.birds.species VALUES ('BLSC', 'Black Scoter', 'Melanitta americana');
FROM lake.snapshots();
"""


def recipes(bridge: Bridge, lake: Lake, lake_s3_endpoint: str) -> dict[str, str]:
    """The text to paste, by the title of a program."""
    place = _place(bridge)
    lake_address = literal(f"ducklake:postgres:{lake.database.libpq}")
    lake_s3_host = lake_s3_endpoint.partition("://")[2]
    owner = DUCKLAKE.format(
        key_id=KEY_ID, secret=SECRET, region=REGION, lake_s3_host=lake_s3_host, lake=lake_address
    )
    return {
        "DuckDB, as an Iceberg client": _connected(client("DuckDB"), place) + DUCKDB,
        "PyIceberg, in Python": _connected(client("PyIceberg"), place) + PYICEBERG,
        "Spark, in Python": _connected(client("Spark"), place) + SPARK,
        "DuckDB again, as the owner of the lake: write, and the others see it": owner,
    }


def _connected(one: Client, place: Place) -> str:
    # An empty line is between two programs only.
    return "".join(part.text(place) for part in one.connect).replace("\n\n", "\n")


def _place(bridge: Bridge) -> Place:
    """Where a client connects; each of the queries above names its table."""
    place = Place(
        catalog_uri=bridge.catalog_uri,
        warehouse=bridge.warehouse,
        s3_endpoint=bridge.s3_endpoint,
        namespace="birds",
        table="flocks",
        key_id=KEY_ID,
        secret=SECRET,
        region=REGION,
    )
    here = jars()  # without them Spark downloads its own
    if not here:
        return place
    return replace(place, jars_setting="spark.jars", jars=",".join(map(str, here)))
