"""The names of properties that Iceberg clients read, taken from their sources.

PyIceberg's are read from the installed package, Iceberg Java's from the jar of `make setup`. Those
of clients that are not installed here are listed, with the version that they are from.
"""

import ast
import struct
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pyiceberg

JARS = Path(__file__).parents[3] / ".cache" / "jars"

JAVA_TABLES = ("TableProperties", "view/ViewProperties")
"""Classes of org.apache.iceberg with the names that tables and views have."""

JAVA_CONFIGURATION = (
    *("CatalogProperties", "spark/SparkSQLProperties", "spark/SparkReadOptions"),
    *("spark/SparkWriteOptions", "aws/AwsProperties", "aws/AwsClientProperties"),
    *("aws/HttpClientProperties", "aws/s3/S3FileIOProperties", "azure/AzureProperties"),
    *("gcp/GCPProperties", "aliyun/AliyunProperties", "hadoop/ConfigProperties"),
    *("rest/RESTCatalogProperties", "rest/auth/AuthProperties", "rest/auth/OAuth2Properties"),
)
"""Classes with the names that catalogs, files, sessions and scans have."""

GO_TABLES = {
    "apache/iceberg-go 0f08e66 (after 0.6.0), table/*.go, table/internal/*.go, view/*.go": (
        "write.data.path write.metadata.path write.metadata.location "
        "write.object-storage.partitioned-paths write.object-storage.enabled "
        "schema.name-mapping.default write.metadata.metrics.column. write.metadata.metrics.default "
        "commit.manifest-merge.enabled commit.manifest.target-size-bytes "
        "commit.manifest.min-count-to-merge commit.manifest-merge.max-concurrency "
        "write.summary.partition-limit write.delete.mode write.delete.isolation-level "
        "write.update.isolation-level write.metadata.delete-after-commit.enabled "
        "write.metadata.previous-versions-max write.metadata.compression-codec "
        "write.format.default write.target-file-size-bytes history.expire.min-snapshots-to-keep "
        "history.expire.max-snapshot-age-ms history.expire.max-ref-age-ms "
        "commit.retry.num-retries commit.retry.min-wait-ms commit.retry.max-wait-ms "
        "commit.retry.total-timeout-ms format-version snapshot-count current-snapshot-id "
        "current-snapshot-summary current-snapshot-timestamp current-schema "
        "default-partition-spec default-sort-order write.parquet.row-group-size-bytes "
        "write.parquet.row-group-limit write.parquet.page-size-bytes write.parquet.page-row-limit "
        "write.parquet.dict-size-bytes write.parquet.page-version write.parquet.compression-codec "
        "write.parquet.compression-level write.parquet.bloom-filter-max-bytes "
        "write.parquet.bloom-filter-enabled.column. parquet.enable.dictionary "
        "write.parquet.dict-encoding-enabled.column. write.parquet.shred-variants "
        "write.parquet.variant-inference-buffer-size read.parquet.batch-size "
        "replace.drop-dialect.allowed version.history.num-entries"
    )
}
RUST_TABLES = {
    "apache/iceberg-rust e03179f (0.10.0), crates/iceberg/src/spec/*.rs": (
        "format-version snapshot-count current-snapshot-summary current-snapshot-id "
        "current-snapshot-timestamp-ms current-schema default-partition-spec default-sort-order "
        "write.metadata.previous-versions-max write.summary.partition-limit "
        "commit.retry.num-retries commit.retry.min-wait-ms commit.retry.max-wait-ms "
        "commit.retry.total-timeout-ms write.format.default write.delete.format.default "
        "write.target-file-size-bytes write.metadata.path write.metadata.compression-codec "
        "write.datafusion.fanout.enabled gc.enabled history.expire.max-snapshot-age-ms "
        "history.expire.min-snapshots-to-keep history.expire.max-ref-age-ms "
        "write.parquet.content-defined-chunking.enabled "
        "write.parquet.content-defined-chunking.min-chunk-size "
        "write.parquet.content-defined-chunking.max-chunk-size "
        "write.parquet.content-defined-chunking.norm-level write.parquet.compression-codec "
        "write.parquet.compression-level write.parquet.row-group-size-bytes "
        "write.parquet.page-size-bytes write.parquet.page-row-limit write.parquet.dict-size-bytes "
        "encryption.key-id encryption.data-key-length write.data.path write.folder-storage.path "
        "write.object-storage.path write.object-storage.partitioned-paths "
        "replace.drop-dialect.allowed version.history.num-entries schema.name-mapping.default"
    )
}
CONFIGURATION = {
    "apache/iceberg-go 0f08e66, io/config.go, catalog/*/*.go": (
        "s3.region s3.session-token s3.secret-access-key s3.access-key-id s3.endpoint s3.proxy-uri "
        "s3.connect-timeout s3.signer.uri s3.remote-signing-enabled s3.force-virtual-addressing "
        "client.region s3.compat-mode gcs.endpoint gcs.service.host gcs.keypath gcs.jsonkey "
        "gcs.credtype gcs.usejsonapi gcs.oauth2.token gcs.oauth2.token-expires-at gcs.no-auth "
        "adls.sas-token. adls.connection-string. adls.auth.shared-key.account.name "
        "adls.auth.shared-key.account.key adls.client-id adls.endpoint adls.protocol "
        "adls.auth.managed-identity.enabled location glue.id glue.skip-archive glue.access-key-id "
        "glue.secret-access-key glue.session-token glue.region glue.endpoint glue.max-retries "
        "glue.retry-mode uri warehouse external.table.purge iceberg.hive.lock-check-min-wait-ms "
        "iceberg.hive.lock-check-max-wait-ms lock-check-min-wait-time lock-check-max-wait-time "
        "lock-check-retries sql.dialect sql.driver jdbc.schema-version"
    ),
    "apache/iceberg-rust e03179f, crates/iceberg/src/io, crates/catalog": (
        "adls.connection-string adls.account-name adls.account-key adls.sas-token adls.tenant-id "
        "adls.client-id adls.client-secret adls.authority-host gcs.project-id gcs.service.host "
        "gcs.user-project gcs.no-auth gcs.credentials-json gcs.oauth2.token gcs.allow-anonymous "
        "gcs.disable-vm-metadata gcs.disable-config-load hf.token hf.endpoint hf.revision "
        "oss.endpoint oss.access-key-id oss.access-key-secret s3.endpoint s3.access-key-id "
        "s3.secret-access-key s3.session-token s3.region client.region s3.path-style-access "
        "s3.sse.type s3.sse.key s3.sse.md5 client.assume-role.arn client.assume-role.external-id "
        "client.assume-role.session-name s3.allow-anonymous s3.disable-ec2-metadata "
        "s3.disable-config-load uri warehouse disable-header-redaction rest.auth.type catalog_id "
        "profile_name region_name aws_access_key_id aws_secret_access_key aws_session_token "
        "thrift_transport user.name table_bucket_arn endpoint_url sql.bind-style sql_bind_style"
    ),
    # Flink takes the properties of a table for options of the scan and of the sink.
    "apache/iceberg 41010e3 (1.11), flink/v1.20, FlinkReadOptions, FlinkWriteOptions": (
        "snapshot-id tag branch start-tag end-tag case-sensitive as-of-timestamp starting-strategy "
        "start-snapshot-timestamp start-snapshot-id end-snapshot-id split-size split-lookback "
        "split-file-open-cost streaming monitor-interval include-column-stats "
        "max-planning-snapshot-count limit max-allowed-planning-failures watermark-column "
        "watermark-column-time-unit write-format target-file-size-bytes compression-codec "
        "compression-level compression-strategy upsert-enabled overwrite-enabled distribution-mode "
        "range-distribution-statistics-type range-distribution-sort-key-base-weight "
        "write-parallelism compact-enabled table-refresh-interval connector catalog-name "
        "catalog-type catalog-database catalog-table"
    ),
    # Java gives all properties of a table to Hadoop's configuration when it writes Parquet.
    "apache/parquet-java 1.17, apache/hadoop 3.4": (
        "parquet.crypto.factory.class parquet.encryption.kms.client.class "
        "parquet.write.support.class fs.s3a.impl fs.s3a.endpoint fs.s3a.access.key fs.defaultFS "
        "fs.s3a.aws.credentials.provider hadoop.security.credential.provider.path "
        "io.compression.codecs"
    ),
}


