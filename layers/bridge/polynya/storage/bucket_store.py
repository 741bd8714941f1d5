"""The bucket of the delivery `materialize`: virtual files are real objects, which clients read.

Clients read the bucket directly, so its failures are errors, unlike those of a cache.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from aws_lambda_powertools import Logger

from ..runtime.errors import Misconfigured, PolynyaError, ServiceUnavailable, log_fields
from ..runtime.metrics import count
from ..runtime.prefetch import map_in_parallel
from .copies import VIRTUAL_ERRORS, Copy, CopySource, copy_source
from .direct_s3 import DirectS3, ListedKeys
from .objects import get_object, status_code, translate_errors


@dataclass(frozen=True, slots=True)
class Page:
    """The keys of a folder, from one key to another, in S3's order: by their bytes."""

    folder: str
    first: str
    last: str | None
    """None: the page is the last one of the folder."""
    modified: Mapping[str, float]
    """When each key was put or renewed, in seconds since 1970."""

    def covers(self, key: str) -> bool:
        """Whether the page shows that the bucket has, or does not have, this key."""
        if not key.startswith(self.folder) or key.encode() < self.first.encode():
            return False
        return self.last is None or key.encode() <= self.last.encode()


COMMITTED_SECONDS = 60.0
"""How long a commit trusts a listing."""

LOADED_SECONDS = 1.0
"""How long a table that is loaded again trusts it: a client takes as long to open the files."""

MOST_RECENT = 64
"""The number of folders whose listings are kept. A page takes some 300 kB."""


@dataclass(frozen=True, slots=True)
class Listing:
    """The answers of S3 about the keys of a bucket, which are kept to save requests."""

    began: float = field(default_factory=time.monotonic)
    pages: list[Page] = field(default_factory=list)
    put: set[str] = field(default_factory=set)
    """The keys that were put or renewed since, whatever the pages say."""

    def shows(self, key: str) -> bool:
        """Whether the bucket had this key then."""
        page = self.page_of(key)
        return key in self.put or (page is not None and key in page.modified)

    def page_of(self, key: str) -> Page | None:
        """The page that shows whether the bucket has this key; None: it was not listed."""
        # Keys are looked up in S3's order: mostly the newest page covers the next key too.
        return next((page for page in reversed(self.pages) if page.covers(key)), None)


def folder_of(key: str) -> str:
    """The part of a key up to its last slash."""
    return key[: key.rfind("/") + 1]


@dataclass(frozen=True, slots=True)
class BucketStore:
    """Real objects under the keys of the virtual files. Methods raise boto3's errors."""

    bucket: str
    s3: Callable[[], Any]
    """Gives a boto3 client."""
    clock: Callable[[], float] = time.time
    """Gives seconds since 1970."""
    direct: DirectS3 | None = None
    """It is asked first."""

    def get(self, key: str) -> bytes | None:
        """The bytes of an object; None if there is none."""
        return get_object(self.s3(), self.bucket, key)

    def put(self, key: str, body: bytes) -> bytes:
        """Put an object unless there is one; returns the bytes of the one that is there."""
        if self.direct is not None and self.direct.put_new(self.bucket, key, body):
            return body
        client = self.s3()
        try:
            client.put_object(Bucket=self.bucket, Key=key, Body=body, IfNoneMatch="*")
        except client.exceptions.ClientError as error:
            # 412: the object exists. 409: another put of the same key was faster.
            if status_code(error) not in {409, 412}:
                raise
            return self.get(key) or body
        return body

    def ages(self, keys: Iterable[str], listing: Listing | None = None) -> dict[str, float]:
        """Seconds since each was put or renewed; keys without an object are left out.

        One request lists up to a thousand keys in S3's order, so there are at most as many requests
        as keys, and usually one: keys between the requested ones are skipped.

        Args:
            listing: what S3 has answered before; new pages are added.

        Raises:
            Misconfigured: the role may not list the bucket.
        """
        listing = Listing() if listing is None else listing
        now = self.clock()
        ages: dict[str, float] = {}
        for key in sorted({*keys}, key=str.encode):  # S3's order
            if key in listing.put:
                ages[key] = 0
                continue
            page = listing.page_of(key)
            if page is None:
                page = self._page(folder_of(key), key)
                listing.pages.append(page)
            if key in page.modified:
                ages[key] = now - page.modified[key]
        return ages

    def _page(self, folder: str, first: str) -> Page:
        """The keys of a folder from this one on, up to a thousand."""
        # S3 lists the keys after a given one: here, after this key without its last character.
        listed = self.direct and self.direct.keys_after(self.bucket, folder, first[:-1])
        modified, is_cut = listed or self._listed(folder, first[:-1])
        last = max(modified, key=str.encode, default=first) if is_cut else None
        return Page(folder, first, last, modified)

    def _listed(self, folder: str, after: str) -> ListedKeys:
        client = self.s3()
        try:
            answer = client.list_objects_v2(Bucket=self.bucket, Prefix=folder, StartAfter=after)
        except client.exceptions.ClientError as error:
            if status_code(error) == 403:
                raise Misconfigured(
                    "the bucket of the virtual files may not be listed: the role needs "
                    "s3:ListBucket for the prefix of the virtual files"
                ) from None
            raise
        objects = answer.get("Contents", ())
        modified = {content["Key"]: content["LastModified"].timestamp() for content in objects}
        return modified, answer["IsTruncated"]

    def renew(self, key: str) -> bool:
        """Copy an object to itself, which restarts its age; False if there is none."""
        client = self.s3()
        address = {"Bucket": self.bucket, "Key": key}
        try:
            # S3 copies an object to itself only if something changes: here its metadata, which
            # stays empty.
            client.copy_object(**address, CopySource=address, MetadataDirective="REPLACE")
        except client.exceptions.ClientError as error:
            if status_code(error) in {403, 404}:
                return False
            raise
        return True


