"""A database of AWS's Glue catalog, in which published tables are registered.

A Glue table of type ICEBERG names a metadata document. A table that this job did not create is
never changed; its own tables carry the marks below.
https://docs.aws.amazon.com/glue/latest/webapi/API_UpdateTable.html

Types and parameters have the names that Iceberg's own Glue catalogs write.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

from polynya.iceberg.table_metadata import TableMetadata
from polynya.iceberg.types import Field, List, Map, Primitive, Struct, Type
from polynya.types.names import iceberg_type

from ..common.errors import BadInput, Unavailable

MOST_CHARACTERS = 131_072
"""The length of the longest text of a type in Glue."""


def columns(document: TableMetadata) -> list[dict[str, Any]]:
    """The columns of a table for Glue's `StorageDescriptor`: the current ones, then former ones."""
    current = document.current_schema_id
    schemas = sorted(document.schemas, key=lambda schema: schema.schema_id != current)
    # Former columns too, as Iceberg's own Glue catalogs write them.
    by_name: dict[str, dict[str, Any]] = {}
    for schema in schemas:
        for field in schema.fields:
            is_current = schema.schema_id == current
            by_name.setdefault(field.name, _column(field, is_current, document.docs))
    return list(by_name.values())


def _column(field: Field, is_current: bool, docs: Any) -> dict[str, Any]:
    column = {
        "Name": field.name,
        "Type": hive_type(field.type),
        "Parameters": {
            "iceberg.field.id": str(field.field_id),
            "iceberg.field.optional": str(not field.required).lower(),
            "iceberg.field.current": str(is_current).lower(),
        },
    }
    if comment := docs.get(field.field_id):
        column["Comment"] = _line(comment)
    return column


def _line(comment: str) -> str:
    """A comment as Glue accepts it: one line of at most 255 characters."""
    return " ".join(comment.split())[:255]


def hive_type(type_: Type) -> str:
    """The text of a type in Hive's syntax."""
    text = "".join(_parts(type_))
    # Only Glue's console and Lake Formation show it: engines read the types in Iceberg's metadata.
    return text if len(text) <= MOST_CHARACTERS else text.partition("<")[0]


def _parts(type_: Type) -> Iterator[str]:
    match type_:
        case Primitive(name):
            yield iceberg_type(name).hive or name.replace(" ", "")
        case Struct(fields):
            members = (f"{field.name}:{hive_type(field.type)}" for field in fields)
            yield f"struct<{','.join(members)}>"
        case List(_, element):
            yield f"array<{hive_type(element)}>"
        case Map(_, key, _, value):
            yield f"map<{hive_type(key)},{hive_type(value)}>"


Table = Mapping[str, Any]
"""A table as Glue returns it."""

DATA_PATH, NAMESPACE = "polynya.data-path", "polynya.namespace"
SNAPSHOT_ID, LOCATION = "polynya.snapshot-id", "polynya.metadata-location"
"""Parameters that mark our tables: the lake, its schema and snapshot, and what was registered."""

TRIES = 3
"""How often a change is tried if others change the table at the same time."""


class NotOurs(Exception):
    """The Glue table is left as it is; the message says why."""


@dataclass(frozen=True, slots=True)
class Registration:
    """A published table that is to be registered in Glue."""

    name: str
    namespace: str
    """The mark of the schema."""
    data_path: str
    """The lake's data path, which distinguishes our tables from those of other lakes."""
    snapshot_id: int
    """The lake's snapshot."""
    metadata_location: str
    document: TableMetadata


