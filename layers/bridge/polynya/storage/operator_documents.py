"""Documents of the operator that settings name: the lakes, and the authorization policy."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Generic, TypeVar

from ..runtime.errors import Misconfigured
from .aws import Clients, call, ssm_parameter
from .objects import body_of
from .s3_locations import bucket_and_key

Content = TypeVar("Content")

REFRESH_SECONDS = 60
"""A rule that is removed from a document stops applying within a minute."""


class OperatorDocument(Generic[Content]):
    """A document in a file, in SSM or in S3 that a setting names, or in the text of the setting.

    In SSM there may also be the location in S3, for a document over 4 KB.
    """

    def __init__(
        self,
        what: str,
        source: str,
        parse: Callable[[str], Content],
        clients: Clients | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """It is read when it is needed.

        Args:
            what: the kind of document, for messages.
            source: `file:PATH`, `ssm:NAME`, `s3://bucket/key` or the text.
            clients: of AWS; None: those of the environment.
            clock: seconds.
        """
        self._what, self._source, self._parse, self._clock = what, source, parse, clock
        self._clients = clients or Clients()
        self._read: tuple[float, str, Content] | None = None
        """When it was read, its text, and its content."""

    def current(self) -> Content:
        """The content, read again every minute; the same object as long as the text is.

        Raises:
            Misconfigured: it is missing, or `parse` refuses it.
            ServiceUnavailable: it cannot be read now.
        """
        read, now = self._read, self._clock()
        if read is None or now - read[0] > REFRESH_SECONDS:
            self._read = None  # an old document is not used while the new one cannot be read
            text = self._text()
            is_same = read is not None and read[1] == text
            content = read[2] if read is not None and is_same else self._parse(text)
            read = self._read = now, text, content
        return read[2]

    def _text(self) -> str:
        text = self._source
        if text.startswith("file:"):
            return _text_of_file(self._what, Path(text.removeprefix("file:")))
        if text.startswith("ssm:"):
            text = ssm_parameter(self._what, text.removeprefix("ssm:"), self._clients)
        if location := bucket_and_key(text.strip()):
            bucket, key = location
            text = call(
                self._what,
                lambda: body_of(self._clients("s3").get_object(Bucket=bucket, Key=key)).decode(),
            )
        return text


def _text_of_file(what: str, path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise Misconfigured(f"{what} cannot be read from {path}: {why}") from None


def json_of(text: str, refusal: Callable[[str], Misconfigured]) -> Any:
    """The JSON of a document.

    Args:
        refusal: makes the error of a reason.

    Raises:
        Misconfigured: it is not JSON, or has a key twice, of which json.loads ignores the first.
    """

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        by_key = dict(pairs)
        if len(by_key) < len(pairs):
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            raise refusal(f"the key {twice!r} is in one object twice")
        return by_key

    try:
        return json.loads(text, object_pairs_hook=unique)
    except (ValueError, RecursionError):
        raise refusal("it is not JSON") from None
