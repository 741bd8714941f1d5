"""The bridge gets its PostgreSQL credentials at run time, so that passwords can be rotated."""

import json
import os
import shutil
import ssl
import tempfile
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import boto3
import pytest
from polynya.catalog.database_credentials import IamCredentials
from polynya.catalog.lakes import open_database
from polynya.ducklake.connection.url import connection_arguments
from polynya.runtime.errors import Misconfigured, ServiceUnavailable
from polynya.runtime.settings import Config
from polynya.storage.aws import Clients
from polynya_local.processes import postgres

from tests.support.servers.in_process import settings
from tests.support.writes.transactions import read

HBA = "host all reader 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n"
SECRET = "lake/reader"


@pytest.fixture(scope="module")
def server():
    """A PostgreSQL that requires a password from the role `reader`."""
    owner = postgres._owner()
    folder = Path(tempfile.mkdtemp(prefix="polynya-hba-", dir=postgres._traversable_folder(owner)))
    (folder / "hba").write_text(HBA)
    for path in (folder, folder / "hba"):
        if owner:
            shutil.chown(path, owner)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(postgres.SETTINGS, "hba_file", str(folder / "hba"))
        with postgres._own_server() as database:
            database.run("CREATE ROLE reader LOGIN PASSWORD 'first'")
            yield database
    shutil.rmtree(folder)


@pytest.fixture
def secrets(server, moto):
    """Secrets Manager with the reader's password, in the form that RDS rotation writes."""
    client = boto3.client("secretsmanager", endpoint_url=moto)
    server.run("ALTER ROLE reader PASSWORD 'first'")
    client.create_secret(Name=SECRET, SecretString=text("first"))
    yield client
    client.delete_secret(SecretId=SECRET, ForceDeleteWithoutRecovery=True)


@pytest.fixture
def opened(server, moto, secrets):
    values = {
        "DATABASE_URL": replace(server, user="nobody").url,
        "DATABASE_CREDENTIALS": f"secret:{SECRET}",
        "VIRTUAL_BUCKET": "b",
        "AWS_ENDPOINT_URL_SECRETS_MANAGER": moto,
    }
    with settings(**values):
        database = open_database(Config.from_env(os.environ), Clients())
        yield database
        database.close()


def text(password: str) -> str:
    return json.dumps({"engine": "postgres", "username": "reader", "password": password})


def current_user(database) -> str:
    return read(database, lambda con: con.run("SELECT current_user")[0][0])


def test_role_and_password_come_from_the_secret(opened):
    assert current_user(opened) == "reader"


def test_a_rotated_password_is_fetched_automatically(opened, server, secrets):
    assert current_user(opened) == "reader"
    server.run("ALTER ROLE reader PASSWORD 'second'")
    secrets.put_secret_value(SecretId=SECRET, SecretString=text("second"))
    assert current_user(opened) == "reader"  # the connection stays open
    opened.close()
    assert current_user(opened) == "reader"  # refused once, then accepted with the new password


def test_during_a_rotation_clients_are_asked_to_retry(opened, server, secrets):
    server.run("ALTER ROLE reader PASSWORD 'third'")
    with pytest.raises(ServiceUnavailable, match="rotated"):
        current_user(opened)
    secrets.put_secret_value(SecretId=SECRET, SecretString=text("third"))
    assert current_user(opened) == "reader"


@pytest.mark.parametrize("wrong", ["hunter2", '{"password": "hunter2"}', '["hunter2"]'])
def test_a_malformed_secret_is_not_shown(wrong, opened, secrets):
    secrets.put_secret_value(SecretId=SECRET, SecretString=wrong)
    with pytest.raises(Misconfigured, match="must be JSON") as refused:
        current_user(opened)
    assert "hunter2" not in str(refused.value) and refused.value.__cause__ is None


def test_a_missing_secret_is_reported(opened, secrets):
    secrets.delete_secret(SecretId=SECRET, ForceDeleteWithoutRecovery=True)
    with pytest.raises(Misconfigured, match="ResourceNotFoundException"):
        current_user(opened)
    secrets.create_secret(Name=SECRET, SecretString=text("first"))


def test_an_iam_token_is_for_one_role_on_one_host(moto):
    """The token is a URL without scheme (RDS user guide, "Connecting using IAM authentication")."""
    with settings(DATABASE_URL="unused"):
        user, token = IamCredentials(Clients())("db.example.com", 5432, "reader")
    parts = urlsplit(f"https://{token}")
    query = parse_qs(parts.query)
    assert (user, parts.hostname, parts.port) == ("reader", "db.example.com", 5432)
    assert query["Action"] == ["connect"] and query["DBUser"] == ["reader"]
    assert query["X-Amz-Expires"] == ["900"]


def test_the_certificates_of_rds_are_trusted_in_addition_to_the_systems():
    url = "postgresql://u@db.example.com/d?sslrootcert=rds"
    context = connection_arguments(url)["ssl_context"]
    assert context.verify_mode == ssl.CERT_REQUIRED and context.check_hostname
    trusted = context.get_ca_certs()
    names = {dict(part[0] for part in one["subject"]).get("commonName") for one in trusted}
    for region in ("us-east-1", "eu-west-1", "ap-southeast-2"):
        assert f"Amazon RDS {region} Root CA RSA2048 G1" in names
    system = ssl.create_default_context().get_ca_certs()
    assert len(trusted) >= len(system) + 80
