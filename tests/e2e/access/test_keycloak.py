"""`polynya serve --oidc-issuer` with a real identity provider: Keycloak, which Maven fetches.

Clients have an id and a secret of Keycloak, and get their tokens there.
"""

import html
import json
import os
import re
import shutil
import subprocess
import time
import zipfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
import requests
from polynya_local.clients.duckdb import ICEBERG, connect, literal
from polynya_local.clients.spark_jars import sha256
from polynya_local.processes.postgres import free_port
from polynya_local.processes.serving import serving
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import NoSuchTableError

from tests.support import file_lakes

VERSION = "26.0.7"
ARTIFACT = f"org.keycloak:keycloak-quarkus-dist:{VERSION}:zip"
SHA256 = "25353b74613bcf72db67f8addbd88d832c705a69333091a16573d249d665fe21"
CACHE = Path(__file__).parents[3] / ".cache" / "keycloak"
SECONDS_TO_START = 300
ADMIN = {"username": "admin", "password": "admin"}
AUDIENCE = "lake"
PAGE, PASSWORD = "page", "smew-and-eider"
"""The page as a client, and what ada signs in with."""
ADA = {
    "username": "ada",
    "email": "ada@lake.example",
    "firstName": "Ada",
    "lastName": "Smew",
    "enabled": True,
    "emailVerified": True,
    "credentials": [{"type": "password", "value": PASSWORD}],
    "realmRoles": ["reader"],
}
ROLES = {"reader": "reader", "other": "", "job": "writer"}
"""The clients of Keycloak, which are the callers, and their roles."""
POLICY = {
    "rules": [
        {"principals": ["realm_access.roles=reader"], "tables": {"main": ["orders"]}},
        {
            "principals": ["realm_access.roles=writer"],
            "tables": {"*": ["*"]},
            "write": {"*": ["*"]},
        },
    ]
}

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("mvn") is None, reason="no Maven, which fetches Keycloak"),
]


