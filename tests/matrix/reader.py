"""Reads tables with a client that is installed in another Python, and answers over pipes.

`python reader.py CLIENT` reads a line of JSON with the catalog's address, then one for each
question: what to read, and the file for the Arrow rows. It answers each question with a line.
"""

import json
import os
import socket
import sys

import pyarrow as pa

# This file runs as a script in a Python without our packages.
from condition import CLICKHOUSE, DATAFUSION, SAIL, Condition

NANOSECONDS = {"timestamp_ns": None, "timestamptz_ns": "UTC"}
"""By the kind of a value: the time zone."""
KEY_ID, SECRET, REGION = "test", "test", "us-east-1"


class WithPyIceberg:
    """Polars and Daft: PyIceberg plans, the client reads."""

    def __init__(self, catalog_uri: str, warehouse: str, s3_endpoint: str) -> None:
        from pyiceberg.catalog import load_catalog

        self._s3_endpoint = s3_endpoint
        self._catalog = load_catalog(
            "polynya",
            **{
                "type": "rest",
                "uri": catalog_uri,
                "warehouse": warehouse,
                # As in our own client: the first list of a table is made when it is read.
                "s3.request-timeout": "60",
                "s3.endpoint": s3_endpoint,
                "s3.access-key-id": KEY_ID,
                "s3.secret-access-key": SECRET,
                "s3.region": REGION,
            },
        )

    def table(self, namespace: str, table: str):
        return self._catalog.load_table((namespace, table))


class Polars(WithPyIceberg):
    def scan(self, namespace: str, table: str, snapshot_id: int | None):
        import polars

        return polars.scan_iceberg(
            self.table(namespace, table),
            snapshot_id=snapshot_id,
            storage_options={
                "aws_endpoint_url": self._s3_endpoint,
                "aws_access_key_id": KEY_ID,
                "aws_secret_access_key": SECRET,
                "aws_region": REGION,
                "aws_allow_http": "true",
                "aws_virtual_hosted_style_request": "false",
            },
        )

    def rows(self, namespace: str, table: str, snapshot_id: int | None) -> pa.Table:
        return self.scan(namespace, table, snapshot_id).collect().to_arrow()

    def count(self, namespace: str, table: str) -> int:
        import polars

        return self.scan(namespace, table, None).select(polars.len()).collect().item()

    def count_where(self, namespace: str, table: str, condition: Condition) -> int | None:
        import polars

        if cannot_ask(condition):
            return None
        literal = polars.lit
        if condition.kind in NANOSECONDS:
            zone = NANOSECONDS[condition.kind]
            literal = lambda text: polars.lit(text).str.to_datetime(  # noqa: E731
                time_unit="ns", time_zone=zone
            )
        column = polars.col(condition.path[0])
        for field in condition.path[1:]:
            column = column.struct.field(field)
        wanted = by_operator(condition, column, literal)
        rows = self.scan(namespace, table, condition.snapshot_id).filter(wanted)
        return rows.collect().height


class Daft(WithPyIceberg):
    def scan(self, namespace: str, table: str, snapshot_id: int | None):
        import daft
        from daft.io import IOConfig, S3Config

        s3 = S3Config(
            endpoint_url=self._s3_endpoint,
            key_id=KEY_ID,
            access_key=SECRET,
            region_name=REGION,
            use_ssl=False,
            force_virtual_addressing=False,
        )
        return daft.read_iceberg(
            self.table(namespace, table), snapshot_id=snapshot_id, io_config=IOConfig(s3=s3)
        )

    def rows(self, namespace: str, table: str, snapshot_id: int | None) -> pa.Table:
        return self.scan(namespace, table, snapshot_id).to_arrow()

    def count(self, namespace: str, table: str) -> int:
        return self.scan(namespace, table, None).count_rows()

    def count_where(self, namespace: str, table: str, condition: Condition) -> int | None:
        import daft

        if cannot_ask(condition):
            return None
        literal = daft.lit
        if condition.kind in NANOSECONDS:
            type_ = daft.DataType.timestamp("ns", NANOSECONDS[condition.kind])
            literal = lambda text: daft.lit(text).cast(type_)  # noqa: E731
        column = daft.col(condition.path[0])
        for field in condition.path[1:]:
            column = column[field]
        wanted = by_operator(condition, column, literal)
        rows = self.scan(namespace, table, condition.snapshot_id).where(wanted)
        of_all, alone = (
            of.to_arrow().num_rows for of in (rows, rows.select(daft.col(condition.path[0])))
        )
        # It may ignore conditions and deletes in files with none of the columns that it reads.
        if alone != of_all:
            raise ValueError(f"the client finds {of_all} rows, and {alone} of the column alone")
        return of_all


