"""What services and executors answer becomes one sentence of the job, and never a traceback."""

import json
from types import SimpleNamespace

import boto3
import pytest
from botocore.exceptions import ClientError
from pg8000.exceptions import DatabaseError
from polynya.runtime.errors import NoSuchKey
from polynya_local.processes.serving import REGION
from polynya_pipeline.common import storage
from polynya_pipeline.common.database import connect, translate_errors
from polynya_pipeline.common.errors import BadInput, JobError, Unavailable
from polynya_pipeline.common.spark import map_in_spark
from polynya_pipeline.publish import destinations, glue
from polynya_pipeline.verify.metadata import ServedCatalog


def client_error(operation: str, code: str, status: int) -> ClientError:
    answer = {"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return ClientError(answer, operation)


class Refusing:
    """An S3 that answers each request so."""

    def __init__(self, code: str, status: int) -> None:
        self._answer = code, status

    def __getattr__(self, operation: str):
        def request(**_):
            # HEAD has no body: botocore makes the code of the status.
            code, status = self._answer
            raise client_error(operation, str(status) if "head" in operation else code, status)

        return request


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('relation "public.ducklake_tag" does not exist', "lacks the table ducklake_tag"),
        ("Relation »ducklake_a.ducklake_tag« existiert nicht", "lacks the table ducklake_tag"),
        ('relation "public.ducklake_metadata" does not exist', "no DuckLake catalog"),
        ("", "no DuckLake catalog"),
    ],
)
def test_a_missing_table_is_named_in_any_language(text, words):
    with pytest.raises(BadInput, match=words), translate_errors("public"):
        raise DatabaseError({"C": "42P01", "M": text})


READS = {
    "size": lambda: storage.file_size("s3://b/k"),
    "range": lambda: storage.read_range("s3://b/k", 0, 4),
    "file": lambda: storage.read_file("s3://b/k"),
}


@pytest.mark.parametrize("read", READS.values(), ids=READS)
@pytest.mark.parametrize(("code", "status"), [("AccessDenied", 403), ("NoSuchKey", 404)])
def test_a_file_that_s3_does_not_show_is_missing_for_every_read(code, status, read, monkeypatch):
    """S3 answers 403 for a missing object to a role that may not list the bucket."""
    monkeypatch.setattr(storage, "s3_client", lambda: Refusing(code, status))
    assert read() is None


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_an_s3_that_does_not_answer_is_an_error_of_the_job(read, monkeypatch):
    monkeypatch.setattr(storage, "s3_client", lambda: Refusing("SlowDown", 503))
    with pytest.raises(Unavailable, match="s3://b/k cannot be"):
        read()


def test_a_missing_local_file_is_missing(tmp_path):
    assert storage.read_range(str(tmp_path / "none"), 0, 4) is None
    with pytest.raises(NoSuchKey, match="a file that the catalog names does not exist"):
        destinations.EXPORT_READER.read_range(str(tmp_path / "none"), 0, 4)
    with pytest.raises(Unavailable, match="cannot be read"):
        storage.read_range(str(tmp_path), 0, 4)


def test_a_metadata_file_that_cannot_be_read_is_an_error_of_the_job(moto):
    served = object.__new__(ServedCatalog)
    served.s3_endpoint = moto
    with pytest.raises(Unavailable, match=r"s3://lakes/none\.avro cannot be read: NoSuchKey"):
        served.read("s3://lakes/none.avro")


@pytest.fixture(autouse=True)
def new_session(monkeypatch):
    """boto3's own session keeps the endpoint that it has seen first."""
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)


ARN = f"arn:aws:secretsmanager:{REGION}:123456789012:secret:none"


def test_a_secret_that_cannot_be_reached_is_no_bad_input(moto, monkeypatch):
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", "http://127.0.0.1:1")
    with pytest.raises(Unavailable, match="the secret cannot be read now") as unreachable:
        connect(ARN, "public")
    assert unreachable.value.exit_code == 4


def test_a_secret_that_is_missing_or_has_other_keys_is(moto, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", moto)
    with pytest.raises(BadInput, match="the secret cannot be read: ResourceNotFound"):
        connect(ARN, "public")
    secrets = boto3.client("secretsmanager")
    made = secrets.create_secret(Name="other-keys", SecretString=json.dumps({"user": "x"}))
    with pytest.raises(BadInput, match="has neither the JSON key"):
        connect(made["ARN"], "public")


def test_a_glue_table_that_vanishes_meanwhile_is_gone(moto, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL_GLUE", moto)
    glue._client.cache_clear()
    client = glue._client()
    client.create_database(DatabaseInput={"Name": "vanishing"})
    marks = {glue.DATA_PATH: "s3://b/", glue.NAMESPACE: "main", glue.LOCATION: "s3://b/m"}
    marks |= {"metadata_location": "s3://b/m", "table_type": "ICEBERG", glue.SNAPSHOT_ID: "1"}
    client.create_table(DatabaseName="vanishing", TableInput={"Name": "old", "Parameters": marks})
    delete = client.delete_table

    def delete_twice(**table):
        delete(**table)
        delete(**table)

    monkeypatch.setattr(client, "delete_table", delete_twice)
    database = glue.GlueDatabase("vanishing")
    assert database.remove_others("s3://b/", set(), set()) == ["old"]
    with pytest.raises(BadInput, match="there is no Glue database none: create it first"):
        glue.GlueDatabase("none").check()
    glue._client.cache_clear()


def failing_spark(text: str):
    def collect():
        raise RuntimeError(text)

    frame = SimpleNamespace(mapInArrow=lambda *_: SimpleNamespace(collect=collect))
    return SimpleNamespace(range=lambda *_: frame)


@pytest.mark.parametrize(
    ("text", "kind", "message"),
    [
        (
            "Job aborted\npolynya_pipeline.common.errors.Unavailable: S3 is away\n at x",
            Unavailable,
            "S3 is away",
        ),
        (
            "An error occurred while calling o1.collectToPython.\n"
            "Caused by: java.io.IOException: no space",
            JobError,
            "Spark has failed: java.io.IOException: no space",
        ),
    ],
)
def test_what_executors_report_is_an_error_of_the_job(text, kind, message):
    with pytest.raises(JobError) as raised:
        list(map_in_spark(failing_spark(text), list, [1]))
    assert type(raised.value) is kind and str(raised.value) == message
