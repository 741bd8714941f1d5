"""The names of virtual files: key <-> name.

    <prefix>/<table uuid>/g2/<kind>-<numbers>-<fingerprint><suffix>
    <prefix>/<table uuid>/g2/<snapshot>-table-<fingerprint>.metadata.json

A key holds all that the file's bytes depend on: the generator's version, the table, the snapshot,
and a fingerprint of the catalog rows that the file is built from.
"""

import re
from dataclasses import dataclass
from typing import NamedTuple

from ..errors import NoSuchKey
from ..translate.fingerprints import LENGTH

GENERATOR = "g2"
"""The generator's version: it changes if the same rows are to give other bytes. What compresses
Avro and what writes Parquet is in the fingerprints instead: cached files of others can still be
read."""


class Kind(NamedTuple):
    """The form of the names of one kind of files."""

    numbers: tuple[str, ...]
    """What the numbers mean; the last one is always the snapshot whose state the file has."""
    suffix: str


WINDOW = ("base_id", "snapshot_id")
"""A state, and the changes since an earlier one; none if both are the same."""

CHUNK = ("spec_id", "first_data_file_id", "last_data_file_id", *WINDOW)

KINDS = {
    "table": Kind(("snapshot_id",), ".metadata.json"),
    "list": Kind(("snapshot_id",), ".avro"),
    "data": Kind(CHUNK, ".avro"),
    "rows-manifest": Kind(("spec_id", *WINDOW), ".avro"),
    "rows": Kind(("part", "number", "snapshot_id"), ".parquet"),
    "deletes-manifest": Kind(CHUNK, ".avro"),
    "deletes": Kind(("data_file_id", "snapshot_id"), ".parquet"),
    "padded-rows": Kind(("size", "part", "number", "snapshot_id"), ".parquet"),
    "padded-deletes": Kind(("size", "data_file_id", "snapshot_id"), ".parquet"),
}

NUMBER = r"(?:0|[1-9][0-9]{0,17})"  # one spelling for each number: one key for each file

FILE = re.compile(
    r"(?P<table_uuid>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})"
    rf"/{GENERATOR}/(?P<version>(?:{NUMBER}-)?)(?P<kind>{'|'.join(KINDS)})(?P<numbers>(?:-{NUMBER})*)"
    rf"-(?P<fingerprint>[0-9a-f]{{{LENGTH}}})(?P<suffix>\.[a-z.]+)"
)


@dataclass(frozen=True, slots=True)
class Name:
    """One virtual file."""

    table_uuid: str
    kind: str
    numbers: tuple[int, ...]
    fingerprint: str

    @property
    def snapshot_id(self) -> int:
        """The snapshot whose state the file has."""
        return self.numbers[-1]

    def key(self, prefix: str) -> str:
        """The key of the file; `prefix` is that of all virtual files."""
        words = [self.kind, *map(str, self.numbers)]
        if self.kind == "table":
            words.reverse()  # ClickHouse expects the version at the beginning of a document's name
        file = f"{'-'.join(words)}-{self.fingerprint}{KINDS[self.kind].suffix}"
        return f"{prefix}/{self.table_uuid}/{GENERATOR}/{file}"


def is_virtual(key: str, prefix: str) -> bool:
    """Whether a key is below the prefix of virtual files: no real object is served for it."""
    return key.startswith(f"{prefix}/")


def parse(key: str, prefix: str) -> Name:
    """The file that a key names.

    Raises:
        NoSuchKey: the key does not have the form of a virtual file's name.
    """
    match = FILE.fullmatch(key.removeprefix(f"{prefix}/")) if is_virtual(key, prefix) else None
    if match is not None:
        numbers = tuple(map(int, re.findall("[0-9]+", match["version"] + match["numbers"])))
        name = Name(match["table_uuid"], match["kind"], numbers, match["fingerprint"])
        if len(numbers) == len(KINDS[name.kind].numbers) and name.key(prefix) == key:
            return name
    raise NoSuchKey("no virtual file has this name")
