"""What clients may change in S3.

`UploadPaths` has the paths below which clients may upload: those that the catalog tells writers. On
AWS the policy of vended credentials limits a client to its table; here that is the task of a
`Permission`, and without one a client may upload to any table.

`Removals` answers DeleteObject and DeleteObjects: clients may remove what no commit uses.
`UncommittedFiles` finds these files: the catalog has never had them. Only such files are replaced,
too. DuckDB 1.5.5 removes the files of a transaction that it rolls back, or that was refused.
On AWS no writer may delete, because S3's permissions do not know the catalog.
https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObject.html
https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html
"""

import re
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, replace
from uuid import uuid4
from xml.sax.saxutils import escape

from polynya.commits.client_locations import normalised, spellings
from polynya.commits.request.client_files import OF_CLICKHOUSE
from polynya.ducklake import queries
from polynya.ducklake.connection.catalog_connection import Statement
from polynya.ducklake.connection.database import BEGIN_COMMIT, BEGIN_WRITE, Database
from polynya.ducklake.rows.objects import Lake
from polynya.ducklake.writes import changed_uploads
from polynya.ducklake.writes.new_snapshot import claim_snapshot_id
from polynya.mapping.properties import staging_path
from polynya.runtime.errors import ConcurrentCommit, PolynyaError, RequestTimeout
from polynya.storage.s3_locations import bucket_and_key
from polynya.virtual_files.names import UUID

from ..access.granted_files import Permission
from ..messages import Request, Response
from .requests import (
    NAMESPACE,
    IncompleteBody,
    S3Address,
    decoded_body,
    document,
    name_of,
    s3_error,
    xml_response,
)

UPLOADS = {
    ("PUT", frozenset[str]()): "PutObject",
    ("PUT", frozenset({"partnumber", "uploadid"})): "UploadPart",
    ("POST", frozenset({"uploads"})): "CreateMultipartUpload",
    ("POST", frozenset({"uploadid"})): "CompleteMultipartUpload",
    ("DELETE", frozenset({"uploadid"})): "AbortMultipartUpload",
}
"""The operations by the method and the (lower-case) names of query parameters."""

CREATIONS = frozenset({"PutObject", "CompleteMultipartUpload"})
"""The operations that write an object, whose location the catalog may have."""

IGNORED = frozenset({"x-id"})
"""Some SDKs repeat the name of the operation in the query."""


def operation_of(method: str, address: S3Address) -> str | None:
    """S3's name of an operation that uploads; None: the request is for something else."""
    return UPLOADS.get((method, address.unsigned().parameter_names() - IGNORED))


OF_A_TABLE = re.compile(f"(?:.+/)?{UUID}/.*", re.DOTALL)
"""A path below the lake's data path that is in a table's `write.data.path`, which ends in its uuid;
also this path itself, with a slash at its end: PyArrow writes such an object after a removal."""

OF_DUCKDB = re.compile(f"(?:.+/)?{UUID}-deletes[.](?:parquet|puffin)", re.DOTALL)
"""The delete files that DuckDB writes beside data files. No file of Polynya or DuckLake has such
a name."""

BESIDE_VIRTUAL = re.compile(
    f"{UUID}/(?:[^/]+/{UUID}-deletes[.](?:parquet|puffin)|{OF_CLICKHOUSE.pattern})"
)
"""The same beside the virtual file of a table's inlined rows, and what ClickHouse uploads, as keys
below the directory of all virtual files."""


@dataclass(frozen=True, slots=True)
class UploadPaths:
    """Where clients may upload; each is `s3://bucket/prefix/`, with a slash at its end."""

    data: str
    """The lake's data path: below it, in directories that are named by a table's uuid."""
    staging: str
    virtual: str
    """The virtual files, which may be below the data path; clients may not replace them. They may
    be in an Object Lambda access point, which passes uploads on to the bucket behind it."""
    virtual_root: str
    """The virtual files of all lakes."""

    @classmethod
    def from_locations(
        cls,
        *,
        data_path: str,
        staging_location: str,
        virtual_location: str,
        virtual_root: str | None = None,
    ) -> "UploadPaths":
        """The paths of a lake.

        Args:
            data_path: DuckLake's option.
            staging_location: the setting, which may be empty.
            virtual_location: of all virtual files of the lake.
            virtual_root: of those of all lakes; None: there is one lake.

        Raises:
            ValueError: one of them is not in S3.
        """
        return cls(
            data=_directory(data_path),
            staging=_directory(staging_path(staging_location, data_path, "")),
            virtual=_directory(virtual_location),
            virtual_root=_directory(virtual_root or virtual_location),
        )

    def permit(self, method: str, address: S3Address) -> bool:
        """Whether a request is part of an upload to one of the paths."""
        return operation_of(method, address) is not None and self.contain(address)

    def contain(self, address: S3Address) -> bool:
        """Whether clients may upload an object."""
        key = address.key_text
        # Keys are looked up in PostgreSQL, whose texts cannot hold a NUL.
        if {".", ".."} & set(key.split("/")) or "\\" in key or "\0" in key:
            return False
        location = address.location
        if location.startswith(self.virtual):
            return BESIDE_VIRTUAL.fullmatch(location.removeprefix(self.virtual)) is not None
        if location.startswith(self.virtual_root):
            return False  # those of another lake
        if location.startswith(self.data) and OF_DUCKDB.fullmatch(key):
            return True
        if location.startswith(self.staging):
            return location != self.staging
        of_data = location.startswith(self.data)
        return of_data and bool(OF_A_TABLE.fullmatch(location.removeprefix(self.data)))


