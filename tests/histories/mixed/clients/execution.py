"""Does operations as Iceberg clients, and says how they ended."""

import io
import re
from collections.abc import Callable
from enum import StrEnum
from typing import Any
from uuid import uuid4

import boto3
import pyarrow as pa
from pyarrow import parquet
from pyiceberg.exceptions import (
    BadRequestError,
    CommitFailedException,
    NotInstalledError,
    ServiceUnavailableError,
    ValidationError,
    ValidationException,
)
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import schema_to_pyarrow
from pyiceberg.table import Table, Transaction
from pyiceberg.transforms import parse_transform
from pyiceberg.types import IcebergType

from ..operations import DUCKDB, PYICEBERG, SPARK, Operation, Step
from ..scene import Scene
from . import spark


class Outcome(StrEnum):
    """How an operation ended."""

    DONE = "done"
    REFUSED = "refused with 400"
    CONFLICT = "refused with 409"
    CLIENT = "the client refused"
    LATE = "the machine is too slow"


class Unexpected(Exception):
    """An answer that no client should get."""


CLIENTS_OWN = (
    ValidationException,
    ValueError,
    NotImplementedError,
    TypeError,
    KeyError,
    pa.ArrowException,
    IndexError,
    NotInstalledError,
)
"""What PyIceberg raises before it commits."""

Between = Callable[[], None]


def perform(scene: Scene, operation: Operation, between: Between) -> tuple[Outcome, str]:
    """Do an operation as a client; also what it was told, if it was refused.

    Args:
        between: called after the table was loaded.

    Raises:
        Unexpected: the answer is an error that is not the client's.
    """
    return CLIENTS[operation.by](scene, operation, between)


def _pyiceberg(scene: Scene, operation: Operation, between: Between) -> tuple[Outcome, str]:
    table = scene.table()
    between()
    try:
        if len(operation.steps) == 1:
            _step(scene, table, table, operation.steps[0])
        else:
            with table.transaction() as transaction:
                for step in operation.steps:
                    _step(scene, table, transaction, step)
    except BadRequestError as error:
        return Outcome.REFUSED, str(error)
    except CommitFailedException as error:
        return Outcome.CONFLICT, str(error)
    except CLIENTS_OWN as error:
        return Outcome.CLIENT, f"{type(error).__name__}: {error}"
    except ServiceUnavailableError as error:
        return Outcome.LATE, str(error)
    except ValidationError as error:
        # It does not drop a column of the partitioning or of the sort order.
        if any(step[0] == "drop" for step in operation.steps):
            return Outcome.CLIENT, f"{type(error).__name__}: {error}"
        raise Unexpected(f"{type(error).__name__}: {error}") from error
    except OSError as error:
        if _cleaned(operation):
            return Outcome.CLIENT, f"{type(error).__name__}: {error}"
        raise Unexpected(f"{type(error).__name__}: {error}") from error
    except Exception as error:
        raise Unexpected(f"{type(error).__name__}: {error}") from error
    return Outcome.DONE, ""


def _cleaned(operation: Operation) -> bool:
    return any("cleanup" in sql for one in operation.between for sql in one.statements)


def _step(scene: Scene, table: Table, to: Table | Transaction, step: Step) -> None:
    """One action; `to` is the table or a transaction."""
    action, *arguments = step
    if action == "add file":
        to.add_files([_file(scene, _arrow(scene, to, arguments[0]))])
    elif action in ROWS:
        rows = _arrow(scene, to, arguments[0])
        ROWS[action](to, rows, *arguments[1:])
    else:
        OTHER[action](to, *arguments)


def _arrow(scene: Scene, to: Table | Transaction, sql: str) -> pa.Table:
    """The rows of a query in the schema of the table."""
    found = scene.con.execute(sql).to_arrow_table()
    metadata = to.metadata if isinstance(to, Table) else to.table_metadata
    schema = schema_to_pyarrow(metadata.schema(), include_field_ids=False)
    columns = [
        found[field.name].cast(field.type)
        if field.name in found.column_names
        else pa.nulls(len(found), field.type)
        for field in schema
    ]
    return pa.Table.from_arrays(columns, schema=schema)


def _file(scene: Scene, rows: pa.Table) -> str:
    """The location of a new file without field ids, which no client has written."""
    stream = io.BytesIO()
    parquet.write_table(rows, stream)
    location = f"{scene.lake.data_path}/landing/{uuid4()}.parquet"
    bucket, _, key = location.removeprefix("s3://").partition("/")
    s3 = boto3.client("s3", endpoint_url=scene.s3_endpoint, region_name="us-east-1")
    s3.put_object(Bucket=bucket, Key=key, Body=stream.getvalue())
    return location