logger = Logger(child=True)

_listing: ContextVar[Listing | None] = ContextVar("listing", default=None)
"""The answers of the bucket; None outside of `one_listing`."""


class DeliveryBucket:
    """Puts and lists the objects that clients read.

    Raises:
        ServiceUnavailable: every method, if the bucket does not answer or refuses.
        Misconfigured: `ages` and `renew`, if the role may not list the bucket.
    """

    def __init__(self, store: BucketStore) -> None:
        self._store = store
        self._listings: dict[str, Listing] = {}

    def put(self, key: str, body: bytes) -> bytes:
        """Store `body` unless the key is taken; returns what is stored under the key."""
        with _translate_client_errors("a file cannot be put into the bucket", key):
            stored = self._store.put(key, body)
        self._is_put(key)
        return stored

    def source(self, location: str) -> CopySource:
        """The object at `s3://bucket/key`, as it is now.

        Raises:
            NoSuchKey: there is none.
            Misconfigured: this process may not read it.
        """
        return copy_source(self._store.s3, location)

    def put_copy(
        self, key: str, source: CopySource, start: int, end: bytes, at_a_time: int, *, is_new: bool
    ) -> None:
        """Store the bytes of another object before `start`, and then `end`.

        Args:
            at_a_time: how many parts S3 copies at the same time, at most.
            is_new: leave an object that is there.

        Raises:
            NoSuchKey: the other object is gone.
            Misconfigured: this process may not copy it.
        """
        copy = Copy(self._store.s3, source, self._store.bucket, key, is_new)
        with translate_errors("a data file cannot be copied now", VIRTUAL_ERRORS):
            copy.make(start, end, at_a_time)
        self._is_put(key)

    def _is_put(self, key: str) -> None:
        if (listing := _listing.get()) is not None:
            listing.put.add(key)

    def ages(self, keys: Sequence[str]) -> dict[str, float]:
        """Seconds since each was put or renewed; keys that are not stored now are left out."""
        with _translate_client_errors("the bucket cannot be listed", f"{len(keys)} keys"):
            return self._store.ages(keys, _listing.get())

    def recent_listing(self, folder: str, seconds: float) -> Listing | None:
        """The last listing of a folder, if it began within so many seconds."""
        listing = self._listings.get(folder)
        is_recent = listing and time.monotonic() - listing.began < seconds
        return listing if is_recent else None

    @contextmanager
    def one_listing(self, folder: str, listing: Listing | None = None) -> Iterator[None]:
        """Within the block, list each page of keys once, and no key that was put.

        Args:
            folder: of the keys, with a slash at its end.
            listing: an earlier one, which is continued; None: a new one.
        """
        listing = listing or Listing()
        self._listings.pop(folder, None)
        self._listings[folder] = listing
        for surplus in [*self._listings][:-MOST_RECENT]:
            self._listings.pop(surplus, None)
        token = _listing.set(listing)
        try:
            yield
        finally:
            _listing.reset(token)

    def list_again(self) -> None:
        """Forget the listing of `one_listing`, because another process has put objects."""
        if (listing := _listing.get()) is not None:
            listing.pages.clear()

    def renew(self, keys: Sequence[str]) -> list[str]:
        """Restart the lifetimes of these objects; returns the keys that are not stored."""
        with _translate_client_errors("a file cannot be renewed", f"{len(keys)} keys"):
            are_stored = map_in_parallel(self._store.renew, keys)
        missing = [key for key, is_stored in zip(keys, are_stored, strict=True) if not is_stored]
        if (listing := _listing.get()) is not None:
            listing.put.update({*keys}.difference(missing))
        return missing


@contextmanager
def _translate_client_errors(message: str, key: str) -> Iterator[None]:
    """Log a failure of the bucket, and raise the error that the client gets."""
    try:
        yield
    except PolynyaError:
        raise
    except Exception as error:
        logger.error(message, key=key, **log_fields(error))
        count("StoreFailures")
        raise ServiceUnavailable("the bucket of the virtual files fails") from None
