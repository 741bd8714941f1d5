"""The texts of the snippets.

`$name` stands for a value as the language of the snippet writes it, quotes included. `connect`
parts come first; `read` parts go on from them. README.md and docs/clients.md show the same texts: a
test compares them.
"""

DUCKDB_EXTENSIONS = """\
INSTALL httpfs; INSTALL avro; INSTALL iceberg; LOAD httpfs; LOAD avro; LOAD iceberg;
"""
DUCKDB_CONNECT = """\
CREATE OR REPLACE SECRET (TYPE s3, KEY_ID $key_id, SECRET $secret, REGION $region,
                          ENDPOINT $s3_host, URL_STYLE 'path', USE_SSL $has_tls);
ATTACH $warehouse AS ice (TYPE iceberg, ENDPOINT $catalog_uri, AUTHORIZATION_TYPE 'none',
                      ACCESS_DELEGATION_MODE 'none', DEFAULT_SCHEMA 'main',
                      REMOVE_FILES_ON_DELETE false);
"""
QUERY = "$query;\n"

PYICEBERG_CONNECT = """\
from pyiceberg.catalog import load_catalog

catalog = load_catalog(
    "polynya",
    **{
        "type": "rest",
        "uri": $catalog_uri,
        "warehouse": $warehouse,
        "s3.endpoint": $s3_endpoint,
        "s3.region": $region,
        "s3.access-key-id": $key_id,
        "s3.secret-access-key": $secret,
    },
)
"""
PYICEBERG_READ = """\
catalog.load_table(($identifier)).scan($at).to_arrow()
"""

SPARK_CONNECT = """\
from pyspark.sql import SparkSession

settings = {
    $jars_setting: $jars,
    "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
    "spark.sql.catalog.ice.type": "rest",
    "spark.sql.catalog.ice.uri": $catalog_uri,
    "spark.sql.catalog.ice.warehouse": $warehouse,
    "spark.sql.catalog.ice.io-impl": "org.apache.iceberg.aws.s3.S3FileIO",
    "spark.sql.catalog.ice.s3.endpoint": $s3_endpoint,
    "spark.sql.catalog.ice.s3.path-style-access": "true",
    "spark.sql.catalog.ice.s3.access-key-id": $key_id,
    "spark.sql.catalog.ice.s3.secret-access-key": $secret,
    "spark.sql.catalog.ice.client.region": $region,
    "spark.sql.catalog.ice.cache-enabled": "false",
}
spark = SparkSession.builder.config(map=settings).getOrCreate()
"""
SPARK_READ = """\
spark.sql($query)
"""

POLARS_READ = """\
import polars

table = catalog.load_table(($identifier))  # with PyIceberg, as above
storage_options = {
    "aws_endpoint_url": $s3_endpoint,
    "aws_region": $region,
    "aws_access_key_id": $key_id,
    "aws_secret_access_key": $secret,
    "aws_allow_http": "true",
    "aws_virtual_hosted_style_request": "false",
}
polars.scan_iceberg(table, ${then}storage_options=storage_options).collect()
"""

DAFT_READ = """\
import daft
from daft.io import IOConfig, S3Config

table = catalog.load_table(($identifier))  # with PyIceberg, as above
s3 = S3Config(
    endpoint_url=$s3_endpoint,
    region_name=$region,
    key_id=$key_id,
    access_key=$secret,
    use_ssl=$has_tls,
    force_virtual_addressing=False,
)
daft.read_iceberg(table, ${then}io_config=IOConfig(s3=s3)).to_arrow()
"""

DATAFUSION_READ = """\
from datafusion import SessionContext

table = catalog.load_table(($identifier))  # with PyIceberg, as above
# Rust does not take the objects of PyIceberg that are among them.
properties = {k: v for k, v in table.io.properties.items() if isinstance(v, str)}
table.io.properties = {**properties, "s3.path-style-access": "true"}
context = SessionContext()
context.register_table("t", table)
context.sql("SELECT * FROM t").to_arrow_table()
"""

CLICKHOUSE_CONNECT = """\
SET allow_database_iceberg = 1;
CREATE DATABASE ice ENGINE = DataLakeCatalog($rest_uri, $key_id, $secret)
    SETTINGS catalog_type = 'rest', warehouse = $warehouse, vended_credentials = false,
             storage_endpoint = $virtual_location;
"""

TRINO_CONNECT = """\
connector.name=iceberg
iceberg.catalog.type=rest
iceberg.rest-catalog.uri=$catalog_uri
iceberg.rest-catalog.warehouse=$warehouse
iceberg.rest-catalog.case-insensitive-name-matching=true
fs.native-s3.enabled=true
s3.endpoint=$s3_endpoint
s3.region=$region
s3.path-style-access=true
s3.aws-access-key=$key_id
s3.aws-secret-key=$secret
"""

FLINK_CONNECT = """\
CREATE CATALOG ice WITH ('type'='iceberg', 'catalog-type'='rest', 'uri'=$catalog_uri,
    'warehouse'=$warehouse, 'io-impl'='org.apache.iceberg.aws.s3.S3FileIO',
    's3.endpoint'=$s3_endpoint, 's3.path-style-access'='true', 's3.access-key-id'=$key_id,
    's3.secret-access-key'=$secret, 'client.region'=$region);
"""
