"""The bucket of the delivery `materialize`, which clients read: its failures are errors."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar

from aws_lambda_powertools import Logger

from ..errors import PolynyaError, ServiceUnavailable, log_fields
from ..metrics import count
from ..parallel import in_parallel
from .listing import Listing
from .stores import ListableStore

logger = Logger(child=True)

_listing: ContextVar[Listing | None] = ContextVar("listing", default=None)
"""What is known of the bucket; None outside of `one_listing`."""


class DeliveryBucket:
    """Puts and lists the objects that clients read.

    Raises:
        ServiceUnavailable: every method, if the bucket does not answer or refuses.
        Misconfigured: `ages` and `renew`, if the role may not list the bucket.
    """

    def __init__(self, store: ListableStore) -> None:
        self._store = store

    def put(self, key: str, body: bytes) -> bytes:
        """Store `body` unless the key is taken; returns what is stored under the key."""
        with _client_errors("a file cannot be put into the bucket", key):
            stored = self._store.put(key, body)
        if (listing := _listing.get()) is not None:
            listing.put.add(key)
        return stored

    def ages(self, keys: Sequence[str]) -> dict[str, float]:
        """Seconds since each was put or renewed; keys that are not stored now are left out."""
        with _client_errors("the bucket cannot be listed", f"{len(keys)} keys"):
            return self._store.ages(keys, _listing.get())

    @contextmanager
    def one_listing(self) -> Iterator[None]:
        """Within the block, what the bucket has said or was given is not asked again."""
        token = _listing.set(Listing())
        try:
            yield
        finally:
            _listing.reset(token)

    def renew(self, keys: Sequence[str]) -> list[str]:
        """Restart the lifetimes of these objects; returns the keys that are not stored."""
        with _client_errors("a file cannot be renewed", f"{len(keys)} keys"):
            renewed = in_parallel(self._store.renew, keys)
        return [key for key, is_stored in zip(keys, renewed, strict=True) if not is_stored]


@contextmanager
def _client_errors(message: str, key: str) -> Iterator[None]:
    """Log a failure of the bucket, and raise the error that the client gets."""
    try:
        yield
    except PolynyaError:
        raise
    except Exception as error:
        logger.error(message, key=key, **log_fields(error))
        count("StoreFailures")
        raise ServiceUnavailable("the bucket of the virtual files fails") from None
