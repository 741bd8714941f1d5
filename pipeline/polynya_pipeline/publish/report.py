"""The report of a run of `publish`, on the terminal and as JSON; and pages of small files.

A page is one object with copies of small files that are adjacent in a list: with pages, a thousand
summaries are read with about thirty requests.
"""

import itertools
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from polynya.mapping.manifests import fingerprint


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
        served = [table for table in self.tables if not table.refused]
        refused = len(self.tables) - len(served)
        manifests = sum(table.manifests_built for table in served)
        lists = sum(table.lists_built for table in served)
        text = (
            f"{len(served):,} tables at snapshot {self.snapshot_id}: {manifests:,} manifests and "
            f"{lists:,} lists {'to generate' if self.dry_run else 'generated'}"
        )
        if not self.dry_run:
            text += f", {sum(table.bytes for table in served):,} bytes, {self.seconds:.1f} s"
        return f"{text}; {refused:,} refused" if refused else text

    @property
    def glue_summary(self) -> str:
        """One line about Glue; empty if nothing was to be registered."""
        counts = Counter(table.registered for table in self.tables if table.registered)
        left = sum(table.not_registered is not None for table in self.tables)
        if not (counts or left or self.deregistered):
            return ""
        numbers = [f"{counts[what]:,} {what}" for what in ("created", "updated", "unchanged")]
        return (
            f"Glue: {', '.join(numbers)}, {len(self.deregistered):,} removed, {left:,} left alone"
        )


COLUMNS = ("table", "snapshots", "manifests", "existing", "lists", "existing", "files", "bytes")
TEXT_COLUMNS = ("table", "metadata")


def show(report: Report) -> None:
    """Print one line for each table and the summary on stdout."""
    from polynya.runtime.printable import printable_report
    from rich.text import Text

    from ..common.progress import grid, output

    report = printable_report(report)
    out, lines = output(), grid()
    for name in (*COLUMNS, "metadata"):
        is_text = name in TEXT_COLUMNS
        lines.add_column(name, justify="left" if is_text else "right", overflow="fold")
    for table in report.tables:
        numbers = (
            table.snapshots,
            table.manifests_built,
            table.manifests_existing,
            table.lists_built,
            table.lists_existing,
            table.files,
            table.bytes,
        )
        text = table.refused or table.metadata_location or ""
        lines.add_row(Text(table.name), *(f"{number:,}" for number in numbers), Text(text))
    if report.tables:
        out.print(lines)
    out.print(report.summary, style="bold green", soft_wrap=True)
    if report.glue_summary:
        out.print(report.glue_summary, style="bold green", soft_wrap=True)


PAGE = 32
"""The approximate number of files on a page: if one of them is new, all are read one by one."""

Page = tuple[str, ...]
"""The keys of the files on a page."""


def pages(keys: Sequence[str]) -> Iterator[Page]:
    """Divide keys into pages, unless they are few.

    Whether a page begins at a key depends on this key alone, so a new key changes only its page.
    """
    if len(keys) <= PAGE:
        return
    starts = [index for index, key in enumerate(keys) if not zlib.crc32(key.encode()) % PAGE]
    for start, end in itertools.pairwise(sorted({0, *starts, len(keys)})):
        yield tuple(keys[start:end])


def page_key(page: Page) -> str:
    """The key of the object that stores a page; it depends on all keys of the page."""
    return f"{page[0]}.{fingerprint(*page)}.page"


def pack(bodies: Iterable[bytes]) -> bytes:
    """The content of a page; each file must be one line."""
    return zlib.compress(b"\n".join(bodies))


def unpack(body: bytes) -> list[bytes]:
    """The contents of the files on a page, in the order of its keys."""
    return zlib.decompress(body).split(b"\n")