def _overwrite(to: Any, rows: pa.Table, where: str = "") -> None:
    to.overwrite(rows, overwrite_filter=where or AlwaysTrue())


ROWS: dict[str, Callable[..., Any]] = {
    "append": lambda to, rows: to.append(rows),
    "overwrite": _overwrite,
    "upsert": lambda to, rows: to.upsert(rows, join_cols=["k"]),
    "dynamic": lambda to, rows: to.dynamic_partition_overwrite(rows),
}
"""Actions with rows."""


def _alter(method: str) -> Callable[..., Any]:
    def action(to: Any, *arguments: str) -> None:
        with to.update_schema() as change:
            getattr(change, method)(*map(_argument, arguments))

    return action


def _argument(text: str) -> Any:
    """A name, a path, or a type after a colon."""
    if text.startswith(":"):
        return IcebergType.handle_primitive_type(text[1:], None)
    return tuple(text.split("\0")) if "\0" in text else text


def _partition(to: Any, *keys: str) -> None:
    with to.update_spec() as change:
        metadata = to.metadata if isinstance(to, Table) else to.table_metadata
        for field in metadata.spec().fields:
            change.remove_field(field.name)
        for column, transform in zip(keys[::2], keys[1::2], strict=True):
            # Names that Avro knows: DuckDB writes no others.
            name = f"p_{transform[:4]}_{re.sub('[^a-z]', '_', column)}"
            change.add_field(column, parse_transform(transform), name)


def _properties(to: Any, key: str, value: str) -> None:
    if isinstance(to, Table):
        with to.transaction() as transaction:
            transaction.set_properties({key: value})
    else:
        to.set_properties({key: value})


OTHER: dict[str, Callable[..., Any]] = {
    "delete": lambda to, where: to.delete(where or AlwaysTrue()),
    "add": _alter("add_column"),
    "drop": _alter("delete_column"),
    "rename": _alter("rename_column"),
    "promote": _alter("update_column"),
    "partition": _partition,
    "set": _properties,
}
"""Actions without rows."""


def _duckdb(scene: Scene, operation: Operation, between: Between) -> tuple[Outcome, str]:
    client = scene.duckdb
    assert client is not None
    statements = [sql.replace("{t}", "ice.main.t") for sql in operation.statements]
    try:
        client.query("BEGIN")
        if operation.between:
            client.query("SELECT count(*) FROM ice.main.t")
            between()
        for sql in statements:
            client.query(sql)
        client.query("COMMIT")
    except RuntimeError as error:
        text = str(error)
        _roll_back(client)
        for outcome, words in DUCKDB_SAYS.items():
            if any(word in text for word in words):
                return outcome, text
        if _cleaned(operation) and "HTTP" in text:
            return Outcome.CLIENT, text
        raise Unexpected(text) from error
    return Outcome.DONE, ""


def _roll_back(client: Any) -> None:
    try:
        client.query("ROLLBACK")
    except RuntimeError as error:
        if "no transaction is active" not in str(error):
            client.restart()


DUCKDB_SAYS = {
    Outcome.REFUSED: ("BadRequest_400", "BadRequestException"),
    Outcome.LATE: ("SlowDown", "ServiceUnavailable"),
    Outcome.CONFLICT: ("Conflict_409", "CommitFailedException"),
    # After an error DuckDB deletes its files, and says only this if one of them is committed.
    Outcome.CLIENT: (
        "Could not remove file",
        "Not implemented",
        "Binder Error",
        "not supported",
        "Invalid Configuration",
        "entries without partition info",
        "Invalid Avro identifier",
        # Two changes of files from before the partitioning was removed, in one transaction: also
        # with Iceberg's own REST catalog, in a table of PyIceberg.
        "STRUCT to STRUCT cast must have at least one matching member",
    ),
}


def _spark(scene: Scene, operation: Operation, between: Between) -> tuple[Outcome, str]:
    """Spark loads the table and commits in one statement: `between` runs before it."""
    try:
        spark.run(scene, operation)
    except RuntimeError as error:
        for outcome, words in SPARK_SAYS.items():
            if any(word in str(error) for word in words):
                return outcome, str(error)
        raise Unexpected(str(error)[:2000]) from error
    return Outcome.DONE, ""


SPARK_SAYS = {
    Outcome.REFUSED: ("BadRequestException",),
    Outcome.LATE: ("SlowDown", "ServiceUnavailable"),
    Outcome.CONFLICT: ("CommitFailedException",),
    Outcome.CLIENT: ("ValidationException", "AnalysisException", "UnsupportedOperationException"),
}

CLIENTS = {PYICEBERG: _pyiceberg, DUCKDB: _duckdb, SPARK: _spark}