def listed(sources: dict[str, str]) -> set[str]:
    """The names in one of the tables above."""
    return {name for names in sources.values() for name in names.split()}


def of_pyiceberg() -> tuple[set[str], set[str]]:
    """The names in PyIceberg's TableProperties, and all others that it reads anywhere."""
    folder = Path(pyiceberg.__file__).parent
    tables: set[str] = set()
    others: set[str] = set()
    for path in folder.rglob("*.py"):
        tree = ast.parse(path.read_text())
        others |= set(_constants(tree)) | set(_looked_up(tree))
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and node.name == "TableProperties":
                tables |= {name for name in _constants(node) if "." in name or "-" in name}
    return tables, others - tables


def _constants(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Constant):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            is_name = isinstance(targets[0], ast.Name) and targets[0].id.isupper()
            if is_name and isinstance(node.value.value, str):
                yield node.value.value


def _looked_up(tree: ast.AST) -> Iterator[str]:
    """The names that are read without a constant: properties.get("DEFAULT_SCHEME")."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and "propert" in ast.unparse(node.func).lower():
            for argument in node.args:
                if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                    yield argument.value


def of_java(classes: tuple[str, ...]) -> dict[str, set[str]]:
    """The constants of classes in Iceberg's jar for Spark, by the name of the class."""
    [jar] = JARS.glob("iceberg-spark-runtime-*.jar")
    with zipfile.ZipFile(jar) as file:
        return {
            name: set(_class_constants(file.read(f"org/apache/iceberg/{name}.class")))
            for name in classes
        }


SIZES = {3: 4, 4: 4, 5: 8, 6: 8, 7: 2, 8: 2, 9: 4, 10: 4, 11: 4, 12: 4, 15: 3, 16: 2, 17: 4, 18: 4}
"""The length of an item of a class file's constant pool, by its tag (JVM specification, 4.4)."""

UTF8, STRING, WIDE = 1, 8, (5, 6)


def _class_constants(body: bytes) -> Iterator[str]:
    """The constants of a class file that are texts: what its fields are initialised with."""
    texts: dict[int, str] = {}
    strings: list[int] = []
    [count] = struct.unpack_from(">H", body, 8)
    index, at = 1, 10
    while index < count:
        tag = body[at]
        at += 1
        if tag == UTF8:
            [size] = struct.unpack_from(">H", body, at)
            texts[index] = body[at + 2 : at + 2 + size].decode("utf-8", "replace")
            at += 2 + size
        else:
            if tag == STRING:
                strings += struct.unpack_from(">H", body, at)
            at += SIZES[tag]
        index += 2 if tag in WIDE else 1
    return (texts[string] for string in strings)
