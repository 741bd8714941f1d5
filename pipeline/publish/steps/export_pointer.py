"""Step 6, for exported tables: writes the metadata document and points to it.

As in Iceberg's Hadoop tables, `version-hint.text` contains the N of `v<N>.metadata.json`. A reader
that finds v<N+1> uses that one. So a document is written once, after everything it refers to, and
the hint after the document.
"""

import json
from dataclasses import dataclass

from ...common import storage
from ...common.errors import BadInput, Conflict, Unavailable

HINT = "version-hint.text"
MOST_AHEAD = 1000
"""The number of documents newer than the hint, from runs that were interrupted before it."""


@dataclass(frozen=True, slots=True)
class ExportPointer:
    directory: str
    """That of the exported table."""

    def move(self, document: bytes) -> tuple[bool, str]:
        """Make this document the newest one, unless the newest one has read more of the lake.

        Returns:
            Whether the document is new, and the location of the newest document.

        Raises:
            BadInput: the newest document is that of another table.
            Conflict: another export of the table was faster.
            Unavailable: the directory cannot be read or written.
        """
        version = self.version()
        newest = storage.read_file(self._document(version)) if version else None
        is_new = newest != document
        if newest and self._is_ahead(newest, document):
            is_new = False  # a run that has read a newer snapshot of the lake was faster
        if is_new:
            version += 1
            if not storage.create(self._document(version), document):
                raise Conflict(
                    f"another run has exported to {self.directory} in the meantime; run again"
                )
        hint = str(version).encode()
        if storage.read_file(self._hint) != hint:
            storage.replace(self._hint, hint)
        return is_new, self._document(version)

    def _is_ahead(self, newest: bytes, document: bytes) -> bool:
        """Whether the newest document has a higher sequence number than ours."""
        theirs, ours = json.loads(newest), json.loads(document)
        if theirs.get("table-uuid") != ours["table-uuid"]:
            raise BadInput(
                f"{self.directory} holds another table, perhaps of the same name: export to "
                "another directory, or remove it"
            )
        return bool(theirs["last-sequence-number"] > ours["last-sequence-number"])

    def version(self) -> int:
        """The version of the newest document; 0: there is none."""
        hint = storage.read_file(self._hint) or b"0"
        try:
            version = int(hint)
        except ValueError:
            raise Unavailable(f"{self._hint} contains no number") from None
        for ahead in range(version + 1, version + MOST_AHEAD):
            if storage.file_size(self._document(ahead)) is None:
                return ahead - 1
        raise Unavailable(f"{self._hint} is more than {MOST_AHEAD} versions old")

    @property
    def _hint(self) -> str:
        return f"{self.directory}/metadata/{HINT}"

    def _document(self, version: int) -> str:
        return f"{self.directory}/metadata/v{version}.metadata.json"
