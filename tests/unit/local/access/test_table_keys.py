"""Keys for tables: who has made them, until when they hold, and what is recorded of them."""

import base64
import json
import time
from dataclasses import replace
from urllib.parse import urlsplit

import pytest
from botocore.auth import S3SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from polynya.access.caller import VendedTable
from polynya_local.access.audit_log import AuditLog
from polynya_local.access.request_rate import RequestRate, TooManyRequests
from polynya_local.access.table_keys import Grant, Keys, TableKeys, UnknownKeys
from polynya_local.messages import Request, Response
from polynya_local.s3 import guard as module
from polynya_local.s3.guard import S3Guard
from polynya_local.s3.requests import S3Address

SECRET = b"s" * 32
NOW = int(time.time())
GRANT = Grant('token=a "\n', VendedTable("lake", "u-1"), "s3://b/main/t/", NOW + 900)


def test_keys_say_what_they_are_for_in_every_process():
    keys = TableKeys(SECRET).keys(GRANT)
    grant = TableKeys(SECRET).grant(keys.access_key_id, keys.session_token)
    assert grant == (GRANT, keys.secret_access_key)
    assert keys.secret_access_key not in f"{keys!r}{keys.session_token}"


def test_keys_say_which_columns_are_hidden():
    table = VendedTable("lake", "u-1", (3, 7))
    hiding = replace(GRANT, table=table, directory="")
    keys = TableKeys(SECRET).keys(hiding)
    assert TableKeys(SECRET).grant(keys.access_key_id, keys.session_token)[0] == hiding


@pytest.mark.parametrize(
    "change",
    [
        {"caller": "token=b"},
        {"table": VendedTable("other", "u-1")},
        {"table": VendedTable("lake", "u-2")},
        {"table": VendedTable("lake", "u-1", (3,))},
        {"directory": "s3://b/main/"},
        {"expires_at": NOW + 901},
    ],
)
def test_no_part_of_other_keys_goes_with_them(change):
    keys, others = TableKeys(SECRET), TableKeys(SECRET).keys(replace(GRANT, **change))
    own = keys.keys(GRANT)
    seal = own.session_token.partition(".")[2]
    for key_id, token in (
        (own.access_key_id, others.session_token),
        (others.access_key_id, own.session_token),
        (others.access_key_id, f"{others.session_token.partition('.')[0]}.{seal}"),
        # The same claims in another text.
        (own.access_key_id, f"{base64.urlsafe_b64encode(b'[]').decode()}.{seal}"),
        (own.access_key_id, own.session_token + "="),
        (own.access_key_id, ""),
        ("POLYNYÄ", own.session_token),
    ):
        with pytest.raises(UnknownKeys):
            keys.grant(key_id, token)
    with pytest.raises(UnknownKeys):
        TableKeys(SECRET + b"s").grant(own.access_key_id, own.session_token)


def presigned(keys: Keys) -> Request:
    sent = AWSRequest("GET", "http://127.0.0.1:9000/b/k")
    credentials = Credentials(keys.access_key_id, keys.secret_access_key, keys.session_token)
    S3SigV4QueryAuth(credentials, "s3", "us-east-1", 7 * 86400).add_auth(sent)
    parts = urlsplit(sent.url)
    return Request("GET", parts.path, parts.query, (("host", parts.netloc),), None, "10.0.0.7")


def test_a_caller_who_reads_too_much_is_slowed_down(tmp_path, monkeypatch):
    """The same bucket as at the catalog's port; that of the address is asked first."""
    keys, rate = TableKeys(SECRET), RequestRate(0.1)
    guard = S3Guard(keys, None, AuditLog(str(tmp_path / "audit.log")), rate)
    monkeypatch.setattr(module.time, "time", lambda: NOW)

    def answer(request: Request) -> Response:
        return guard.answer(request, S3Address.from_request(request), lambda *_: Response(200))

    request = presigned(keys.keys(GRANT))
    assert [answer(request).status for _ in range(2)] == [200, 503]
    slowed = answer(replace(request, client="10.0.0.8"))
    assert slowed.status == 503 and b"<Code>SlowDown</Code>" in slowed.body
    assert int(slowed.header("retry-after") or 0) >= 1
    with pytest.raises(TooManyRequests):
        rate.take("10.0.0.9", GRANT.caller)
    unsigned = replace(request, query="", client="::ffff:10.0.0.9")
    assert [answer(unsigned).status for _ in range(2)] == [403, 503]
    assert answer(replace(request, client="10.0.0.9")).status == 503
    last = json.loads((tmp_path / "audit.log").read_text().splitlines()[-1])
    assert (last["refused"], last["status"]) == ("TooManyRequestsException", 503)


def test_a_url_ends_with_its_keys_and_each_request_has_one_line(tmp_path, monkeypatch):
    keys = TableKeys(SECRET)
    guard = S3Guard(keys, None, AuditLog(str(tmp_path / "audit.log")), RequestRate(None))
    request = presigned(keys.keys(GRANT))

    def status() -> int:
        address = S3Address.from_request(request)
        return guard.answer(request, address, lambda *_: Response(200)).status

    monkeypatch.setattr(module.time, "time", lambda: NOW)
    assert status() == 200
    monkeypatch.setattr(module.time, "time", lambda: NOW + 900)
    assert status() == 400
    text = (tmp_path / "audit.log").read_text()
    first, last = map(json.loads, text.splitlines())
    assert (first["who"], first["table"], first["status"]) == (GRANT.caller, "u-1", 200)
    assert (last["refused"], last["status"]) == ("ExpiredToken", 400)
    for secret in (keys.keys(GRANT).session_token, keys.keys(GRANT).secret_access_key):
        assert secret not in text
