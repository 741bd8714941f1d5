"""What is not registered: the answer is 400 with the reason, and nothing has changed."""

import gzip
import io
import json

import boto3
import fastavro
import pyarrow as pa
import pytest
from polynya.storage.s3_locations import bucket_and_key
from pyiceberg.transforms import IdentityTransform

from tests.support.writes.hand_made import avro_file
from tests.support.writes.registered import dry_run, register
from tests.support.writes.sources import ROOT

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "s": ["a", None, "c"]})
ELSEWHERE = "is not below a directory that `add_files`"


@pytest.fixture(scope="module")
def s3(moto):
    return boto3.client("s3", endpoint_url=moto, region_name="us-east-1")


class Source:
    """A table of PyIceberg, whose files a test replaces by others."""

    def __init__(self, catalog, s3, name):
        self.s3 = s3
        self.table = catalog.create_table(f"main.{name}", ROWS.schema)
        self.table.append(ROWS)

    def body(self, location):
        bucket, key = bucket_and_key(location)
        return self.s3.get_object(Bucket=bucket, Key=key)["Body"].read()

    def put(self, location, body):
        bucket, key = bucket_and_key(location)
        self.s3.put_object(Bucket=bucket, Key=key, Body=body)
        return location

    @property
    def document(self):
        return json.loads(self.body(self.table.metadata_location))

    def with_metadata(self, document, name="other.metadata.json"):
        """Where a metadata file is, given as a JSON value or as bytes."""
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        return self.put(f"{self.table.location()}/metadata/{name}", body)

    def with_manifest(self, change):
        """Where the metadata file is if `change` has changed the record of the data file."""
        document = self.document
        [snapshot] = document["snapshots"]
        lists = self._records(snapshot["manifest-list"])
        manifest = self._records(lists.records[0]["manifest_path"])
        change(manifest.records[0]["data_file"])
        path = self.put(f"{self.table.location()}/metadata/m.avro", manifest.body())
        lists.records[0]["manifest_path"] = path
        return self.with_list(lists.body())

    def with_list(self, body, name="snap.avro"):
        location = self.put(f"{self.table.location()}/metadata/{name}", body)
        return self.with_snapshot({"manifest-list": location})

    def with_snapshot(self, update):
        document = self.document
        document["snapshots"][0] |= update
        return self.with_metadata(document)

    def _records(self, location):
        return AvroFile(self.body(location))


class AvroFile:
    def __init__(self, body):
        reader = fastavro.reader(io.BytesIO(body))
        self.schema, self.records = reader.writer_schema, [*reader]
        self._metadata = {
            key: value for key, value in reader.metadata.items() if not key.startswith("avro.")
        }

    def body(self):
        return avro_file(self.schema, self.records, self._metadata)


def changed(**updates):
    """A change of the metadata file."""
    named = {key.replace("_", "-"): value for key, value in updates.items()}
    return lambda source: source.with_metadata(source.document | named)


def with_type(type_):
    """The same with another type of the column s."""

    def metadata(source):
        document = source.document
        document["schemas"][0]["fields"][1]["type"] = type_
        return source.with_metadata(document)

    return metadata


def with_file(**updates):
    return lambda source: source.with_manifest(lambda file: file.update(updates))


def nested(levels):
    type_ = "int"
    for level in range(levels):
        type_ = {
            "type": "list",
            "element-id": 10 + level,
            "element": type_,
            "element-required": False,
        }
    return type_


def other_size(source):
    [file] = source.table.scan().plan_files()
    source.put(file.file.file_path, b"PAR1" + source.body(file.file.file_path))
    return source.table.metadata_location


def gone(source):
    [file] = source.table.scan().plan_files()
    bucket, key = bucket_and_key(file.file.file_path)
    source.s3.delete_object(Bucket=bucket, Key=key)
    return source.table.metadata_location


def cut(source):
    return source.with_metadata(source.body(source.table.metadata_location)[:-20])


PASSWD = "file:///etc/passwd"

