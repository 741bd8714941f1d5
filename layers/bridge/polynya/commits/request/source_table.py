"""A table of another catalog that is registered: its metadata file, as a commit that creates it."""

from uuid import uuid4

from ...iceberg.metadata_file import LONGEST_FILE, NotMetadata, parts_of
from ...rest.schemas import parse
from ...rest.source_metadata import SourceMetadata
from ...rest.updates import AssertCreate
from ...runtime.errors import BadRequest, Misconfigured, NoSuchKey
from ...storage.objects import ObjectReader
from ..client_locations import FilePlaces, normalised
from .table_commit import LARGEST_DUCKLAKE_ID, TableCommit, is_encrypted

WHAT = "the metadata file"


def source_commit(reader: ObjectReader, places: FilePlaces, location: str) -> TableCommit:
    """The commit that creates a table as a metadata file says that it is now.

    Args:
        places: where the file may be.

    Raises:
        BadRequest: it is elsewhere, is no metadata file, is too large, or its table is encrypted.
    """
    places.check(location, WHAT)
    try:
        # One byte more shows that it is longer.
        body = reader.read_range(normalised(location), 0, LONGEST_FILE + 1)
    except (NoSuchKey, Misconfigured):
        # S3 answers 403 for what does not exist, because no role may list the bucket.
        raise BadRequest(f"{WHAT} does not exist in S3, or cannot be read") from None
    try:
        source = parse(SourceMetadata, parts_of(body))
    except NotMetadata as error:
        raise BadRequest(f"{WHAT} cannot be read: {error}") from None
    if source.has_encryption or (source.snapshot and source.snapshot.key_id is not None):
        raise is_encrypted()
    # A uuid of its own: the table of the other catalog may be changed there.
    commit = TableCommit([AssertCreate(type="assert-create")], uuid=str(uuid4()))
    commit.source, commit.source_location = source, location
    if (snapshot := source.snapshot) is not None:
        id_ = snapshot.snapshot_id
        id_ += 0 if id_ > LARGEST_DUCKLAKE_ID else LARGEST_DUCKLAKE_ID + 1
        update = {"snapshot_id": id_, "parent_snapshot_id": None}
        commit.snapshots.append(snapshot.model_copy(update=update))
        commit.main = id_
    return commit
