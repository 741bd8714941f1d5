"""Step 6: registers the published tables in AWS's Glue catalog, and removes those that are gone."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from polynya.ducklake.rows.lake import Lake
from polynya.ducklake.rows.named_objects import Schema
from polynya.storage.s3 import is_s3

from ...common.errors import BadInput
from ..destinations import PublishSettings
from ..glue.catalog import GlueDatabase, NotOurs, Registration
from ..table import PublishedTable
from .select_tables import Selected

NAME = re.compile(r"[a-z0-9_]{1,255}")
"""What all engines that read Glue accept: Athena takes no other characters."""


@dataclass(frozen=True, slots=True)
class Registrar:
    """Registers the tables of a run in one database of Glue."""

    database: GlueDatabase
    deregisters: bool
    """Whether tables that the lake has no more are removed from Glue."""

    def register(self, table: PublishedTable, selected: Sequence[Selected]) -> None:
        """Register a table whose metadata document is published; its result says what was done.

        Args:
            selected: all tables of the run.

        Raises:
            Unavailable: Glue does not answer, or denies access.
        """
        try:
            table.result.registered = self.database.register(_registration(table, selected))
        except NotOurs as error:
            table.result.not_registered = str(error)

    def deregister(
        self, lake: Lake, schemas: Iterable[Schema], selected: Sequence[Selected]
    ) -> list[str]:
        """Remove the tables that are gone; gives their names in Glue.

        Args:
            schemas: those of the run; empty: all.
            selected: all tables of the run.

        Raises:
            Unavailable: as `register`.
        """
        if not self.deregisters:
            return []
        names = set(_names(selected))
        return self.database.remove_others(lake.data_path, set(map(_mark, schemas)), names)


def registrar(
    register: str | None,
    deregister: bool,
    settings: PublishSettings,
    export: str | None,
    tables: Sequence[str],
) -> Registrar | None:
    """What `--register` and `--deregister` ask for; None: nothing.

    Raises:
        BadInput: the options contradict others, or there is no such database.
        Unavailable: Glue does not answer, or denies access.
    """
    if register is None:
        if deregister:
            raise BadInput("--deregister needs --register")
        return None
    catalog, _, name = register.partition(":")
    if catalog != "glue" or not NAME.fullmatch(name):
        raise BadInput(
            "--register must be glue:DATABASE, a database of lower-case letters, digits and _"
        )
    if export and not is_s3(export):
        raise BadInput("--register needs an --export to s3://bucket/prefix: Glue's readers use S3")
    if settings.storage and not settings.storage.is_materialized:
        raise BadInput(
            "--register needs DELIVERY=materialize or --export: Glue's readers use no S3 Object "
            "Lambda access point"
        )
    if deregister and tables:
        raise BadInput("--deregister needs whole schemas: leave out --table")
    database = GlueDatabase(name)
    database.check()
    return Registrar(database, deregister)


def _registration(table: PublishedTable, selected: Sequence[Selected]) -> Registration:
    history, location = table.history, table.result.metadata_location
    name = history.table.table_name.lower()
    if not NAME.fullmatch(name):
        raise NotOurs("Athena takes a-z, 0-9 and _ in names only; rename the table")
    if (number := _names(selected)[name]) > 1:
        raise NotOurs(
            f"{number} tables would have the Glue name {name}; publish each schema into a Glue "
            "database of its own, with --namespace"
        )
    if location is None:
        raise NotOurs("its metadata document is not published; leave out --snapshots")
    return Registration(
        name=name,
        namespace=_mark(history.schema),
        data_path=history.lake.data_path,
        snapshot_id=history.snapshot_id,
        metadata_location=location,
        document=table.document,
    )


def _mark(schema: Schema) -> str:
    """What Glue's table says of its namespace: a name, or the names of several levels as JSON."""
    return json.dumps(schema.namespace) if schema.parents else schema.schema_name


def _names(selected: Sequence[Selected]) -> Counter[str]:
    """How many of the tables have each Glue name, which has lower-case letters only."""
    return Counter(table.table_name.lower() for _, table in selected)
