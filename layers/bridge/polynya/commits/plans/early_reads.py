"""The files of a small commit, read from S3 while PostgreSQL reads the table.

Neither needs the other; only the plan needs both. The plan parses and checks the files as if they
had not been read before.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from ...parallel import meanwhile
from ...storage.objects.reader import ObjectReader
from ...translate.commits.net_change import net_change
from ...translate.commits.paths import normalised, relative
from .client_files import ClientFiles
from .parquet.footers import FooterReader

MOST = 4
"""New manifests of a small commit, and data files that it adds."""

MOST_BYTES = 64 * 1024
"""Of its new manifests in all."""


@contextmanager
def early_reads(
    reader: ObjectReader, staging: str, data_location: str, manifest_list: str
) -> Iterator[ObjectReader]:
    """Read the files of a commit in another thread, for the duration of the block.

    Gives a reader that answers from memory after the block. What the thread has not read, or could
    not, it reads from S3, so that an error is raised where the file is needed.

    Args:
        staging: the directory of the client's manifests, with a slash at its end.
        data_location: that of its data files. Nothing outside of the two is read.
        manifest_list: of the commit's last snapshot.
    """
    pieces: dict[tuple[str, int, int], bytes] = {}

    def keep(*piece: *tuple[str, int, int]) -> bytes:
        pieces[piece] = reader.read_range(*piece)
        return pieces[piece]

    def kept(*piece: *tuple[str, int, int]) -> bytes:
        body = pieces.pop(piece, None)
        return reader.read_range(*piece) if body is None else body

    keeping = replace(reader, read_range=keep)
    with meanwhile(lambda: _read(keeping, staging, data_location, manifest_list)):
        yield replace(reader, read_range=kept)


def _read(reader: ObjectReader, staging: str, data_location: str, manifest_list: str) -> None:
    client = ClientFiles(reader, staging, None)
    listed = client.manifests(manifest_list)
    new = [one for one in listed if normalised(one.manifest_path).startswith(normalised(staging))]
    if len(new) > MOST or sum(one.manifest_length for one in new) > MOST_BYTES:
        return
    added = net_change(client.entries(new), []).added
    if len(added) <= MOST:
        for file in added:
            relative(file.file_path, data_location, "a data file")
        FooterReader(reader).read(added)