REFUSED = {
    "a file that is cut off": (cut, "not Iceberg table metadata"),
    "no JSON": (lambda s: s.with_metadata(b"\x00\xff{"), "not Iceberg table metadata"),
    "another JSON": (lambda s: s.with_metadata([{}]), "not Iceberg table metadata"),
    "brackets": (lambda s: s.with_metadata(b"[" * 1_000_000), "not Iceberg table metadata"),
    "a huge file": (lambda s: s.with_metadata(b" " * (17 << 20)), "more than 16 MB"),
    "a bomb": (lambda s: s.with_metadata(gzip.compress(b" " * (200 << 20))), "more than 16 MB"),
    "broken gzip": (lambda s: s.with_metadata(gzip.compress(b"{}")[:-9]), "cut off or broken"),
    "large schemas": (changed(properties={"a": "x" * (5 << 20)}), "schemas of more than 4 MB"),
    "a later version": (changed(format_version=4), "format version is not 1, 2 or 3"),
    "no version": (changed(format_version=None), "format version is not 1, 2 or 3"),
    "a schema that is missing": (changed(current_schema_id=9), "lacks the schema"),
    "a snapshot that is missing": (changed(current_snapshot_id=9), "lacks the snapshot"),
    "a text for a number": (changed(last_column_id="x"), "last-column-id: Input should be"),
    "a NUL": (changed(properties={"a": "\0"}), "NUL character"),
    "keys": (changed(encryption_keys=[{"key-id": "1"}]), "encryption keys"),
    "a key": (lambda s: s.with_snapshot({"key-id": "1"}), "encryption keys"),
    "types that are nested deeply": (with_type(nested(150)), "nested more than"),
    "types that are nested endlessly": (with_type(nested(900)), ""),
    "fixed": (with_type("fixed[4]"), "DuckLake's blob has no fixed length"),
    "geography": (with_type("geography"), "DuckLake has no geography"),
    "a type that nobody knows": (with_type("money"), "which has no exact form in DuckLake"),
    "metadata elsewhere": (lambda s: "s3://lakes/elsewhere/x.metadata.json", ELSEWHERE),
    "metadata in another bucket": (lambda s: "s3://strange/source/x.metadata.json", ELSEWHERE),
    "metadata on the disk": (lambda s: PASSWD, ELSEWHERE),
    "a way out": (lambda s: f"{ROOT}../elsewhere/x.metadata.json", "is not below"),
    "metadata that is gone": (lambda s: f"{ROOT}gone.metadata.json", "does not exist in S3"),
    "a list elsewhere": (lambda s: s.with_snapshot({"manifest-list": PASSWD}), ELSEWHERE),
    "no list": (lambda s: s.with_list(b"Obj\x01 no"), "cannot be read"),
    "the metadata file as a list": (
        lambda s: s.with_snapshot({"manifest-list": s.table.metadata_location}),
        "it is not an Avro file",
    ),
    "a data file elsewhere": (with_file(file_path="s3://lakes/elsewhere/1.parquet"), ELSEWHERE),
    "a data file on the disk": (with_file(file_path=PASSWD), ELSEWHERE),
    "a data file that is gone": (gone, "does not exist in S3"),
    "a data file of another size": (other_size, "cannot be read"),
    "another number of rows": (with_file(record_count=4), "has 4 rows; it has 3"),
    "an Avro file": (with_file(file_format="AVRO"), "DuckLake has no avro files"),
    "an ORC file": (with_file(file_format="ORC"), "DuckLake has no orc files"),
    "a value that only the manifest has": (None, "whose value is in the manifest alone"),
}


@pytest.mark.slow(but=["cut off]", "a bomb]", "metadata elsewhere]", "a data file elsewhere]"])
@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(lake_of, source, s3, case):
    at, name = lake_of, lake_of.new("refused")
    make, words = REFUSED[case]
    location = make(Source(source, s3, name)) if make else only_in_manifest(source, s3, name)
    before = at.newest()
    answers = [dry_run(at, name, location, {"dry-run": is_dry}) for is_dry in (True, False)]
    for answer in answers:
        assert answer["error"]["code"] == 400, answer
        assert words in answer["error"]["message"], answer
    assert at.newest() == before
    assert not at.catalog.table_exists(f"main.{name}")


