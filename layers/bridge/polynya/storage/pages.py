"""What S3 has said of the keys of a bucket."""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Page:
    """The keys of a folder, from one key to another, in S3's order: that of their bytes."""

    folder: str
    first: str
    last: str | None
    """None: the page is the last one of the folder."""
    modified: Mapping[str, float]
    """When each key was put or renewed, in seconds since 1970."""

    def covers(self, key: str) -> bool:
        """Whether the page shows if the bucket has this key."""
        if not key.startswith(self.folder) or key.encode() < self.first.encode():
            return False
        return self.last is None or key.encode() <= self.last.encode()


def put_page(key: str, now: float) -> Page:
    """What is known of a key after it was put."""
    return Page(key, key, key, {key: now})