def cannot_ask(condition: Condition) -> bool:
    """Whether Polars and Daft have no such type, or no list of such values."""
    return condition.kind == "uuid" or (
        condition.kind in NANOSECONDS and condition.operator == "IN"
    )


def by_operator(condition: Condition, column, literal):
    """The condition as an expression of Polars or Daft."""
    values = condition.python_values()
    makers = {
        "=": lambda: column == literal(values[0]),
        ">=": lambda: column >= literal(values[0]),
        "IN": lambda: column.is_in(values),
        "IS NULL": column.is_null,
    }
    return makers[condition.operator]()


class DataFusion(WithPyIceberg):
    """iceberg-rust, as a table of DataFusion; PyIceberg only finds the metadata."""

    def query(self, sql: str, namespace: str, table: str) -> pa.Table:
        from datafusion import SessionContext

        found = self.table(namespace, table)
        # Also an object of PyIceberg's, which Rust does not take.
        properties = found.io.properties.items()
        found.io.properties = {k: v for k, v in properties if isinstance(v, str)}
        found.io.properties["s3.path-style-access"] = "true"
        context = SessionContext()
        context.register_table("t", found)
        return context.sql(sql).to_arrow_table()

    def rows(self, namespace: str, table: str, snapshot_id: int | None) -> pa.Table | None:
        if snapshot_id is not None:
            return None  # it reads the newest snapshot only
        return self.query("SELECT * FROM t", namespace, table)

    def count(self, namespace: str, table: str) -> int:
        return self.query("SELECT count(*) FROM t", namespace, table).column(0)[0].as_py()

    def count_where(self, namespace: str, table: str, condition: Condition) -> int | None:
        if condition.snapshot_id is not None or (where := condition.sql(DATAFUSION)) is None:
            return None
        return self.query(f"SELECT * FROM t WHERE {where}", namespace, table).num_rows


class ClickHouse:
    def __init__(self, catalog_uri: str, warehouse: str, s3_endpoint: str, bucket: str) -> None:
        from chdb.session import Session

        self._session = Session()
        self._session.query("SET allow_database_iceberg = 1")
        self._session.query("SET output_format_arrow_string_as_string = 1")
        self._session.query(
            f"CREATE DATABASE ice ENGINE = DataLakeCatalog('{catalog_uri}/v1', '{KEY_ID}', "
            f"'{SECRET}') SETTINGS catalog_type = 'rest', warehouse = '{warehouse}', "
            f"storage_endpoint = '{s3_endpoint}/{bucket}', vended_credentials = false"
        )

    def source(self, namespace: str, table: str) -> str:
        name = f"{namespace}.{table}".replace("\\", "\\\\").replace("`", "\\`")
        return f"ice.`{name}`"

    def rows(self, namespace: str, table: str, snapshot_id: int | None) -> pa.Table:
        return self.query(f"SELECT * FROM {self.source(namespace, table)}{self.at(snapshot_id)}")

    def at(self, snapshot_id: int | None) -> str:
        return f" SETTINGS iceberg_snapshot_id = {snapshot_id}" if snapshot_id is not None else ""

    def count(self, namespace: str, table: str) -> int:
        table = self.query(f"SELECT count() FROM {self.source(namespace, table)}")
        return table.column(0)[0].as_py()

    def count_where(self, namespace: str, table: str, condition: Condition) -> int | None:
        if (where := condition.sql(CLICKHOUSE)) is None:
            return None
        where += self.at(condition.snapshot_id)
        found = self.query(f"SELECT count() FROM {self.source(namespace, table)} WHERE {where}")
        return found.column(0)[0].as_py()

    def query(self, sql: str) -> pa.Table:
        return pa.ipc.open_stream(self._session.query(sql, "ArrowStream").bytes()).read_all()


