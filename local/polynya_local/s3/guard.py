"""Answers requests to S3 that are signed with keys of this server, if the keys permit them."""

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

from polynya.catalog.lakes import Lakes
from polynya.runtime.errors import PolynyaError
from polynya.runtime.metrics import count_refusal

from ..access.audit_log import AuditLog
from ..access.granted_files import GrantedFiles, Permission
from ..access.request_rate import RequestRate, TooManyRequests
from ..access.signatures import NotSigned, Signature
from ..access.table_keys import Grant, TableKeys, UnknownKeys
from ..messages import Request, Response
from .requests import S3Address, operation, s3_error
from .uploads import operation_of

Answer = Callable[[Request, S3Address, Permission], Response]


class S3Guard:
    """Verifies each request, answers it within what its keys permit, and records it."""

    def __init__(
        self, keys: TableKeys, lakes: Lakes[GrantedFiles], audit: AuditLog, rate: RequestRate
    ) -> None:
        """Keep the arguments; nothing is opened yet."""
        self._keys, self._lakes, self._audit, self._rate = keys, lakes, audit, rate

    def answer(self, request: Request, address: S3Address, answer: Answer) -> Response:
        """The answer to a request; S3's error if the signature is wrong.

        Args:
            answer: answers a request whose body is verified when it is read.
        """
        grant, code, status = None, "", 500
        try:
            self._rate.check(request.client)
            signature = Signature.from_request(request, datetime.now(UTC))
            grant, secret = self._granted(signature)
            self._rate.take(request.client, grant.caller)
            verified = replace(request, body=signature.verified_body(request, secret))
            response = answer(verified, address, Permission(self._lakes, grant))
            status = response.status
            return response
        except NotSigned as error:
            self._rate.miss(request.client)
            code, status = error.code, error.status
            return s3_error(status, code, error.reason, resource=address.path)
        except PolynyaError as error:
            code, status = error.type, 503
            if isinstance(error, TooManyRequests):
                count_refusal(error.type)
            retry = (("Retry-After", str(error.retry_after or 1)),)
            return s3_error(status, "SlowDown", str(error), resource=address.path, headers=retry)
        finally:
            self._audit.write(
                who=grant.caller if grant else "",
                address=request.client,
                operation=_name(request, address),
                lake=grant.table.lake if grant else "",
                table=grant.table.table_uuid if grant else "",
                status=status,
                refused=code,
            )

    def _granted(self, signature: Signature) -> tuple[Grant, str]:
        """What the keys of a signature are for, and their secret part."""
        try:
            grant, secret = self._keys.grant(signature.access_key_id, signature.session_token)
        except UnknownKeys:
            reason = (
                "These keys are not from this server: let the client use the keys (vended "
                "credentials) and the address of S3 that come with the answer to loadTable."
            )
            raise NotSigned(403, "InvalidAccessKeyId", reason) from None
        if grant.expires_at <= time.time():
            raise NotSigned(400, "ExpiredToken", "The provided token has expired.")
        return grant, secret


def _name(request: Request, address: S3Address) -> str:
    """S3's name of a request's operation; the method, if the operation is not answered."""
    name = operation(request, address) or operation_of(request.method, address)
    return name or request.method
