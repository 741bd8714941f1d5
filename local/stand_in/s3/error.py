"""S3's error answers: a status and an XML document."""

from uuid import uuid4
from xml.sax.saxutils import escape

from ..http_message import Headers, Response


def s3_error(
    status: int, code: str, message: str, *, resource: str = "", headers: Headers = ()
) -> Response:
    """An error answer of S3. https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html"""
    request_id = str(uuid4())
    body = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<Error><Code>{escape(code)}</Code><Message>{escape(message)}</Message>"
        f"<Resource>{escape(resource)}</Resource><RequestId>{request_id}</RequestId></Error>"
    )
    own = (("Content-Type", "application/xml"), ("x-amz-request-id", request_id))
    return Response(status, (*own, *headers), body.encode())
