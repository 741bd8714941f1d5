"""PyIceberg with what mixed histories need."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pyiceberg.table
from pyiceberg.table import TableProperties
from pyiceberg.table.metadata import TableMetadata

computed = pyiceberg.table.update_table_metadata


@contextmanager
def without_retries() -> Iterator[None]:
    """PyIceberg commits once.

    PyIceberg 0.12 repeats the delete of a whole file that was merged with others meanwhile, and
    then deletes nothing, without an error (docs/writes.md).
    """
    with (
        patch.object(TableProperties, "COMMIT_NUM_RETRIES_DEFAULT", 0),
        patch.object(pyiceberg.table, "update_table_metadata", _Last()),
    ):
        yield


class _Last:
    """A transaction's metadata, which PyIceberg copies thirty times for one append."""

    def __init__(self) -> None:
        self._last: tuple[Any, ...] = (None, None, None)

    def __call__(
        self, base: TableMetadata, updates: tuple[Any, ...], **options: Any
    ) -> TableMetadata:
        known, known_updates, metadata = self._last
        if base is not known or updates is not known_updates or options:
            metadata = computed(base, updates, **options)
            self._last = (base, updates, metadata)
        return metadata