def _directory(location: str) -> str:
    """The location with the scheme `s3` and one slash at its end."""
    place = bucket_and_key(location)
    if place is None:
        raise ValueError(f"{location} is not in S3")
    bucket, key = place
    return f"s3://{bucket}/{key}".rstrip("/") + "/"


Uncommitted = Callable[[Collection[str]], AbstractContextManager[set[str]]]
"""Gives those locations that the catalog has never had. Every commit that names them later learns
that the block has changed them."""


ONE, SEVERAL = ("DELETE", frozenset[str]()), ("POST", frozenset({"delete"}))
"""The operations by the method and the names of query parameters."""

MOST_KEYS = 1000
OF_OTHERS = ("ducklake-", "polynya-")
"""The beginnings of the names of files that native writers and Polynya itself have written."""

NOT_UPLOADED = "this endpoint removes only what clients have uploaded to the paths of writers"
COMMITTED = (
    "the catalog names this file, or named it: no client may replace it, and only DuckLake removes "
    "it: CALL ducklake_cleanup_old_files(…)"
)
NO_KEY = "clients may not upload a file with this key"


class Malformed(Exception):
    """The body of DeleteObjects is not what S3 accepts."""


@dataclass(frozen=True, slots=True)
class Removals:
    """Removes uploaded files that the catalog has never had, and refuses everything else."""

    uploads: UploadPaths
    uncommitted: Uncommitted
    remove: Callable[[S3Address], Response]
    """Removes an object of the S3 behind."""
    canonical: Callable[[S3Address], S3Address | None] = lambda address: address
    """As `proxy.Buckets.canonical`."""

    def answer(
        self,
        request: Request,
        address: S3Address,
        behind: str | None = None,
        permission: Permission | None = None,
    ) -> Response | None:
        """The answer to a removal; None: the request is for something else.

        Args: as `S3Proxy.answer`.
        """
        operation = (request.method, address.unsigned().parameter_names() - IGNORED)
        try:
            if operation == ONE and address.key:
                target = replace(address, query="")
                if refusal := self._remove_all([target], behind, permission)[target]:
                    return s3_error(403, "AccessDenied", refusal, resource=address.path)
                return Response(204)
            if operation == SEVERAL and not address.key:
                keys = _keys(request)
                named = replace(address, query="")
                of_keys = {key: named.with_key(key) for key in keys}
                refusals = self._remove_all({*of_keys.values()}, behind, permission)
                return _deleted({key: refusals[target] for key, target in of_keys.items()})
        except Malformed as error:
            return s3_error(400, "MalformedXML", str(error), resource=address.path)
        except RequestTimeout:
            raise  # it has an answer of its own
        except PolynyaError as error:
            return s3_error(503, "SlowDown", str(error), resource=address.path)
        return None

    def _remove_all(
        self, addresses: Collection[S3Address], behind: str | None, permission: Permission | None
    ) -> dict[S3Address, str]:
        """Remove objects; returns for each the reason why it was not removed, empty: it was.

        Raises:
            PolynyaError: the catalog cannot be read now.
        """
        refusals = dict.fromkeys(addresses, NOT_UPLOADED)
        real: dict[S3Address, S3Address] = {}
        for address in addresses:
            stored = self.canonical(address.with_bucket(behind) if behind else address)
            if stored is None:
                refusals[address] = NO_KEY
            elif self._is_own(replace(address, key=stored.key)) and (
                permission is None or permission.may_write(stored.location)
            ):
                real[address] = stored
        if not real:
            return refusals
        with self.uncommitted({address.location for address in real.values()}) as uncommitted:
            for address, stored in real.items():
                is_free = stored.location in uncommitted
                refusals[address] = self._remove(stored) if is_free else COMMITTED
        return refusals

    def _is_own(self, address: S3Address) -> bool:
        """Whether the key looks like one that a client has uploaded."""
        name = address.key_text.rpartition("/")[2]
        return self.uploads.contain(address) and not name.startswith(OF_OTHERS)

    def _remove(self, address: S3Address) -> str:
        """Remove an object; returns why the S3 behind has not removed it, empty: it has."""
        status = self.remove(address).status
        return (
            ""
            if status < 300 or status == 404
            else f"the S3 behind this endpoint answered {status}"
        )


