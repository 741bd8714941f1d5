"""What S3 has said of the keys of a bucket."""

from collections.abc import Mapping
from dataclasses import dataclass, field


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


@dataclass(frozen=True, slots=True)
class Listing:
    """What is known of a bucket within one request, so that it is not asked again."""

    pages: list[Page] = field(default_factory=list)
    put: set[str] = field(default_factory=set)
    """The keys that were put since, whatever the pages say."""

    def page_of(self, key: str) -> Page | None:
        """The page that shows if the bucket has this key; None: S3 was not asked."""
        # Keys are looked up in S3's order: mostly the newest page has the next one too.
        return next((page for page in reversed(self.pages) if page.covers(key)), None)
