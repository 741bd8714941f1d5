"""Which metadata document of an exported table is the newest, as Iceberg's Hadoop tables say it.

`version-hint.text` holds N of `v<N>.metadata.json`. A reader that finds v<N+1> takes that one, so a
document is written when all that it leads to is there, and once; the hint comes after it.
"""

import json
from dataclasses import dataclass

from ..common import storage
from ..common.errors import BadInput, Conflict, Unavailable

HINT = "version-hint.text"
MOST_AHEAD = 1000
"""MetadataCache without a hint: runs that were interrupted between the two."""


@dataclass(frozen=True, slots=True)
class Pointer:
    directory: str

    def move(self, document: bytes) -> tuple[bool, str]:
        """See to it that the newest document is this one; whether it was another, and where it is.

        Raises:
            Conflict: another export of the table was faster.
            Unavailable: it cannot be read or written.
        """
        version = self.version()
        newest = storage.whole(self._document(version)) if version else None
        is_new = newest != document
        if newest and self._is_ahead(newest, document):
            is_new = False  # a run that has seen more of the lake was faster
        if is_new:
            version += 1
            if not storage.create(self._document(version), document):
                raise Conflict(f"another run has exported to {self.directory} meanwhile; run again")
        hint = str(version).encode()
        if storage.whole(self._hint) != hint:
            storage.replace(self._hint, hint)
        return is_new, self._document(version)

    def _is_ahead(self, newest: bytes, document: bytes) -> bool:
        """Raises:
        BadInput: the newest document is of another table.
        """
        theirs, ours = json.loads(newest), json.loads(document)
        if theirs.get("table-uuid") != ours["table-uuid"]:
            raise BadInput(
                f"{self.directory} holds another table, perhaps of the same name: export to "
                "another place, or remove it"
            )
        return bool(theirs["last-sequence-number"] > ours["last-sequence-number"])

    def version(self) -> int:
        """Of the newest document; 0: there is none."""
        hint = storage.whole(self._hint) or b"0"
        try:
            version = int(hint)
        except ValueError:
            raise Unavailable(f"{self._hint} holds no number: is it of another table?") from None
        for ahead in range(version + 1, version + MOST_AHEAD):
            if storage.size(self._document(ahead)) is None:
                return ahead - 1
        raise Unavailable(f"{self._hint} is far behind the documents beside it")

    @property
    def _hint(self) -> str:
        return f"{self.directory}/metadata/{HINT}"

    def _document(self, version: int) -> str:
        return f"{self.directory}/metadata/v{version}.metadata.json"
