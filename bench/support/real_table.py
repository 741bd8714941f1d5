"""A lake's table as real Iceberg metadata in the S3 of the measurements."""

from pathlib import Path
from tempfile import TemporaryDirectory

from polynya_local.clients.native import Lake
from polynya_local.clients.pyiceberg import s3_properties
from pyiceberg.io.pyarrow import PyArrowFileIO

from .bridge import opened
from .iceberg import original, write_manifests, write_metadata
from .lakes import BUCKET
from .workshop import Workshop


def write_real(shop: Workshop, lake: Lake, key: str) -> tuple[str, bytes]:
    """Write a table as real Iceberg to the S3, below a key.

    Returns:
        The location of the metadata document, and the document.
    """
    io = PyArrowFileIO(s3_properties(shop.s3_endpoint))
    location = f"s3://{BUCKET}/{key}"
    with opened(lake) as ours, TemporaryDirectory(dir=shop.folder) as folder:
        table = original(ours, PyArrowFileIO(), Path(folder))
        write_manifests(table, io, location)
    document = write_metadata(table.metadata, io, location)
    return document, io.new_input(document).open().read()
