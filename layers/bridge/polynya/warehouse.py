"""The names of a lake: `warehouse` of getConfig, and the path prefix of all other routes."""

import re
from dataclasses import dataclass

SNAPSHOT_ID = "(?P<snapshot_id>0|[1-9][0-9]{0,17})"

PINNED_NAME = re.compile(rf"(?P<name>[A-Za-z0-9_-]+)@{SNAPSHOT_ID}")
PINNED_PREFIX = re.compile(rf"(?P<name>[A-Za-z0-9_-]+)--at-{SNAPSHOT_ID}")
"""Another form than the name's, because some clients escape `@` in a path and some do not."""


@dataclass(frozen=True, slots=True)
class Warehouse:
    """A lake, at its newest snapshot or pinned to one."""

    name: str
    snapshot_id: int | None = None
    """The snapshot that every table is pinned to; None for the newest."""

    @classmethod
    def of_name(cls, name: str) -> "Warehouse":
        """Read `lake` or `lake@12`."""
        return cls._parse(PINNED_NAME, name)

    @classmethod
    def of_prefix(cls, prefix: str) -> "Warehouse":
        """Read `lake` or `lake--at-12`."""
        return cls._parse(PINNED_PREFIX, prefix)

    @classmethod
    def _parse(cls, pinned: re.Pattern[str], text: str) -> "Warehouse":
        match = pinned.fullmatch(text)
        return cls(match["name"], int(match["snapshot_id"])) if match else cls(text)

    @property
    def prefix(self) -> str:
        """`lake` or `lake--at-12`."""
        return self.name if self.snapshot_id is None else f"{self.name}--at-{self.snapshot_id}"

    def __str__(self) -> str:
        return self.name if self.snapshot_id is None else f"{self.name}@{self.snapshot_id}"
