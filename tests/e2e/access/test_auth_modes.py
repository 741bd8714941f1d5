"""Real clients authenticate in both ways: with a signed request, and with a token.

The test simulates API Gateway: botocore computes the signature again, and a token is valid if this
test issued it. The identity decides which tables the client sees.
"""

import base64
import json
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any
from urllib.parse import parse_qs, unquote

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from polynya_local.clients import spark
from polynya_local.clients.duckdb import ICEBERG, connect
from polynya_local.clients.spark_jars import why_not
from polynya_local.messages import Request, Response
from pyiceberg.catalog import load_catalog
from pyiceberg.exceptions import NoSuchTableError

from tests.aws.api_gateway import payload, response
from tests.aws.http_server import HttpServer
from tests.aws.lambda_function import LambdaFunction
from tests.support import rest
from tests.support.servers.in_process import functions, standing_in

LAKE = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
USE lake;
CREATE TABLE orders(i INTEGER);
INSERT INTO orders FROM range(3);
CREATE TABLE salaries(i INTEGER);
INSERT INTO salaries FROM range(3);
"""
KEY, SECRET, REGION = "AKIAEXAMPLE", "a secret/key+", "eu-central-1"
CLIENT, CLIENT_SECRET, SCOPE = "1client2id", "s3cret", "ice/read"
POLICY = {
    "rules": [
        {
            "principals": ["arn:aws:iam::111122223333:user/reader", f"client_id={CLIENT}"],
            "tables": {"main": ["orders"]},
        }
    ]
}
SIGNATURE = re.compile(
    r"AWS4-HMAC-SHA256 Credential=(?P<key>[^/]+)/\d{8}/(?P<region>[^/]+)/(?P<service>[^/]+)/"
    r"aws4_request, ?SignedHeaders=(?P<headers>[^,]+), ?Signature=(?P<signature>[0-9a-f]{64})"
)

Authorizer = Callable[[Request], dict[str, Any] | None]


def iam(request: Request) -> dict[str, Any] | None:
    """What API Gateway reports about a request that is signed for execute-api."""
    given = SIGNATURE.fullmatch(request.header("authorization"))
    expected = (KEY, REGION, "execute-api")
    if not given or given.group("key", "region", "service") != expected:
        return None
    query = f"?{request.query}" if request.query else ""
    url = f"http://{request.header('host')}{request.path}{query}"
    headers = {name: request.header(name) for name in given["headers"].split(";")}
    signed_request = AWSRequest(request.method, url, headers)
    signed_request.context["timestamp"] = request.header("x-amz-date")
    signer = SigV4Auth(Credentials(KEY, SECRET), "execute-api", REGION)
    text = signer.string_to_sign(signed_request, signer.canonical_request(signed_request))
    if signer.signature(text, signed_request) != given["signature"]:
        return None
    return {"iam": {"userArn": "arn:aws:iam::111122223333:user/reader"}}


class Tokens:
    """Issues tokens for OAuth 2.0 client credentials, as Cognito does."""

    def __init__(self) -> None:
        self.given: set[str] = set()

    def answer(self, request: Request) -> Response:
        form = {name: value for name, [value] in parse_qs(request.body.read().decode()).items()}
        basic = request.header("authorization").removeprefix("Basic ")
        by_form = f"{form.get('client_id')}:{form.get('client_secret')}"
        client = base64.b64decode(basic).decode() if basic else by_form
        if (form["grant_type"], form.get("scope")) != ("client_credentials", SCOPE):
            return _json(400, {"error": "invalid_scope"})
        if client != f"{CLIENT}:{CLIENT_SECRET}":
            return _json(400, {"error": "invalid_client"})
        token = secrets.token_urlsafe()
        self.given.add(token)
        return _json(200, {"access_token": token, "token_type": "Bearer", "expires_in": 3600})

    def jwt(self, request: Request) -> dict[str, Any] | None:
        token = request.header("authorization").removeprefix("Bearer ")
        claims = {"client_id": CLIENT, "scope": SCOPE, "token_use": "access"}
        return {"jwt": {"claims": claims, "scopes": [SCOPE]}} if token in self.given else None


def _json(status: int, body: object) -> Response:
    return Response(status, (("Content-Type", "application/json"),), json.dumps(body).encode())


@contextmanager
def gateway(function: LambdaFunction, authorizer: Authorizer, refusal: int) -> Iterator[str]:
    def answer(request: Request) -> Response:
        who = authorizer(request)
        if who is None:
            return _json(refusal, {"message": "Forbidden"})
        event = payload(request, unquote(request.path))
        event["requestContext"]["authorizer"] = who
        return response(function.invoke(event))

    with served(answer) as uri:
        yield uri


@contextmanager
def served(answer: Callable[[Request], Response]) -> Iterator[str]:
    server = HttpServer(0)
    server.start(answer)
    yield server.uri
    server.stop()


@pytest.fixture(scope="module")
def bridge(lake, moto):
    served = lake.write("auth_modes", LAKE)
    # The access point sees the role of the stand-in itself, so the policy is for materialize here.
    values = {"AUTHORIZATION": json.dumps(POLICY), "AWS_ENDPOINT_URL_STS": moto}
    values["VENDING_ROLE"] = "arn:aws:iam::123456789012:role/Vended"
    where = standing_in(served, moto, delivery="materialize", **values)
    with where as stand_in, functions() as started:
        function = LambdaFunction("rest", started.rest_catalog, region=REGION, timeout_s=29)
        yield SimpleNamespace(rest=function, s3=stand_in.s3_uri)
        function.stop()


@pytest.fixture(scope="module")
def signed(bridge):
    with gateway(bridge.rest, iam, 403) as uri:
        yield uri


@pytest.fixture(scope="module")
def with_token(bridge):
    tokens = Tokens()
    with served(tokens.answer) as token_uri, gateway(bridge.rest, tokens.jwt, 401) as uri:
        yield uri, f"{token_uri}/oauth2/token"


def pyiceberg(uri: str, **settings: str):
    return load_catalog("polynya", type="rest", uri=uri, warehouse="lake", **settings)


def sees_orders_only(catalog) -> None:
    assert catalog.list_tables("main") == [("main", "orders")]
    assert len(catalog.load_table("main.orders").scan().to_arrow()) == 3
    with pytest.raises(NoSuchTableError):
        catalog.load_table("main.salaries")


def test_pyiceberg_signs_its_requests(signed, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
    settings = {"rest.sigv4-enabled": "true", "rest.signing-region": REGION}
    sees_orders_only(pyiceberg(signed, **settings, **{"rest.signing-name": "execute-api"}))


def test_pyiceberg_sends_a_token(with_token):
    uri, token_uri = with_token
    settings = {"credential": f"{CLIENT}:{CLIENT_SECRET}", "scope": SCOPE}
    sees_orders_only(pyiceberg(uri, **settings, **{"oauth2-server-uri": token_uri}))


def duckdb_sees_orders_only(secret: str, attach: str) -> None:
    with connect(ICEBERG) as con:
        con.execute(secret)
        con.execute(attach)
        assert con.execute("SELECT count(*) FROM ice.main.orders").fetchone() == (3,)
        with pytest.raises(Exception, match="salaries does not exist"):
            con.execute("FROM ice.main.salaries")


def test_duckdb_sends_a_token(with_token):
    uri, token_uri = with_token
    duckdb_sees_orders_only(
        f"CREATE SECRET polynya (TYPE iceberg, CLIENT_ID '{CLIENT}', "
        f"CLIENT_SECRET '{CLIENT_SECRET}', OAUTH2_SERVER_URI '{token_uri}', "
        f"OAUTH2_SCOPE '{SCOPE}')",
        f"ATTACH 'lake' AS ice (TYPE iceberg, ENDPOINT '{uri}', SECRET polynya, "
        "DEFAULT_SCHEMA 'main')",
    )


def test_duckdb_signs_its_requests(signed, bridge):
    """DuckDB then needs its own credentials and requests none, despite ACCESS_DELEGATION_MODE."""
    duckdb_sees_orders_only(
        f"CREATE SECRET polynya (TYPE s3, KEY_ID '{KEY}', SECRET '{SECRET}', REGION '{REGION}', "
        f"ENDPOINT '{bridge.s3.partition('://')[2]}', URL_STYLE 'path', USE_SSL false)",
        f"ATTACH 'lake' AS ice (TYPE iceberg, ENDPOINT '{signed}', AUTHORIZATION_TYPE 'sigv4', "
        f"SECRET polynya, SIGV4_REGION '{REGION}', SIGV4_SERVICE 'execute-api', "
        "DEFAULT_SCHEMA 'main')",
    )


def spark_sees_orders_only(bridge, name: str, uri: str, **settings: str) -> None:
    """Spark requests vended credentials, and its settings contain no other credentials for S3."""
    if reason := why_not():
        pytest.skip(reason)
    from pyspark.errors import AnalysisException

    given = spark.catalog_settings(uri, "lake", bridge.s3) | settings
    del given["s3.access-key-id"], given["s3.secret-access-key"]
    given["header.X-Iceberg-Access-Delegation"] = "vended-credentials"
    session = spark.session()
    session.conf.set(f"spark.sql.catalog.{name}", "org.apache.iceberg.spark.SparkCatalog")
    for setting, value in given.items():
        session.conf.set(f"spark.sql.catalog.{name}.{setting}", value)
    assert session.table(f"{name}.main.orders").count() == 3
    with pytest.raises(AnalysisException, match="TABLE_OR_VIEW_NOT_FOUND"):
        session.table(f"{name}.main.salaries")


@pytest.mark.spark
def test_spark_signs_its_requests(signed, bridge):
    spark_sees_orders_only(
        bridge,
        "signing",
        signed,
        **{
            "rest.auth.type": "sigv4",
            "rest.signing-name": "execute-api",
            "rest.signing-region": REGION,
            "rest.access-key-id": KEY,
            "rest.secret-access-key": SECRET,
        },
    )


@pytest.mark.spark
def test_spark_sends_a_token(with_token, bridge):
    uri, token_uri = with_token
    credential = {"credential": f"{CLIENT}:{CLIENT_SECRET}", "scope": SCOPE}
    spark_sees_orders_only(
        bridge, "with_token", uri, **credential, **{"oauth2-server-uri": token_uri}
    )


def test_a_client_without_credentials_is_refused(signed, with_token):
    for uri, status in ((signed, 403), (with_token[0], 401)):
        with pytest.raises(rest.Refused) as refused:
            rest.Rest(uri, "lake")
        assert refused.value.status == status
