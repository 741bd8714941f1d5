"""Pages of scan tasks: how many files fit into one answer, and which files are left."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from ..ducklake.rows.conditions import PlannedFile
from ..errors import BadRequest

MOST_FILTER_BYTES = 65_536
"""The residual is repeated for each file, and the filter in each plan task."""

MOST_FILES = 10_000
MOST_PAGE_BYTES = 5_000_000
"""Lambda may answer 6 MB."""
MOST_PLAN_TASK_BYTES = 1_000_000
MOST_PLAN_TASKS = 500
"""The last one leads to those after it."""

TASK_BYTES = 300
DELETE_BYTES = 350
"""Of a file scan task and of a delete file as JSON, without locations and residual."""


@dataclass(frozen=True, slots=True)
class PageSize:
    """How large the pages of a scan are."""

    residual_bytes: int
    plan_task_bytes: int
    have_deletes: bool
    """Each file may have a delete file, which names it again."""

    @property
    def files(self) -> int:
        """The most files of a page."""
        return max(1, min(MOST_FILES, MOST_PAGE_BYTES // self._bytes(100)))

    @property
    def plan_tasks(self) -> int:
        """The most plan tasks of an answer."""
        return max(1, min(MOST_PLAN_TASKS, MOST_PLAN_TASK_BYTES // self.plan_task_bytes))

    def fitting(self, locations: Sequence[str]) -> int:
        """How many of the files fit into an answer: at least one."""
        left = MOST_PAGE_BYTES
        for number, location in enumerate(locations):
            left -= self._bytes(len(location.encode()))
            if left < 0 and number:
                return number
        return len(locations)

    def _bytes(self, location_bytes: int) -> int:
        deletes = DELETE_BYTES + 3 * location_bytes if self.have_deletes else 0
        return TASK_BYTES + location_bytes + self.residual_bytes + deletes


def filter_text(filter_: Any) -> str:
    """A filter as JSON, which the answer repeats.

    Raises:
        BadRequest: it is too long, or no JSON that can be sent.
    """
    try:
        text = json.dumps(
            filter_,
            ensure_ascii=False,
            allow_nan=False,
            check_circular=False,
            separators=(",", ":"),
        )
        size = len(text.encode())
    except (ValueError, RecursionError):
        raise BadRequest("filter: it cannot be repeated as JSON") from None
    if size > MOST_FILTER_BYTES:
        raise BadRequest(
            f"filter: it is longer than {MOST_FILTER_BYTES} bytes; set the client's "
            "scan-planning-mode to `client`"
        )
    return text


def later_spans(
    found: Sequence[PlannedFile], fitting: int, page_files: int, last_id: int
) -> Iterator[tuple[int, int]]:
    """The ranges of data_file_ids of the further pages.

    Args:
        found: the files of the first page, and the first file of each further page.
        fitting: how many files of the first page are in the answer.
        last_id: the end of the range of all of them.
    """
    starts = [one.file.data_file_id for one in found if one.place > page_files]
    if fitting < len(found) - len(starts):
        starts.insert(0, found[fitting].file.data_file_id)
    for start, following in pairwise([*starts, last_id + 1]):
        yield start, following - 1
