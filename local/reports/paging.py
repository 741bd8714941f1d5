"""One page of a long list."""

from dataclasses import dataclass

from polynya.errors import BadRequest


@dataclass(frozen=True, slots=True)
class Paging:
    """Where a page is in its list."""

    page: int
    """From 1 on."""
    size: int
    total: int
    """The entries of all pages."""

    @property
    def pages(self) -> int:
        """How many there are; an empty list has one."""
        return max(1, -(-self.total // self.size))

    @property
    def first(self) -> int:
        """How many entries are on the pages before."""
        return (self.page - 1) * self.size

    def check(self) -> None:
        """Raise if the list has no such page.

        Raises:
            BadRequest: it is behind the last one.
        """
        if self.page > self.pages:
            raise BadRequest(f"there is no page {self.page}: the list has {self.pages}")