def only_in_manifest(source, s3, name):
    """A table with a file that lacks the column of its partition, as Hive's tables had them."""
    made = Source(source, s3, name)
    with made.table.update_spec() as spec:
        spec.add_field("s", IdentityTransform())
    made.table.append(ROWS.slice(0, 1))
    document = made.document
    [snapshot] = [
        s for s in document["snapshots"] if s["snapshot-id"] == document["current-snapshot-id"]
    ]
    lists = AvroFile(made.body(snapshot["manifest-list"]))
    for manifest in lists.records:
        for entry in AvroFile(made.body(manifest["manifest_path"])).records:
            if entry["data_file"]["partition"]:
                stream = io.BytesIO()
                only_id = pa.schema(
                    [pa.field("id", pa.int64(), metadata={"PARQUET:field_id": "1"})]
                )
                pa.parquet.write_table(ROWS.slice(0, 1).select(["id"]).cast(only_id), stream)
                made.put(entry["data_file"]["file_path"], stream.getvalue())
                size = len(stream.getvalue())
                changed_manifest = AvroFile(made.body(manifest["manifest_path"]))
                changed_manifest.records[0]["data_file"]["file_size_in_bytes"] = size
                made.put(manifest["manifest_path"], changed_manifest.body())
    return made.table.metadata_location


def test_files_of_the_lake(lake_of, source, s3):
    """No table shows the files of another one, nor its manifests: not as a source either."""
    at, name, other = lake_of, lake_of.new("thief"), lake_of.new("other")
    at.native(f"CREATE TABLE main.{other} (id BIGINT, s VARCHAR)")
    at.native(f"INSERT INTO main.{other} VALUES (1, 'secret')")
    table = at.catalog.load_table(f"main.{other}")
    [file] = table.scan().plan_files()
    made = Source(source, s3, name)
    for location in (
        table.metadata_location,
        made.with_snapshot({"manifest-list": table.current_snapshot().manifest_list}),
        made.with_manifest(lambda entry: entry.update(file_path=file.file.file_path)),
    ):
        answer = dry_run(at, name, location, {"dry-run": False})
        assert answer["error"]["code"] == 400, answer
        assert ELSEWHERE in answer["error"]["message"]
    register(at, name, made.table.metadata_location)
    again = dry_run(at, lake_of.new("again"), made.table.metadata_location)
    assert "is in the catalog already" in again["error"]["message"]


@pytest.mark.parametrize(
    ("body", "status", "type_"),
    [
        ({}, 409, "AlreadyExistsException"),
        ({"overwrite": True}, 400, "BadRequestException"),
        ({"name": ""}, 400, "BadRequestException"),
        ({"name": None}, 400, "BadRequestException"),
        ({"metadata-location": 7}, 400, "BadRequestException"),
    ],
)
def test_requests(lake_of, source, s3, body, status, type_):
    """The same again, as after a lost answer; and requests that are none."""
    at, name = lake_of, lake_of.new("requests")
    location = Source(source, s3, name).table.metadata_location
    register(at, name, location)
    before = at.newest()
    answer = dry_run(at, name, location, {"dry-run": False, **body})
    assert (answer["error"]["code"], answer["error"]["type"]) == (status, type_)
    assert at.newest() == before


def test_a_request_with_a_key_is_answered_again(lake_of, source, s3):
    at, name = lake_of, lake_of.new("key")
    location = Source(source, s3, name).table.metadata_location
    url = at.catalog.url("namespaces/main/register")
    key = {"Idempotency-Key": "0190a1a2-0000-7000-8000-000000000001"}
    body = {"name": name, "metadata-location": location}
    with at.commits():
        first = at.catalog._session.post(url, json=body, headers=key)
    again = at.catalog._session.post(url, json=body, headers=key)
    assert (first.status_code, again.status_code) == (200, 200)
    assert first.json()["metadata"]["table-uuid"] == again.json()["metadata"]["table-uuid"]
