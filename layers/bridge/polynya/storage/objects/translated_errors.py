"""What an answer of S3 means for a file of the lake."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ...errors import PolynyaError, ServiceUnavailable
from ..s3 import status_code

ErrorTable = Mapping[int, tuple[type[PolynyaError], str]]
"""The error for an HTTP status, and what the status means."""


@contextmanager
def translate_errors(what: str, by_status: ErrorTable) -> Iterator[None]:
    """Raise Polynya's errors instead of boto3's.

    Args:
        what: what the requests do, for the message about a status that is not in the table.
        by_status: the error for an HTTP status, and what it means.

    Raises:
        ServiceUnavailable: S3 does not answer, or with another status.
    """
    from botocore.exceptions import BotoCoreError, ClientError

    try:
        yield
    except ClientError as error:
        raised, meaning = by_status.get(status_code(error), (ServiceUnavailable, what))
        code = error.response.get("Error", {}).get("Code", "an error")
        raise raised(f"S3 answers {code}: {meaning}") from None
    except BotoCoreError:
        raise ServiceUnavailable("S3 does not answer") from None
