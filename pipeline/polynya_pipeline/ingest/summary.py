"""The result of a run of `ingest`, and the choices of its command line.

This module imports nothing that is slow to load, because `--help` needs it.
"""

from dataclasses import asdict, dataclass, field
from enum import StrEnum
from typing import Any


@dataclass(slots=True)
class Summary:
    """The result of a run, as JSON and as lines of text."""

    table: str
    mode: str
    token: str
    outcome: str
    """committed, already-committed, nothing-to-do, dry-run"""
    snapshot_id: int | None = None
    created: bool = False
    added_columns: list[str] = field(default_factory=list)
    """Dotted paths."""
    files: int = 0
    rows: int = 0
    bytes: int = 0
    ended_files: int = 0
    ended_inlined_rows: int = 0
    retries: int = 0
    location: str = ""
    file_prefix: str = ""
    orphans: list[str] = field(default_factory=list)
    """The files of earlier runs of this job that no snapshot names."""
    orphans_removed: int = 0

    @property
    def json(self) -> dict[str, Any]:
        """The summary as a JSON document."""
        return asdict(self)

    @property
    def lines(self) -> list[str]:
        """The summary as text."""
        from polynya.runtime.printable import printable_report

        lines = [f"{self.table}: {OUTCOMES[self.outcome].format(self=self)}"]
        if self.created:
            lines.append(f"The table {'would be' if self.outcome == 'dry-run' else 'was'} created.")
        if self.added_columns:
            lines.append(f"New columns: {', '.join(self.added_columns)}")
        if self.ended_files or self.ended_inlined_rows:
            lines.append(
                f"Overwritten: {self.ended_files:,} files, {self.ended_inlined_rows:,} inlined rows"
            )
        if self.orphans:
            what = "removed" if self.orphans_removed else "not removed"
            lines.append(f"Files of earlier runs, {what}: {', '.join(self.orphans)}")
        lines.append(f"Token: {self.token}. Names of files: {self.file_prefix}*")
        return printable_report(lines)


OUTCOMES = {
    "committed": "{self.rows:,} rows in {self.files:,} files, {self.bytes:,} bytes: "
    "snapshot {self.snapshot_id}",
    "already-committed": "this job was done already, as snapshot {self.snapshot_id}; "
    "nothing was changed",
    "nothing-to-do": "there are no rows; nothing was changed",
    "dry-run": "would {self.mode} at {self.location}; nothing was changed",
}


class Mode(StrEnum):
    """What happens to the rows that a table has."""

    APPEND = "append"
    OVERWRITE = "overwrite"
    OVERWRITE_PARTITIONS = "overwrite-partitions"


class Format(StrEnum):
    """The formats of files that Spark reads."""

    PARQUET = "parquet"
    CSV = "csv"
    JSON = "json"
