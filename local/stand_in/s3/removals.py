"""DeleteObject and DeleteObjects: clients may take back what they have uploaded for nothing.

https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObject.html
https://docs.aws.amazon.com/AmazonS3/latest/API/API_DeleteObjects.html
"""

from collections.abc import Callable, Collection
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from urllib.parse import quote
from xml.etree import ElementTree
from xml.sax.saxutils import escape

from polynya.errors import PolynyaError

from ..http_message import Request, Response
from .address import S3Address
from .aws_chunked import IncompleteBody, decoded_body
from .error import s3_error
from .uploads import IGNORED, UploadPaths

Uncommitted = Callable[[Collection[str]], AbstractContextManager[set[str]]]
"""Those of some locations that the catalog has never had; in the block none is committed."""

ONE, SEVERAL = ("DELETE", frozenset[str]()), ("POST", frozenset({"delete"}))
"""The operations by the method and the names of query parameters."""

MOST_KEYS = 1000
LONGEST_BODY = 2 * 1024 * 1024
OF_OTHERS = ("ducklake-", "polynya-")
"""How the names of files begin that native writers, and the function that writes, have made."""

NOT_UPLOADED = "this endpoint removes only what clients have uploaded to the paths of writers"
COMMITTED = (
    "the catalog names this file, or did, so that only DuckLake removes it: "
    "CALL ducklake_cleanup_old_files(…)"
)


class Malformed(Exception):
    """The body of DeleteObjects is not what S3 takes."""


@dataclass(frozen=True, slots=True)
class Removals:
    """Removes uploaded files that the catalog has never had, and refuses everything else."""

    uploads: UploadPaths
    uncommitted: Uncommitted
    remove: Callable[[S3Address], Response]
    """Removes an object of the S3 behind."""

    def answer(
        self, request: Request, address: S3Address, behind: str | None = None
    ) -> Response | None:
        """The answer to a removal; None: the request is none.

        Args:
            behind: the bucket behind the access point that the address names; None: it names none.
        """
        operation = (request.method, address.unsigned().parameter_names() - IGNORED)
        try:
            if operation == ONE and address.key:
                one = replace(address, query="")
                if refusal := self._refusals([one], behind)[one]:
                    return s3_error(403, "AccessDenied", refusal, resource=address.path)
                return Response(204)
            if operation == SEVERAL and not address.key:
                keys = _keys(request)
                of_keys = {S3Address(address.bucket, quote(key), ""): key for key in keys}
                refusals = self._refusals(of_keys, behind)
                return _deleted({key: refusals[one] for one, key in of_keys.items()})
        except Malformed as error:
            return s3_error(400, "MalformedXML", str(error), resource=address.path)
        except PolynyaError as error:
            return s3_error(503, "SlowDown", str(error), resource=address.path)
        return None

    def _refusals(
        self, addresses: Collection[S3Address], behind: str | None
    ) -> dict[S3Address, str]:
        """Remove objects; by the address why one was not removed, empty: it was.

        Raises:
            PolynyaError: the catalog cannot be asked now.
        """
        real = {
            one: one.in_bucket(behind) if behind else one for one in addresses if self._is_own(one)
        }
        refusals = dict.fromkeys(addresses, NOT_UPLOADED)
        if not real:
            return refusals
        with self.uncommitted({_location(one) for one in real.values()}) as uncommitted:
            for one, stored in real.items():
                is_free = _location(stored) in uncommitted
                refusals[one] = self._refusal(stored) if is_free else COMMITTED
        return refusals

    def _is_own(self, address: S3Address) -> bool:
        """Whether a client has uploaded the object, as far as its key says."""
        name = address.key_text.rpartition("/")[2]
        return self.uploads.contain(address) and not name.startswith(OF_OTHERS)

    def _refusal(self, address: S3Address) -> str:
        """Remove an object; why the S3 behind has not, empty: it has."""
        status = self.remove(address).status
        return "" if status < 300 or status == 404 else f"the S3 behind has answered {status}"


def _location(address: S3Address) -> str:
    return f"s3://{address.bucket}/{address.key_text}"


def _keys(request: Request) -> list[str]:
    """The keys that a DeleteObjects names.

    Raises:
        Malformed: the body is no such document, or has too many keys.
    """
    try:
        body, _ = decoded_body(request)
        if len(body) > LONGEST_BODY or b"<!" in body:
            raise Malformed("the document is too long, or has a DTD")
        document = ElementTree.fromstring(body)
    except (IncompleteBody, ElementTree.ParseError) as error:
        raise Malformed(str(error)) from None
    objects = [one for one in document if _name(one) == "Object"]
    parts = [{_name(part): part.text or "" for part in one} for one in objects]
    if not 0 < len(parts) <= MOST_KEYS or any(part.keys() != {"Key"} for part in parts):
        raise Malformed(f"the document must name 1 to {MOST_KEYS} keys, and no versions")
    return [part["Key"] for part in parts]


def _name(element: ElementTree.Element) -> str:
    """The name of an element without its namespace, which some clients leave out."""
    return element.tag.rpartition("}")[2]


def _deleted(refusals: dict[str, str]) -> Response:
    """The answer to DeleteObjects: by key why it was not removed."""
    elements = (
        f"<Error><Key>{escape(key)}</Key><Code>AccessDenied</Code>"
        f"<Message>{escape(refusal)}</Message></Error>"
        if refusal
        else f"<Deleted><Key>{escape(key)}</Key></Deleted>"
        for key, refusal in refusals.items()
    )
    body = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<DeleteResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"{''.join(elements)}</DeleteResult>"
    )
    return Response(200, (("Content-Type", "application/xml"),), body.encode())
