"""The store of the delivery `materialize`: real objects in the bucket that clients read."""

import time
from collections.abc import Callable, Iterable
from typing import Any

from ..errors import Misconfigured
from .listing import Listing, Page
from .s3 import get_object, status_code


class BucketStore:
    """Real objects under the keys of the virtual files. Methods raise boto3's errors."""

    def __init__(
        self, bucket: str, s3: Callable[[], Any], clock: Callable[[], float] = time.time
    ) -> None:
        """`s3` gives a boto3 client; `clock` gives seconds since 1970."""
        self._bucket, self._s3, self._clock = bucket, s3, clock

    def get(self, key: str) -> bytes | None:
        """The bytes of an object; None if there is none."""
        return get_object(self._s3(), self._bucket, key)

    def put(self, key: str, body: bytes) -> bytes:
        """Put an object unless there is one; returns the bytes of the one that is there."""
        client = self._s3()
        try:
            client.put_object(Bucket=self._bucket, Key=key, Body=body, IfNoneMatch="*")
        except client.exceptions.ClientError as error:
            # 412: the object exists. 409: another put of the same key was faster.
            if status_code(error) not in {409, 412}:
                raise
            return self.get(key) or body
        return body

    def ages(self, keys: Iterable[str], listing: Listing | None = None) -> dict[str, float]:
        """Seconds since each was put or renewed; keys without an object are left out.

        One request lists up to a thousand keys in S3's order, so there are at most as many requests
        as keys, and usually one: keys between the wanted ones are jumped over.

        Args:
            listing: what is known already; new pages are added.

        Raises:
            Misconfigured: the role may not list the bucket.
        """
        known = Listing() if listing is None else listing
        now = self._clock()
        found: dict[str, float] = {}
        for key in sorted({*keys}, key=str.encode):  # S3's order
            if key in known.put:
                found[key] = 0
                continue
            page = known.page_of(key)
            if page is None:
                page = self._page(key[: key.rfind("/") + 1], key)
                known.pages.append(page)
            if key in page.modified:
                found[key] = now - page.modified[key]
        return found

    def _page(self, folder: str, first: str) -> Page:
        """The keys of a folder from this one on, up to a thousand."""
        client = self._s3()
        try:
            # S3 lists what is after a key: so from the one without its last character.
            answer = client.list_objects_v2(
                Bucket=self._bucket, Prefix=folder, StartAfter=first[:-1]
            )
        except client.exceptions.ClientError as error:
            if status_code(error) == 403:
                raise Misconfigured(
                    "the bucket of the virtual files may not be listed: the role needs "
                    "s3:ListBucket for the prefix of the virtual files"
                ) from None
            raise
        listed = {one["Key"]: one["LastModified"].timestamp() for one in answer.get("Contents", ())}
        last = max(listed, key=str.encode, default=first) if answer["IsTruncated"] else None
        return Page(folder, first, last, listed)

    def renew(self, key: str) -> bool:
        """Copy an object to itself, which restarts its age; False if there is none."""
        client = self._s3()
        here = {"Bucket": self._bucket, "Key": key}
        try:
            # S3 copies an object to itself only where something changes; there is no metadata.
            client.copy_object(**here, CopySource=here, MetadataDirective="REPLACE")
        except client.exceptions.ClientError as error:
            if status_code(error) in {403, 404}:
                return False
            raise
        return True
