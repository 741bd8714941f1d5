"""The files of a small commit, read from S3 while PostgreSQL reads the table.

Only the plan needs both. It parses and checks the files as if they had not been read before.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from ...runtime.prefetch import run_in_thread
from ...storage.object_store import ObjectStore
from ...storage.objects import ObjectReader
from ..client_locations import normalised, relative
from ..request.client_files import ClientFiles
from .changed_files import net_change
from .footers import FooterReader

MOST = 4
"""New manifests of a small commit, and data files that it adds."""

MOST_BYTES = 64 * 1024
"""The size of its new manifests in all."""


@contextmanager
def prefetch_client_files(
    objects: ObjectStore, staging: str, data_location: str, manifest_list: str
) -> Iterator[ObjectStore]:
    """Read the files of a commit in another thread, for the duration of the block.

    Yields a store that answers from memory after the block. It reads from S3 what the thread has
    not read, or could not, so that an error is raised where the file is needed.

    Args:
        staging: the directory of the client's manifests, with a slash at its end.
        data_location: that of its data files. Nothing outside of the two is read.
        manifest_list: of the commit's last snapshot.
    """
    pieces: dict[tuple[str, int, int], bytes] = {}

    def read_and_store(*piece: *tuple[str, int, int]) -> bytes:
        pieces[piece] = objects.read_range(*piece)
        return pieces[piece]

    def read_stored(*piece: *tuple[str, int, int]) -> bytes:
        body = pieces.pop(piece, None)
        return objects.read_range(*piece) if body is None else body

    storing = replace(objects, read_range=read_and_store)
    with run_in_thread(lambda: _read(storing, staging, data_location, manifest_list)):
        yield replace(objects, read_range=read_stored)


def _read(reader: ObjectReader, staging: str, data_location: str, manifest_list: str) -> None:
    client = ClientFiles(reader, staging, None)
    listed = client.manifests(manifest_list)
    directory = normalised(staging)
    new = [m for m in listed if normalised(m.manifest_path).startswith(directory)]
    if len(new) > MOST or sum(manifest.manifest_length for manifest in new) > MOST_BYTES:
        return
    added = net_change(client.entries(new), []).added
    if len(added) <= MOST:
        for file in added:
            relative(file.file_path, data_location, "a data file")
        FooterReader(reader).read(added)