class Sail:
    def __init__(self, catalog_uri: str, warehouse: str, s3_endpoint: str) -> None:
        os.environ.update(
            SAIL_CATALOG__LIST=(
                f'[{{name="ice",type="iceberg-rest",uri="{catalog_uri}",warehouse="{warehouse}"}}]'
            ),
            SAIL_CATALOG__DEFAULT_CATALOG="ice",
            AWS_ENDPOINT=s3_endpoint,
            AWS_ENDPOINT_URL=s3_endpoint,
            AWS_ALLOW_HTTP="true",
            AWS_ACCESS_KEY_ID=KEY_ID,
            AWS_SECRET_ACCESS_KEY=SECRET,
            AWS_REGION=REGION,
            AWS_VIRTUAL_HOSTED_STYLE_REQUEST="false",
        )
        from pysail.spark import SparkConnectServer
        from pyspark.sql import SparkSession

        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._server = SparkConnectServer("127.0.0.1", port)
        self._server.start()
        self._session = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").getOrCreate()
        self._session.conf.set("spark.sql.session.timeZone", "UTC")

    def source(self, namespace: str, table: str, snapshot_id: int | None = None) -> str:
        then = f" VERSION AS OF {snapshot_id}" if snapshot_id is not None else ""
        names = ("`" + name.replace("`", "``") + "`" for name in ("ice", namespace, table))
        return ".".join(names) + then

    def rows(self, namespace: str, table: str, snapshot_id: int | None) -> pa.Table:
        source = self.source(namespace, table, snapshot_id)
        return self._session.sql(f"SELECT * FROM {source}").toArrow()

    def count(self, namespace: str, table: str) -> int:
        sql = f"SELECT count(*) FROM {self.source(namespace, table)}"
        return self._session.sql(sql).toArrow().column(0)[0].as_py()

    def count_where(self, namespace: str, table: str, condition: Condition) -> int | None:
        if (where := condition.sql(SAIL)) is None:
            return None
        source = self.source(namespace, table, condition.snapshot_id)
        sql = f"SELECT count(*) FROM {source} WHERE {where}"
        return self._session.sql(sql).toArrow().column(0)[0].as_py()


CLIENTS = {
    "polars": Polars,
    "daft": Daft,
    "datafusion": DataFusion,
    "chdb": ClickHouse,
    "pysail": Sail,
}


def answer(client, question: dict) -> dict:
    namespace, table = question["namespace"], question["table"]
    try:
        if question["what"] == "count":
            return {"count": client.count(namespace, table)}
        if question["what"] == "count_where":
            condition = Condition(*question["condition"])
            return {"count": client.count_where(namespace, table, condition)}
        rows = client.rows(namespace, table, question["snapshot_id"])
        if rows is None:
            return {"rows": None}
        for name in question["blobs"]:  # ClickHouse has one type for bytes and text
            place = rows.schema.get_field_index(name)
            if place >= 0 and pa.types.is_string(rows.schema.field(place).type):
                rows = rows.set_column(place, name, rows.column(place).cast(pa.binary()))
        with pa.OSFile(question["file"], "wb") as sink, pa.ipc.new_stream(sink, rows.schema) as out:
            out.write_table(rows)
        return {"rows": rows.num_rows}
    except BaseException as error:  # Rust panics are not subclasses of Exception
        return {"error": f"{type(error).__name__}: {error}"[:4000]}


def main() -> None:
    # Clients print to stdout; the answers go to a separate descriptor.
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    where = json.loads(sys.stdin.readline())
    kind = CLIENTS[sys.argv[1]]
    bucket = where.pop("bucket")
    client = kind(**where, bucket=bucket) if kind is ClickHouse else kind(**where)
    for line in sys.stdin:
        print(json.dumps(answer(client, json.loads(line))), file=out, flush=True)


if __name__ == "__main__":
    main()
