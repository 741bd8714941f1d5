"""The stand-in for S3 with the permissions that AWS checks: those of vended sessions."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest
from moto.core import DEFAULT_ACCOUNT_ID
from moto.sts.models import sts_backends
from polynya_local.messages import Request, Response
from polynya_local.s3.requests import S3Address, s3_error

from tests.aws.stand_in import StandIn
from tests.support.iam import allowed
from tests.support.lakes import BUCKET
from tests.support.servers.in_process import ALIAS

ACTIONS = {"GET": "s3:GetObject", "HEAD": "s3:GetObject", "PUT": "s3:PutObject"}


@dataclass
class Requests:
    """What clients have asked S3 for: (action, location)."""

    permitted: list[tuple[str, str]] = field(default_factory=list)
    refused: list[tuple[str, str]] = field(default_factory=list)

    def put(self) -> list[str]:
        """Where objects were put."""
        return [location for action, location in self.permitted if action == "s3:PutObject"]


@contextmanager
def enforced() -> Iterator[Requests]:
    """Refuse what the session policy of the caller's key does not allow, with any stand-in that
    is started within; callers without a vended key may do nothing."""
    seen = Requests()
    answer = StandIn._s3_answer

    def checked(self: StandIn, request: Request) -> Response:
        if request.path == "/WriteGetObjectResponse":
            return answer(self, request)
        address = S3Address.from_request(request)
        what = _action(request, address), f"s3://{address.bucket}/{address.key_text}"
        if not _may(_policy(request), *what):
            seen.refused.append(what)
            return s3_error(403, "AccessDenied", f"no right to {what[0]}", resource=address.path)
        seen.permitted.append(what)
        found = answer(self, request)
        if found.status == 404:  # S3 says so only to callers who may list the bucket
            return s3_error(403, "AccessDenied", "no right to list", resource=address.path)
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(StandIn, "_s3_answer", checked)
        yield seen


def _may(policy: str | None, action: str, location: str) -> bool:
    if policy is None:
        return False
    if not location.startswith(f"s3://{ALIAS}/"):
        return allowed(policy, location, action)
    through = f'"{action.replace("s3:", "s3-object-lambda:")}"' in policy
    # The function answers GetObject; S3 passes on what else there is.
    key = location.removeprefix(f"s3://{ALIAS}/")
    behind = (f"s3://{BUCKET}/{key}", f"s3://accesspoint/behind/object/{key}")
    is_allowed = action == "s3:GetObject" or all(allowed(policy, o, action) for o in behind)
    return through and is_allowed


def _action(request: Request, address: S3Address) -> str:
    names = address.unsigned().parameter_names()
    if not address.key:
        return "s3:ListBucket"
    if request.method == "POST" and names & {"uploads", "uploadid"}:
        return "s3:PutObject"
    if request.method == "DELETE":
        return "s3:AbortMultipartUpload" if "uploadid" in names else "s3:DeleteObject"
    return ACTIONS.get(request.method, f"s3:{request.method}")


def _policy(request: Request) -> str | None:
    """The session policy of the key that has signed a request; None: it is no vended one."""
    key = request.header("authorization").partition("Credential=")[2].partition("/")[0]
    sessions = sts_backends[DEFAULT_ACCOUNT_ID]["aws"].assumed_roles
    return next((str(one.policy) for one in sessions if one.access_key_id == key), None)