def fetched() -> Path:
    """The folder of Keycloak (150 MB)."""
    home = CACHE / f"keycloak-{VERSION}"
    if not home.exists():
        command = ["mvn", "-q", "-B", "-C", f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={CACHE}"]
        subprocess.run([*command, "dependency:copy"], check=True)
        archive = CACHE / f"keycloak-quarkus-dist-{VERSION}.zip"
        assert sha256(archive) == SHA256
        with zipfile.ZipFile(archive) as packed:
            packed.extractall(CACHE)
        archive.unlink()
        (home / "bin" / "kc.sh").chmod(0o755)
    return home


@contextmanager
def keycloak(folder: Path) -> Iterator[str]:
    """The URI of a Keycloak without realms, whose data is in a folder."""
    home = shutil.copytree(fetched(), folder / "keycloak")
    port = free_port()
    admin = {"KC_BOOTSTRAP_ADMIN_USERNAME": "admin", "KC_BOOTSTRAP_ADMIN_PASSWORD": "admin"}
    words = ["start-dev", "--http-host=127.0.0.1", f"--http-port={port}", "--cache=local"]
    uri = f"http://127.0.0.1:{port}"
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(
            ["bash", home / "bin" / "kc.sh", *words],
            env={**os.environ, **admin, "JDK_JAVA_OPTIONS": ""},
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            until = time.monotonic() + SECONDS_TO_START
            while not answers(f"{uri}/realms/master"):
                assert process.poll() is None and time.monotonic() < until, (
                    "Keycloak has not started"
                )
                time.sleep(1)
            yield uri
        finally:
            process.terminate()
            process.wait(60)


def answers(uri: str) -> bool:
    try:
        return requests.get(uri, timeout=5).ok
    except requests.RequestException:
        return False


class Realm:
    """A realm of Keycloak with a client for each caller."""

    def __init__(self, uri: str) -> None:
        self.uri = f"{uri}/realms/lake"
        form = {"grant_type": "password", "client_id": "admin-cli", **ADMIN}
        at = f"{uri}/realms/master/protocol/openid-connect/token"
        token = requests.post(at, data=form, timeout=60).json()["access_token"]
        mapper = {
            "name": "audience",
            "protocol": "openid-connect",
            "protocolMapper": "oidc-audience-mapper",
            "config": {"included.custom.audience": AUDIENCE, "access.token.claim": "true"},
        }
        realm = {
            "realm": "lake",
            "enabled": True,
            "roles": {"realm": [{"name": role} for role in {*ROLES.values()} - {""}]},
            "clients": [
                {
                    "clientId": name,
                    "secret": f"{name}-secret",
                    "serviceAccountsEnabled": True,
                    "standardFlowEnabled": False,
                    "protocolMappers": [mapper] if name != "other" else [],
                }
                for name in ROLES
            ]
            + [
                {
                    "clientId": PAGE,
                    "publicClient": True,
                    "standardFlowEnabled": True,
                    "redirectUris": ["http://127.0.0.1:*"],
                    "attributes": {"pkce.code.challenge.method": "S256"},
                    "protocolMappers": [mapper],
                }
            ],
            "users": [ADA]
            + [
                {
                    "username": f"service-account-{name}",
                    "enabled": True,
                    "serviceAccountClientId": name,
                    "realmRoles": [role] if role else [],
                }
                for name, role in ROLES.items()
            ],
        }
        headers = {"Authorization": f"Bearer {token}"}
        answer = requests.post(f"{uri}/admin/realms", json=realm, headers=headers, timeout=120)
        assert answer.status_code == 201, answer.text

    @property
    def token_uri(self) -> str:
        return f"{self.uri}/protocol/openid-connect/token"

    def token(self, name: str) -> str:
        form = {
            "grant_type": "client_credentials",
            "client_id": name,
            "client_secret": f"{name}-secret",
        }
        token: str = requests.post(self.token_uri, data=form, timeout=60).json()["access_token"]
        return token


@pytest.fixture(scope="module")
def team(tmp_path_factory) -> Iterator[tuple[Realm, Any]]:
    folder = tmp_path_factory.mktemp("keycloak")
    lake = file_lakes.empty("duckdb", folder)
    with file_lakes.writing(lake) as con:
        con.execute("CREATE TABLE orders AS SELECT i FROM range(100) AS r(i)")
        con.execute("CREATE TABLE salaries AS SELECT i FROM range(9) AS r(i)")
    (folder / "policy.json").write_text(json.dumps(POLICY))
    with keycloak(folder) as uri:
        realm = Realm(uri)
        options = ("--oidc-issuer", realm.uri, "--oidc-audience", AUDIENCE)
        options += ("--policy", str(folder / "policy.json"), "--oidc-client", PAGE)
        options += ("--audit-log", str(folder / "audit.log"))
        with serving(
            lake.address, None, delivery="object-lambda", writes=True, options=options
        ) as bridge:
            yield realm, bridge


@pytest.fixture(scope="module")
def audit(team, tmp_path_factory) -> Path:
    [file] = tmp_path_factory.getbasetemp().glob("keycloak[0-9]*/audit.log")
    return file


def catalog(team: tuple[Realm, Any], name: str) -> RestCatalog:
    realm, bridge = team
    return RestCatalog(
        "c",
        uri=bridge.catalog_uri,
        warehouse="lake",
        credential=f"{name}:{name}-secret",
        scope="profile",
        **{"oauth2-server-uri": realm.token_uri},
    )


def test_pyiceberg_gets_its_token_from_keycloak(team):
    reader = catalog(team, "reader")
    assert reader.list_tables("main") == [("main", "orders")]
    assert reader.load_table("main.orders").scan().to_arrow().num_rows == 100
    with pytest.raises(NoSuchTableError):
        reader.load_table("main.salaries")
    assert catalog(team, "job").load_table("main.salaries").scan().to_arrow().num_rows == 9


def test_duckdb_gets_its_token_from_keycloak(team):
    realm, bridge = team
    with closing(connect(ICEBERG)) as con:
        con.execute(
            "CREATE SECRET token (TYPE iceberg, CLIENT_ID 'job', CLIENT_SECRET 'job-secret', "
            f"OAUTH2_SCOPE 'profile', OAUTH2_SERVER_URI {literal(realm.token_uri)})"
        )
        con.execute(
            f"ATTACH 'lake' AS ice (TYPE iceberg, ENDPOINT {literal(bridge.catalog_uri)}, "
            "SECRET token, DEFAULT_SCHEMA 'main')"
        )
        con.execute("INSERT INTO ice.main.orders VALUES (100)")
        assert con.execute("SELECT count(*), max(i) FROM ice.main.orders").fetchone() == (101, 100)


def test_a_token_for_another_audience_is_refused(team):
    realm, bridge = team
    statuses = [
        requests.get(
            f"{bridge.catalog_uri}/v1/config?warehouse=lake",
            headers={"Authorization": f"Bearer {token}"},
            timeout=60,
        ).status_code
        for token in (realm.token("reader"), realm.token("other"), realm.token("reader")[:-2])
    ]
    assert statuses == [200, 401, 401]


def test_clients_are_told_where_tokens_come_from(team):
    realm, bridge = team
    headers = {"Authorization": f"Bearer {realm.token('reader')}"}
    answer = requests.get(
        f"{bridge.catalog_uri}/v1/config?warehouse=lake", headers=headers, timeout=60
    )
    assert answer.json()["defaults"]["oauth2-server-uri"] == realm.token_uri
    form = {"grant_type": "client_credentials", "client_id": "job", "client_secret": "job-secret"}
    answer = requests.post(f"{bridge.catalog_uri}/v1/oauth/tokens", data=form, timeout=60)
    assert answer.status_code == 400 and realm.token_uri in answer.json()["error_description"]


# People at the page


def to_keycloak(browser: requests.Session, uri: str) -> str:
    """Begin to sign in, give Keycloak the password, and stop before the way back."""
    begin = browser.get(f"{uri}/login/begin?next=/changes", allow_redirects=False, timeout=60)
    form = browser.get(begin.headers["Location"], timeout=60)
    for cookie in browser.cookies:
        cookie.secure = False  # browsers send those for TLS to this machine without TLS too
    [action] = re.findall(r'<form[^>]* action="([^"]+)"', form.text)
    answer = browser.post(
        html.unescape(action),
        data={"username": "ada", "password": PASSWORD},
        allow_redirects=False,
        timeout=60,
    )
    assert answer.status_code == 302, answer.text
    return answer.headers["Location"]


def test_somebody_signs_in_with_keycloak_and_sees_one_table(team, audit):
    _, bridge = team
    with requests.Session() as browser:
        back = to_keycloak(browser, bridge.catalog_uri)
        answer = browser.get(back, allow_redirects=False, timeout=60)
        assert (answer.status_code, answer.headers["Location"]) == (303, "/changes")
        report = browser.get(f"{bridge.catalog_uri}/?format=json", timeout=60).json()
        assert [line["name"] for line in report["lines"]] == ["orders"]
        page = browser.get(f"{bridge.catalog_uri}/", timeout=60).text
        assert "Sign out" in page and ">ada<" in page and "salaries" not in page
        hidden = browser.get(f"{bridge.catalog_uri}/tables/main/salaries", timeout=60)
        assert hidden.status_code == 404
        # The answer holds once, and in the browser alone that has asked.
        assert browser.get(back, allow_redirects=False, timeout=60).status_code == 401
    said = audit.read_text()
    assert '"operation": "login"' in said
    code = parse_qs(urlsplit(back).query)["code"][0]
    assert code not in said and "eyJ" not in said


def test_an_answer_of_keycloak_is_for_the_browser_that_has_asked(team):
    _, bridge = team
    with requests.Session() as thief, requests.Session() as victim:
        back = to_keycloak(thief, bridge.catalog_uri)
        assert victim.get(back, allow_redirects=False, timeout=60).status_code == 401
        victim.get(f"{bridge.catalog_uri}/login/begin?next=/", allow_redirects=False, timeout=60)
        assert victim.get(back, allow_redirects=False, timeout=60).status_code == 401
        page = victim.get(f"{bridge.catalog_uri}/", allow_redirects=False, timeout=60)
        assert page.status_code == 303


def test_a_code_needs_the_verifier_of_its_browser(team):
    """Keycloak itself refuses a code with another verifier: that of another browser."""
    _, bridge = team
    with requests.Session() as one, requests.Session() as other:
        code = parse_qs(urlsplit(to_keycloak(one, bridge.catalog_uri)).query)["code"][0]
        back = urlsplit(to_keycloak(other, bridge.catalog_uri))
        query = {name: values[0] for name, values in parse_qs(back.query).items()}
        stolen = back._replace(query=urlencode({**query, "code": code})).geturl()
        assert other.get(stolen, allow_redirects=False, timeout=60).status_code == 401