def _keys(request: Request) -> list[str]:
    """The keys that a DeleteObjects names.

    Raises:
        Malformed: the body is not such a document, or has too many keys.
    """
    try:
        body, _ = decoded_body(request)
        with body:
            root = document(body)
    except (IncompleteBody, ValueError) as error:
        raise Malformed(str(error)) from None
    objects = [element for element in root if name_of(element) == "Object"]
    parts = [{name_of(part): part.text or "" for part in element} for element in objects]
    if not 0 < len(parts) <= MOST_KEYS or any(part.keys() != {"Key"} for part in parts):
        raise Malformed(f"the document must name 1 to {MOST_KEYS} keys, and no versions")
    return [part["Key"] for part in parts]


def _deleted(refusals: dict[str, str]) -> Response:
    """The answer to DeleteObjects, with the reason for each key that was not removed."""
    elements = (
        f"<Error><Key>{escape(key)}</Key><Code>AccessDenied</Code>"
        f"<Message>{escape(refusal)}</Message></Error>"
        if refusal
        else f"<Deleted><Key>{escape(key)}</Key></Deleted>"
        for key, refusal in refusals.items()
    )
    return xml_response(200, f"<DeleteResult {NAMESPACE}>{''.join(elements)}</DeleteResult>")


def spellings_with_dots(location: str) -> Iterator[str]:
    """Every path by which DuckLake may know the file, also with one `/./`, which equals `/`."""
    for path in spellings(location):
        yield from (path, f"./{path}")
        yield from (
            f"{path[: slash.start()]}/.{path[slash.start() :]}" for slash in SLASH.finditer(path)
        )


SLASH = re.compile("/")

TRIES = 5
"""How often a claim of a snapshot is tried while others commit."""


@dataclass(frozen=True, slots=True)
class UncommittedFiles:
    """Finds the files that no commit has named, and tells later commits that they have changed."""

    database: Database
    identity: Callable[[str], str] | None = None
    """What all locations of a file in a folder share; None: the data is in S3."""
    refresh: Callable[[], object] = lambda: None
    """Brings the database up to date, if it is a mirror; raises PolynyaError."""

    @contextmanager
    def claim(self, locations: Collection[str]) -> Iterator[set[str]]:
        """The locations that the catalog has never had, for a block that removes or replaces them.

        Raises:
            PolynyaError: the catalog cannot be read now.
        """
        # A client may give up on a commit that is under way, and remove its files: the commit lands
        # later. It has read them before, and looks for their change when it writes.
        self.refresh()
        change = str(uuid4())
        # PyArrow writes an object whose key ends in a slash after each removal.
        directories = {place for place in locations if place.endswith("/") and not self.identity}
        uncommitted = self._begin_once_idle(change, {*locations} - directories)
        yield uncommitted | directories
        if uncommitted:
            # If the database does not answer, the change counts as ended later.
            with suppress(PolynyaError), self.database.transaction(BEGIN_WRITE) as con:
                changed_uploads.end(con, change)

    def _begin_once_idle(self, change: str, locations: Collection[str]) -> set[str]:
        if not locations:
            return set()
        for _ in range(TRIES - 1):
            try:
                return self._begin(change, locations)
            except ConcurrentCommit:
                continue
        return self._begin(change, locations)

    def _begin(self, change: str, locations: Collection[str]) -> set[str]:
        identity = self.identity or normalised
        with self.database.transaction(BEGIN_COMMIT) as con:
            con.run("SAVEPOINT unclaimed")
            # The claim waits for a COMMIT that is under way in PostgreSQL: that of a native writer.
            claim_snapshot_id(con)
            lake = queries.lake().run(con)
            committed = self._known(lake, locations).run(con)
            con.run("ROLLBACK TO SAVEPOINT unclaimed")
            files = {identity(location) for location in committed}
            uncommitted = {place for place in locations if identity(place) not in files}
            if uncommitted:
                changed_uploads.begin(con, change, {*map(normalised, uncommitted)})
        return uncommitted

    def _known(self, lake: Lake, locations: Collection[str]) -> Statement[set[str]]:
        """The locations of the catalog that may be among these. All commits wait for it."""
        if self.identity is None:
            # These use an index: in a lake of many files a scan takes seconds.
            paths = {path for location in locations for path in spellings_with_dots(location)}
            return queries.known_locations(lake, paths)
        # However the catalog spells a location, its last part is the name of the file.
        return queries.locations_of_names(lake, {place.rpartition("/")[2] for place in locations})

    def close(self) -> None:
        """Close the connection."""
        self.database.close()
