"""Pages of a list of names, as the Iceberg REST catalog has them."""

import base64
from collections.abc import Callable, Sequence
from typing import TypeVar

from .errors import BadRequest

Item = TypeVar("Item")


def page_of(
    items: Sequence[Item],
    name_of: Callable[[Item], str],
    page_token: str | None,
    page_size: int | None,
) -> tuple[Sequence[Item], dict[str, str]]:
    """One page, ordered by name, and the part of the answer that leads to the next page.

    The token is the last name of the page, so that it survives other changes of the list.

    Args:
        page_token: of the page before; None for the first page.
        page_size: None for all that is left.

    Raises:
        BadRequest: the token is none of this catalog's.
    """
    items = sorted(items, key=name_of)
    if page_token:
        after = _decoded(page_token)
        items = [item for item in items if name_of(item) > after]
    if page_size is None or len(items) <= page_size:
        return items, {}
    page = items[:page_size]
    token = base64.urlsafe_b64encode(name_of(page[-1]).encode()).decode()
    return page, {"next-page-token": token}


def _decoded(page_token: str) -> str:
    try:
        return base64.b64decode(page_token, altchars=b"-_", validate=True).decode()
    except ValueError:  # not base64, not even ASCII, or not UTF-8 inside
        raise BadRequest("pageToken is not one that this catalog gave out") from None
