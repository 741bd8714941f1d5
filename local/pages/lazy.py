"""The page as `polynya serve` starts it: its packages are imported when somebody first looks."""

from typing import TYPE_CHECKING, Any

from ..lakes.readable import ReadableLake
from ..stand_in.lambda_function import Handler
from .addresses import Addresses

if TYPE_CHECKING:
    from .site import Site


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
