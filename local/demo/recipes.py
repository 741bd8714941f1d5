"""What to paste into other programs while `polynya demo --keep` runs."""

from ..clients.duckdb_connection import KEY_ID, REGION, SECRET
from ..clients.lakes import Lake
from ..clients.spark_jars import ARTIFACTS, jars
from ..processes.serving import Bridge

DUCKDB = """\
INSTALL httpfs; INSTALL avro; INSTALL iceberg; LOAD httpfs; LOAD avro; LOAD iceberg;
CREATE SECRET (TYPE s3, KEY_ID '{key_id}', SECRET '{secret}', REGION '{region}',
    ENDPOINT '{s3_host}', URL_STYLE 'path', USE_SSL false);
ATTACH '{warehouse}' AS ice (TYPE iceberg, ENDPOINT '{catalog_uri}',
    AUTHORIZATION_TYPE 'none', ACCESS_DELEGATION_MODE 'none', DEFAULT_SCHEMA 'birds');
SELECT species, sum(birds) AS birds FROM ice.birds.flocks GROUP BY species ORDER BY birds DESC;
SELECT count(*) FROM ice.birds.flocks AT (VERSION => 5);
"""

PYICEBERG = """\
from pyiceberg.catalog import load_catalog
from pyiceberg.expressions import EqualTo
catalog = load_catalog("polynya", **{{
    "type": "rest", "uri": "{catalog_uri}", "warehouse": "{warehouse}",
    "s3.endpoint": "{s3_endpoint}", "s3.region": "{region}",
    "s3.access-key-id": "{key_id}", "s3.secret-access-key": "{secret}",
}})
print(catalog.list_tables("birds"), catalog.list_tables("ice"))
flocks = catalog.load_table("birds.flocks")
print(flocks.scan(row_filter=EqualTo("species", "KIEI"), limit=5).to_arrow().to_pylist())
print([snapshot.snapshot_id for snapshot in flocks.snapshots()])
print(flocks.scan(snapshot_id=5).count())
"""

SPARK = """\
from pyspark.sql import SparkSession
spark = SparkSession.builder.config(map={{
    "{jars_setting}": "{jars}",
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.ice.type": "rest",
    "spark.sql.catalog.ice.uri": "{catalog_uri}",
    "spark.sql.catalog.ice.warehouse": "{warehouse}",
    "spark.sql.catalog.ice.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
    "spark.sql.catalog.ice.s3.endpoint": "{s3_endpoint}",
    "spark.sql.catalog.ice.s3.path-style-access": "true",
    "spark.sql.catalog.ice.s3.access-key-id": "{key_id}",
    "spark.sql.catalog.ice.s3.secret-access-key": "{secret}",
    "spark.sql.catalog.ice.client.region": "{region}",
    "spark.sql.catalog.ice.cache-enabled": "false",
}}).getOrCreate()
spark.sql("SELECT satellite, avg(concentration) FROM ice.ice.cover GROUP BY satellite").show()
spark.sql("SELECT count(*) FROM ice.birds.flocks VERSION AS OF 5").show()
"""

DUCKLAKE = """\
INSTALL httpfs; INSTALL postgres; INSTALL ducklake; LOAD httpfs; LOAD postgres; LOAD ducklake;
CREATE SECRET (TYPE s3, KEY_ID '{key_id}', SECRET '{secret}', REGION '{region}',
    ENDPOINT '{lake_s3_host}', URL_STYLE 'path', USE_SSL false);
ATTACH 'ducklake:postgres:{libpq}' AS lake;
INSERT INTO lake.birds.species VALUES ('BLSC', 'Black Scoter', 'Melanitta americana');
FROM lake.snapshots();
"""

TITLES = {
    "DuckDB, as an Iceberg client": DUCKDB,
    "PyIceberg, in Python": PYICEBERG,
    "Spark, in Python": SPARK,
    "DuckDB again, as the owner of the lake: write, and the others see it": DUCKLAKE,
}


def recipes(bridge: Bridge, lake: Lake, lake_s3_endpoint: str) -> dict[str, str]:
    """The text to paste, by the title of a program."""
    here = jars()  # without them Spark downloads its own
    values = {
        "catalog_uri": bridge.catalog_uri,
        "warehouse": bridge.warehouse,
        "s3_endpoint": bridge.s3_endpoint,
        "s3_host": bridge.s3_endpoint.partition("://")[2],
        "lake_s3_host": lake_s3_endpoint.partition("://")[2],
        "libpq": lake.database.libpq.replace("'", "''"),
        "key_id": KEY_ID,
        "secret": SECRET,
        "region": REGION,
        "jars_setting": "spark.jars" if here else "spark.jars.packages",
        "jars": ",".join(map(str, here or ARTIFACTS)),
    }
    return {title: text.format(**values) for title, text in TITLES.items()}
