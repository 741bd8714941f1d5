"""The page as `polynya serve` starts it: its packages are imported when somebody first looks."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..lakes.readable import ReadableLake
from ..stand_in.lambda_function import Handler

if TYPE_CHECKING:
    from .site import Site


@dataclass(frozen=True, slots=True)
class Addresses:
    """What clients are given: the line of JSON that `polynya serve` prints."""

    catalog_uri: str
    s3_endpoint: str
    warehouse: str
    delivery: str
    writes: bool
    folder: str = ""
    """The local folder with the data, which a bucket stands for; empty: the data is in S3."""


class LazyPage:
    """The handler of the page, which begins with the first request."""

    def __init__(self, addresses: Addresses, lake: ReadableLake) -> None:
        self._addresses, self._lake = addresses, lake
        self._site: Site | None = None
        self._handler: Handler | None = None

    def __call__(self, event: dict[str, Any], context: Any) -> Any:
        """The answer to an event."""
        if self._handler is None:
            from .app import page_handler
            from .site import Site

            self._site = Site.of(self._addresses, self._lake)
            self._handler = page_handler(self._site)
        return self._handler(event, context)

    def close(self) -> None:
        """End what has begun."""
        if self._site is not None:
            self._site.close()
