"""The list of settings: each is an environment variable of the functions.

`template.yaml` and docs/settings.md name the same ones; a test checks that.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Setting:
    """One environment variable: its name, what it is when absent (None: required), what it does."""

    name: str
    default: str | None
    help: str


SETTINGS = (
    Setting(
        "DATABASE_URL",
        None,
        "the PostgreSQL database of the DuckLake: postgresql://user:password@host:port/database, "
        "with ?sslmode=disable|require|verify-ca|verify-full&sslrootcert=FILE (verify-full unless "
        "the host is this machine; the file `rds` is Amazon RDS's own)",
    ),
    Setting(
        "DATABASE_CREDENTIALS",
        "",
        "where role and password come from at run time: `secret:` and the name or ARN of a secret "
        "in Secrets Manager, or `iam` for RDS's IAM authentication; empty: from DATABASE_URL",
    ),
    Setting("METADATA_SCHEMA", "public", "the PostgreSQL schema that holds DuckLake's tables"),
    Setting("WAREHOUSE", "lake", "the name of the lake: clients give it as `warehouse`"),
    Setting("DELIVERY", "object-lambda", "where virtual files are: `object-lambda`, `materialize`"),
    Setting(
        "VIRTUAL_BUCKET",
        None,
        "the bucket of the virtual files: the alias of the Object Lambda access point, or with "
        "`materialize` a real bucket; `ssm:NAME` reads it from an SSM parameter",
    ),
    Setting("VIRTUAL_PREFIX", "polynya", "the key prefix of the virtual files"),
    Setting("CACHE_TABLE", "", "the DynamoDB table that caches generated files; empty: none"),
    Setting("CACHE_BUCKET", "", "the bucket that caches generated files over 350 KB; empty: none"),
    Setting("CACHE_TTL_DAYS", "7", "days that a generated file is kept"),
    Setting(
        "SNAPSHOT_LIMIT",
        "0",
        "how many snapshots a table lists, newest first; 0: 1000, with `materialize` 20",
    ),
    Setting(
        "BUILD_SECONDS",
        "0",
        "how long one request may generate files; the answer is then 503, and the next request "
        "continues; 0: 45, because S3 waits 60 s, or with `materialize` 20, because API Gateway "
        "waits 29 s",
    ),
    Setting(
        "CHUNK_FILES",
        "2048",
        "how many data files a manifest lists, on average; a sixteenth of that where new files "
        "arrive",
    ),
    Setting(
        "HIDDEN_TYPES",
        "",
        "DuckLake column types to hide, comma-separated: for clients that cannot read a table "
        "which has them, such as Spark with `time`",
    ),
    Setting(
        "INEXACT_COLUMNS",
        "hide",
        "columns without an exact Iceberg form: `hide` them, or `refuse` the table, and leave out "
        "its older snapshots that have some",
    ),
    Setting(
        "COLUMN_DEFAULTS",
        "serve",
        "tables with files that lack a column which has a default: `serve` them, or `refuse` the "
        "table, and leave out its older snapshots that have some, for clients that read NULL there",
    ),
    Setting(
        "SCAN_PLANNING",
        "client",
        "who finds the files of a scan, unless the client's user says otherwise: `client`, from "
        "manifests, or `server`, by one request to the catalog",
    ),
    Setting(
        "AUTHORIZATION",
        "",
        "who may read which tables: `ssm:NAME` or `s3://bucket/key` of the policy, or its JSON; "
        "empty: all callers may read all tables",
    ),
    Setting(
        "VENDING_ROLE",
        "",
        "the ARN of the role whose credentials are vended, limited to one table; empty: none are",
    ),
    Setting("VENDING_SECONDS", "3600", "how long vended credentials are valid, 900 to 3600 s"),
    Setting("WRITES", "no", "`yes`: Iceberg clients may write, as far as AUTHORIZATION permits"),
    Setting(
        "STAGING_LOCATION",
        "",
        "s3://bucket/prefix where clients put the Avro files of a commit, which are read once; "
        "empty: `.polynya-staging` below the lake's data path",
    ),
    Setting(
        "WRITER_ROLE",
        "",
        "the ARN of the role whose credentials are vended to writers, limited to one table; empty: "
        "they get those of readers",
    ),
    Setting(
        "OBJECT_LAMBDA_ENDPOINT",
        "",
        "where WriteGetObjectResponse goes, and the S3 that clients are told to use; only for "
        "stand-ins on one machine",
    ),
)
