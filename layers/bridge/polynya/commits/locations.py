"""Directories below the lake's data path that clients choose for a namespace or a table."""

import re
from dataclasses import dataclass

from ..access.authorized_lake import AuthorizedLake
from ..access.table_scope import normalized
from ..ducklake import queries
from ..ducklake.paths import schema_location, within_lake
from ..ducklake.rows.objects import Schema
from ..mapping.properties import behind_access_point, staging_root
from .plan.file_statistics import normalised

# Characters that no client encodes or takes for a pattern.
PATH = re.compile(r"([A-Za-z0-9_,'() -][A-Za-z0-9_.,'() -]*/)+")

NO_TABLE = -1


@dataclass(frozen=True, slots=True)
class RequestedLocation:
    """A location that a client has chosen, in a lake as it is now."""

    lake: AuthorizedLake
    location: str
    staging_location: str
    """The setting; empty: below the lake's data path."""
    virtual_location: str
    """Where all virtual files are."""

    @property
    def directory(self) -> str:
        """The location with the scheme `s3` and one slash at its end."""
        return f"{normalised(self.location).rstrip('/')}/"

    @property
    def path(self) -> str | None:
        """Relative to the lake's data path; None: it is not below that, or has odd characters."""
        path, is_below = within_lake(self.directory, self.lake.lake)
        return path if is_below and PATH.fullmatch(path) else None

    def is_free(self, schema: Schema | None = None) -> bool:
        """Whether nothing of the lake is there, or may come there.

        Args:
            schema: the directory may be within that of this one.
        """
        con, lake = self.lake.con, self.lake.lake
        schemas = queries.schemas_at(self.lake.snapshot_id).run(con)
        own = None if schema is None else normalized(schema_location(lake, schema))
        directories = {
            *(schema_location(lake, other) for other in schemas),
            # Also of dropped tables, whose files snapshots show.
            *queries.others(lake, NO_TABLE).run(con).directories,
            staging_root(self.staging_location, lake.data_path),
            f"{behind_access_point(self.virtual_location, lake.data_path)}/",
        }
        directory = normalized(self.directory)
        return not any(
            other.startswith(directory) or (directory.startswith(other) and other != own)
            for other in map(normalized, directories)
        )
