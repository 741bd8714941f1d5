"""What a run of `publish` has done, in all and for each table."""

from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(slots=True)
class TableResult:
    """What a run has done for one table; with `dry_run`, what it would do."""

    name: str
    refused: str | None = None
    """Why the table cannot be served, and is not published."""
    snapshots: int = 0
    manifests_built: int = 0
    manifests_existing: int = 0
    lists_built: int = 0
    lists_existing: int = 0
    files: int = 0
    """The number of all files that were written."""
    bytes: int = 0
    metadata_location: str | None = None
    is_new: bool = False
    """Whether the metadata document has changed."""
    registered: str | None = None
    """What was done to its table in Glue: `created`, `updated` or `unchanged`."""
    not_registered: str | None = None
    """Why Glue's table was left as it is, or none was created."""

    def add_files(self, files: int, size: int) -> None:
        """Count written files and their size in bytes."""
        self.files += files
        self.bytes += size


@dataclass(slots=True)
class Report:
    """What a run has done."""

    snapshot_id: int
    dry_run: bool
    is_snapshot_shared: bool
    """Whether executors read the same snapshot of PostgreSQL as the driver."""
    seconds: float = 0.0
    tables: list[TableResult] = field(default_factory=list)
    deregistered: list[str] = field(default_factory=list)
    """Tables that were removed from Glue."""

    @property
    def json(self) -> dict[str, Any]:
        """The report as a JSON document."""
        return asdict(self)

    @property
    def summary(self) -> str:
        """One line of text."""
        done = [table for table in self.tables if not table.refused]
        refused = len(self.tables) - len(done)
        manifests = sum(table.manifests_built for table in done)
        lists = sum(table.lists_built for table in done)
        text = (
            f"{len(done):,} tables at snapshot {self.snapshot_id}: {manifests:,} manifests and "
            f"{lists:,} lists {'to generate' if self.dry_run else 'generated'}"
        )
        if not self.dry_run:
            text += f", {sum(table.bytes for table in done):,} bytes, {self.seconds:.1f} s"
        return f"{text}; {refused:,} refused" if refused else text

    @property
    def glue_summary(self) -> str:
        """One line about Glue; empty if nothing was to be registered."""
        done = Counter(table.registered for table in self.tables if table.registered)
        left = sum(table.not_registered is not None for table in self.tables)
        if not (done or left or self.deregistered):
            return ""
        numbers = [f"{done[what]:,} {what}" for what in ("created", "updated", "unchanged")]
        return (
            f"Glue: {', '.join(numbers)}, {len(self.deregistered):,} removed, {left:,} left alone"
        )