@dataclass(frozen=True, slots=True)
class GlueDatabase:
    """A database of the Glue catalog of this account and region."""

    name: str

    def check(self) -> None:
        """Check that the database can be read.

        Raises:
            BadInput: there is no such database.
            Unavailable: Glue does not answer, or denies access.
        """
        with self._translate_errors():
            _client().get_tables(DatabaseName=self.name, MaxResults=1)

    def register(self, table: Registration) -> str:
        """Point a Glue table to a metadata document; creates the table if there is none.

        Returns:
            `created`, `updated` or `unchanged`.

        Raises:
            NotOurs: a table of this name is not ours, or a newer run has registered it.
            Unavailable: Glue does not answer, or denies access, or others keep changing the table.
        """
        for _ in range(TRIES):
            glue_table = self._table(table.name)
            if glue_table is None:
                if self._create(table):
                    return "created"
                continue
            _check_is_ours(glue_table, table)
            if glue_table["Parameters"][LOCATION] == table.metadata_location:
                return "unchanged"
            if self._update(glue_table, table):
                return "updated"
        raise Unavailable(f"the Glue table {self.name}.{table.name} is being changed by others")

    def remove_others(self, data_path: str, namespaces: set[str], names: set[str]) -> list[str]:
        """Remove the Glue tables that a lake registered and no longer has.

        Args:
            namespaces: the marks of the schemas of the lake; empty: all.
            names: the Glue names of the tables that these schemas have.

        Returns:
            The names of the removed tables.

        Raises:
            Unavailable: Glue does not answer, or denies access.
        """
        gone = []
        with self._translate_errors():
            pages = _client().get_paginator("get_tables").paginate(DatabaseName=self.name)
            for table in (table for page in pages for table in page["TableList"]):
                marks = table.get("Parameters", {})
                is_ours = marks.get(DATA_PATH) == data_path and _is_as_registered(table)
                is_selected = not namespaces or marks.get(NAMESPACE) in namespaces
                if is_ours and is_selected and table["Name"] not in names:
                    gone.append(table["Name"])
            # Glue's DeleteTable takes no version: a commit since the list was read is not noticed.
            for name in gone:
                with suppress(_client().exceptions.EntityNotFoundException):  # it is gone already
                    _client().delete_table(DatabaseName=self.name, Name=name)
        return gone

    def _table(self, name: str) -> Table | None:
        with self._translate_errors():
            try:
                answer = _client().get_table(DatabaseName=self.name, Name=name)
            except _client().exceptions.EntityNotFoundException:
                return None
            table: Table = answer["Table"]
            return table

    def _create(self, table: Registration) -> bool:
        """Create a table; False: another writer was faster."""
        with self._translate_errors():
            try:
                _client().create_table(DatabaseName=self.name, TableInput=_input({}, table))
            except _client().exceptions.AlreadyExistsException:
                return False
            return True

    def _update(self, glue_table: Table, table: Registration) -> bool:
        """Change a table; False: another writer was faster."""
        with self._translate_errors():
            try:
                _client().update_table(
                    DatabaseName=self.name,
                    TableInput=_input(glue_table, table),
                    # Glue refuses the update if the table has a newer version.
                    VersionId=glue_table["VersionId"],
                    SkipArchive=True,  # Glue keeps a limited number of versions
                )
            except (
                _client().exceptions.ConcurrentModificationException,
                _client().exceptions.EntityNotFoundException,
            ):
                return False
            return True

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Turn errors of Glue into those of a job."""
        from botocore.exceptions import BotoCoreError, ClientError

        try:
            yield
        except ClientError as error:
            code = error.response["Error"]["Code"]
            if code == "EntityNotFoundException":
                raise BadInput(f"there is no Glue database {self.name}: create it first") from None
            raise Unavailable(f"the Glue database {self.name} cannot be used: {code}") from None
        except BotoCoreError as error:
            reason = type(error).__name__
            raise Unavailable(f"the Glue database {self.name} cannot be used: {reason}") from None


@cache
def _client() -> Any:
    """One client per process; the endpoint comes from AWS_ENDPOINT_URL_GLUE."""
    import boto3
    from botocore.config import Config

    retries = {"total_max_attempts": 6, "mode": "standard"}
    return boto3.client("glue", config=Config(connect_timeout=5, read_timeout=60, retries=retries))


def _check_is_ours(glue_table: Table, table: Registration) -> None:
    """Check that this run may change a Glue table.

    Raises:
        NotOurs: as `GlueDatabase.register`.
    """
    marks = glue_table.get("Parameters", {})
    if marks.get(DATA_PATH) != table.data_path or marks.get(NAMESPACE) != table.namespace:
        raise NotOurs(f"Glue has a table {table.name} that this lake's schema did not register")
    if not _is_as_registered(glue_table):
        raise NotOurs(
            f"somebody has committed to the Glue table {table.name}: DuckLake does not have it; "
            "remove the table from Glue to have it registered again"
        )
    if int(marks.get(SNAPSHOT_ID, 0)) > table.snapshot_id:
        raise NotOurs(f"a newer run has registered {table.name}")


def _is_as_registered(glue_table: Table) -> bool:
    """Whether the table still names the document that was registered last."""
    # An engine that commits through Glue changes metadata_location, but not our mark.
    marks = glue_table.get("Parameters", {})
    return LOCATION in marks and marks.get("metadata_location") == marks[LOCATION]


def _input(glue_table: Table, table: Registration) -> dict[str, Any]:
    """The table as Glue takes it; `glue_table` is the one to update."""
    # An update replaces the whole table, so it has to repeat what others have added.
    fields = ("Description", "Owner", "Retention")
    unchanged = {name: glue_table[name] for name in fields if glue_table.get(name)}
    before = dict(glue_table.get("Parameters", {}))
    if "metadata_location" in before:
        before["previous_metadata_location"] = before["metadata_location"]
    marks = {
        DATA_PATH: table.data_path,
        NAMESPACE: table.namespace,
        SNAPSHOT_ID: str(table.snapshot_id),
        LOCATION: table.metadata_location,
    }
    iceberg = {"table_type": "ICEBERG", "metadata_location": table.metadata_location}
    return {
        **unchanged,
        "Name": table.name,
        "TableType": "EXTERNAL_TABLE",
        "Parameters": {**before, **iceberg, "EXTERNAL": "TRUE", **marks},
        "StorageDescriptor": {
            "Columns": columns(table.document),
            "Location": table.document.location,
        },
    }
