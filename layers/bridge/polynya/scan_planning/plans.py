"""Plan tasks: the texts that stand for a part of a scan's files, for any instance to answer.

A plan task says which scan it belongs to, and a range of data files. It holds no secret and grants
nothing: the rights of the caller, the table, the snapshot, the filter and the range are checked
again, so that one which somebody makes up gives no more than `planTableScan` gives the same caller.
So it is not signed: no secret exists that all instances share (with IAM authentication there is not
even a password), and a key of its own would protect nothing. The digest finds texts that were cut
or mixed up.
"""

import base64
import json
import zlib
from dataclasses import asdict, dataclass, replace
from typing import Any

from ..ducklake.faults import MAX_ID
from ..errors import BadRequest
from ..translate.fingerprints import fingerprint_of_bytes
from .pages import filter_text

VERSION = 1
MOST_BYTES = 200_000
"""Of a plan task that is unpacked: three times the longest filter."""


@dataclass(frozen=True, slots=True)
class PlanTask:
    """Some files of a scan."""

    table_uuid: str
    snapshot_id: int
    """DuckLake's."""
    named_at: int
    """The snapshot whose schema was the current one when the scan was planned."""
    data: str
    """The fingerprint of the data files: DuckLake may rewrite those of a past snapshot."""
    caller: str
    """The fingerprint of who may send the plan task."""
    filter: str
    """As JSON, as the client sent it."""
    is_case_sensitive: bool
    use_snapshot_schema: bool
    first_id: int
    last_id: int
    """The range of data_file_ids, both included."""

    def of_files(self, first_id: int, last_id: int) -> "PlanTask":
        """Other files of the same scan."""
        return replace(self, first_id=first_id, last_id=last_id)

    @property
    def is_possible(self) -> bool:
        """Whether a scan may have given this range and this filter."""
        try:
            is_filter = filter_text(json.loads(self.filter)) == self.filter
        except BadRequest:
            return False
        return is_filter and 0 <= self.first_id <= self.last_id <= MAX_ID

    def encoded(self) -> str:
        """The text for the client."""
        claims = json.dumps([VERSION, *asdict(self).values()], separators=(",", ":"))
        body = zlib.compress(claims.encode(), 1)
        return f"{base64.urlsafe_b64encode(body).decode()}.{fingerprint_of_bytes(body)}"


def plan_task_of(text: str) -> PlanTask:
    """The plan task of a text that `encoded` gave.

    Raises:
        BadRequest: it is no such text.
    """
    try:
        version, *claims = json.loads(_unpacked(text))
        if version == VERSION and list(map(type, claims)) == TYPES:
            task = PlanTask(*claims)
            if task.is_possible:
                return task
    except (ValueError, TypeError, zlib.error, RecursionError):
        pass
    raise BadRequest("plan-task is not one that this catalog gave out")


def _unpacked(text: str) -> bytes:
    coded, _, digest = text.partition(".")
    body = base64.b64decode(coded, altchars=b"-_", validate=True)
    if fingerprint_of_bytes(body) != digest:
        raise ValueError("another digest")
    inflate = zlib.decompressobj()
    unpacked = inflate.decompress(body, MOST_BYTES)
    if not inflate.eof:
        raise ValueError("too long, or cut")
    return unpacked


TYPES: list[Any] = [str, int, int, str, str, str, bool, bool, int, int]
"""Of the fields, in their order."""
