"""Somebody who may write one table can touch nothing else, with whatever paths and files."""

import io
import json
from contextlib import closing

import fastavro
import pytest
from polynya.commits.plan import footers
from polynya.commits.plan.added_files import MOST_FILES
from polynya.storage.direct_s3 import RangeReader
from polynya.storage.s3_locations import bucket_and_key
from polynya_local.clients.pyiceberg import s3_properties
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import BadRequestError

from tests.support.servers.in_process import bridge
from tests.support.servers.lost_answers import LostAnswers
from tests.support.writes.attack import Attack, with_manifest
from tests.support.writes.hostile_avro import HOSTILE
from tests.support.writes.hostile_parquet import HOSTILE as HOSTILE_PARQUET
from tests.support.writes.writable import EMPTY, judging, set_up_writes

pytestmark = pytest.mark.versions("1.0")

RULES = {"principals": ["*"], "tables": {"*": ["*"]}, "write": {"main": ["mine", "new"]}}


@pytest.fixture(scope="module")
def attack(lake, moto):
    one = set_up_writes(lake.write("attacked", EMPTY))
    with judging(one, moto) as judge:
        judge.query("CREATE TABLE lake.other.theirs AS SELECT 1::BIGINT AS id")
    settings = {"AUTHORIZATION": json.dumps({"rules": [RULES]})}
    with (
        bridge(one, moto, writes=True, settings=settings) as served,
        LostAnswers(served.catalog_uri) as proxy,
        closing(
            RestCatalog("c", uri=proxy.uri, warehouse="lake", **s3_properties(served.s3_endpoint))
        ) as catalog,
    ):
        yield Attack(one, moto, served, proxy, catalog)


@pytest.fixture(scope="module")
def judge(attack):
    """It sees each commit and file: every statement is a transaction, and no file is cached."""
    with judging(attack.lake, attack.moto) as found:
        found.con.execute("SET enable_external_file_cache = false")
        yield found


@pytest.fixture(autouse=True)
def nothing_changes(attack, judge):
    """The catalog and the files are as before."""

    def state():
        return [
            judge.query("FROM ducklake_snapshots('lake')"),
            judge.query("FROM lake.other.theirs"),
            attack.lake.database.run("SELECT * FROM polynya_commits ORDER BY snapshot_id"),
        ]

    before = state()
    yield
    assert state() == before


@pytest.fixture(autouse=True)
def nothing_of_others_is_read(attack, monkeypatch):
    """Not even early, while the table is read."""
    fetch, locations = RangeReader.fetch, []

    def recorded(self, bucket, key, first, end):
        locations.append(f"s3://{bucket}/{key}")
        return fetch(self, bucket, key, first, end)

    monkeypatch.setattr(RangeReader, "fetch", recorded)
    yield
    paths = ("write.data.path", "write.metadata.path")
    own = tuple(f"{attack.mine.properties[path]}/" for path in paths)
    assert all(one.startswith(own) for one in locations), locations


def theirs(attack) -> str:
    with judging(attack.lake, attack.moto) as judge:
        [[file]] = judge.query(
            "SELECT data_file FROM ducklake_list_files('lake', 'theirs', schema => 'other')"
        )
    return file


# What a commit of `main.mine` names as its data file, and a part of the answer.
NOT_BELOW, KNOWN = "a data file is not below", "in the catalog already, or was"
LOCATIONS = {
    "another table's file": (theirs, NOT_BELOW),
    "its Hadoop spelling": (lambda a: "s3a" + theirs(a)[2:], NOT_BELOW),
    "dots": (
        lambda a: a.file.file_path.rpartition("/")[0] + "/../../theirs/x.parquet",
        NOT_BELOW,
    ),
    "a dot": (lambda a: a.file.file_path.rpartition("/")[0] + "/./x.parquet", NOT_BELOW),
    "an empty part": (lambda a: a.file.file_path.rpartition("/")[0] + "//x.parquet", NOT_BELOW),
    "another bucket": (lambda a: "s3://elsewhere/x.parquet", NOT_BELOW),
    "another scheme": (lambda a: "file:///etc/passwd", NOT_BELOW),
    "the own file again": (lambda a: a.file.file_path, KNOWN),
    "its spelling": (lambda a: "s3n" + a.file.file_path[2:], KNOWN),
    "no file": (lambda a: a.file.file_path + ".parquet", "does not exist"),
}


@pytest.mark.parametrize("case", LOCATIONS)
def test_a_data_file_of_somebody_else_is_refused(attack, case):
    location, message = LOCATIONS[case]
    with pytest.raises(BadRequestError, match=message):
        attack.append(location(attack))


def test_a_file_twice_in_one_commit_is_refused(attack):
    path = attack.file.file_path + ".parquet"
    with pytest.raises(BadRequestError, match="adds one file twice"):
        attack.append(path, "s3a" + path[2:])


def test_more_files_than_fit_into_the_function_are_refused(attack):
    """Before any of them is read: they do not even exist."""
    locations = [f"{attack.file.file_path}-{number}.parquet" for number in range(MOST_FILES + 1)]
    with pytest.raises(BadRequestError, match="at most 10,000 are allowed: commit fewer at a time"):
        attack.append(*locations)


def test_footers_that_do_not_fit_into_the_function_are_refused(attack, monkeypatch):
    monkeypatch.setattr(footers, "MOST_BYTES", 100)
    with pytest.raises(BadRequestError, match="the footers of the added data files have more"):
        attack.append(attack.file.file_path)


FOOTERS = {
    "2^24 row groups in 28 bytes": "its footer is broken",
    "20,000 levels": "it has more than 20,000 columns",
    "5,000 levels": "its columns are nested more than 200 deep",
}


CONTENTS = {"a data file": 0, "a delete file": 1}


@pytest.mark.parametrize("case", FOOTERS)
@pytest.mark.parametrize("what", CONTENTS)
def test_a_footer_that_costs_gigabytes_or_the_process_is_refused(attack, case, what):
    body = HOSTILE_PARQUET[case]()
    location = f"{attack.file.file_path}-hostile.parquet"
    bucket, key = bucket_and_key(location)
    attack.s3.put_object(Bucket=bucket, Key=key, Body=body)
    file = {"file_path": location, "file_size_in_bytes": len(body)}
    answer = attack.commit(with_file(attack, content=CONTENTS[what], **file))
    assert answer == (400, f"{what} of the commit cannot be read: {FOOTERS[case]}")


def virtual(attack) -> str:
    head = attack.catalog.load_table("other.theirs").current_snapshot()
    return head.manifest_list


# The manifest list of a commit to `main.mine`, and a part of the answer.
LISTS = {
    "another table's": (virtual, "the manifest list of the commit is not below"),
    "its manifest": (
        lambda a: with_manifest(a, virtual(a)),
        "a manifest of the commit is not below",
    ),
    "beside another table's": (
        lambda a: f"{a.catalog.load_table('other.theirs').location()}/metadata/a.avro",
        "the manifest list of the commit is not below",
    ),
    "no path": (lambda a: with_manifest(a, None), "the manifest list of the commit cannot be read"),
    "a number": (lambda a: with_manifest(a, 7), "the manifest list of the commit cannot be read"),
    "none": (lambda a: a.write("x", b"")[:-1] + "y", "does not exist"),
    "empty": (lambda a: a.write("empty", b""), "does not exist in S3, or cannot be read"),
    "text": (lambda a: a.write("text", b"Obj\x01" + b"x" * 999), "cannot be read"),
    "a bomb": (lambda a: a.write("bomb", HOSTILE["160 MB of zeros"]()), "too large"),
    "a record in itself": (
        lambda a: a.write("recursive", HOSTILE["a record in itself, under two namespaces"]()),
        "its schema is not one of Iceberg's",
    ),
    "a bomb in a manifest": (
        lambda a: with_manifest(a, a.write("bomb", HOSTILE["160 MB of zeros"]())),
        "too large",
    ),
}


def test_a_manifest_of_ours_that_the_table_has_no_more_is_a_conflict(attack):
    """The client loads the table again and keeps its files, which it would not after a 400."""
    head = attack.mine.refresh().current_snapshot()
    [*_, manifest] = head.manifests(attack.mine.io)
    stem, dash, fingerprint = manifest.manifest_path.removesuffix(".avro").rpartition("-")
    former = f"{stem}{dash}{fingerprint[::-1]}.avro"
    status, _ = attack.commit(with_manifest(attack, former))
    assert status == 409


@pytest.mark.parametrize("case", LISTS)
def test_a_manifest_list_that_is_not_the_writers_own_is_refused(attack, case):
    location, message = LISTS[case]
    status, said = attack.commit(location(attack))
    assert (status, message in said) == (400, True), said


FIELDS = ["file_path", "record_count", "file_size_in_bytes", "file_format", "partition"]


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", [None, -1, 2**62, "x"])
def test_a_manifest_with_other_values_is_refused(attack, field, value):
    """The schema of an Avro file is the writer's own choice."""
    [found] = [u["snapshot"] for u in attack.body["updates"] if u["action"] == "add-snapshot"]
    [listed] = fastavro.reader(io.BytesIO(attack.read(found["manifest-list"])))
    reader = fastavro.reader(io.BytesIO(attack.read(listed["manifest_path"])))
    records = list(reader)
    schema = json.loads(reader.metadata["avro.schema"])
    [of_file] = [f["type"] for f in schema["fields"] if f["name"] == "data_file"]
    for one in of_file["fields"]:
        if one["name"] == field:
            one["type"] = ["null", "long", "string"]
    for record in records:
        record["data_file"]["file_path"] += ".parquet"
        record["data_file"][field] = value
    stream = io.BytesIO()
    fastavro.writer(stream, fastavro.parse_schema(schema), records)
    status, said = attack.commit(with_manifest(attack, attack.write("m.avro", stream.getvalue())))
    assert status == 400 and said, said


@pytest.mark.parametrize("what", CONTENTS)
def test_a_file_that_does_not_exist_is_refused(attack, what):
    """S3 answers 403 for it, because the function may not list the bucket."""
    location = f"{attack.file.file_path}.parquet"
    status, said = attack.commit(with_file(attack, content=CONTENTS[what], file_path=location))
    assert (status, f"{what} of the commit does not exist in S3" in said) == (400, True)


def with_file(attack, content: int, **changes: object) -> str:
    """A manifest list with the writer's own file, of which some fields are others."""
    [found] = [u["snapshot"] for u in attack.body["updates"] if u["action"] == "add-snapshot"]
    reader = fastavro.reader(io.BytesIO(attack.read(found["manifest-list"])))
    lists = list(reader)
    manifest = fastavro.reader(io.BytesIO(attack.read(lists[0]["manifest_path"])))
    records = list(manifest)
    for record in records:
        record["data_file"] |= {"content": content, **changes}
    location = attack.write("m.avro", avro(manifest, records))
    lists = [{**one, "content": content, "manifest_path": location} for one in lists]
    return attack.write("list.avro", avro(reader, lists))


def avro(like: fastavro.reader, records: list) -> bytes:
    """A file with another one's schema and metadata."""
    stream = io.BytesIO()
    own = {key: value for key, value in like.metadata.items() if not key.startswith("avro.")}
    fastavro.writer(stream, like.writer_schema, records, metadata=own)
    return stream.getvalue()


def deep(levels: int) -> bytes:
    type_ = '"int"'
    for _ in range(levels):
        type_ = f'{{"type":"list","element-id":1,"element":{type_},"element-required":false}}'
    field = f'{{"id":1,"name":"a","required":false,"type":{type_}}}'
    return f'{{"name":"new","schema":{{"type":"struct","fields":[{field}]}}}}'.encode()


MANY = [{"action": "set-properties", "updates": {"a": "b"}}] * 100_000
# A body, and the status of the answer.
BODIES = {
    "nested lists": ("main", "", deep(150), 400),
    "deeply nested lists": ("main", "", deep(5000), 400),
    "nested JSON": ("main", "mine", b"[" * 100_000, 400),
    "another uuid": (
        "main",
        "mine",
        {
            "requirements": [
                {"type": "assert-table-uuid", "uuid": "f47ac10b-58cc-4372-a567-0e02b2c3d479"}
            ],
            "updates": [],
        },
        409,
    ),
    "another table": ("other", "theirs", {"requirements": [], "updates": MANY[:1]}, 403),
    "no table": ("other", "x", {"requirements": [{"type": "assert-create"}], "updates": []}, 403),
    "unknown updates": (
        "main",
        "mine",
        {"requirements": [], "updates": [{"action": "drop-everything"}] * 100_000},
        400,
    ),
    "no JSON": ("main", "mine", b"\xff\xfe", 400),
    "no object": ("main", "mine", b"[]", 400),
    "a large number": (
        "main",
        "mine",
        b'{"requirements":[],"updates":[{"action":"set-current-schema","schema-id":'
        + b"9" * 5000
        + b"}]}",
        400,
    ),
}


@pytest.mark.parametrize("case", BODIES)
def test_a_malformed_body_is_refused(attack, case):
    namespace, table, body, expected = BODIES[case]
    status, said = attack.post(namespace, table, body)
    assert status == expected and said, said


def test_the_id_of_somebody_elses_table_is_refused(attack):
    """`assign-uuid` would give two tables the same paths and the same list of snapshots."""
    uuid = str(attack.catalog.load_table("other.theirs").metadata.table_uuid)
    field = {"id": 1, "name": "id", "type": "long", "required": False}
    schema = {"type": "struct", "schema-id": 0, "fields": [field]}
    updates = [
        {"action": "assign-uuid", "uuid": uuid},
        {"action": "add-schema", "schema": schema},
        {"action": "set-current-schema", "schema-id": -1},
    ]
    body = {"requirements": [{"type": "assert-create"}], "updates": updates}
    status, said = attack.post("main", "new", body)
    assert (status, "has had this uuid" in said) == (400, True), said


@pytest.mark.parametrize("snapshot_id", [0, -1, 1, 2**40, 2**63])
def test_snapshot_ids_of_ducklake_are_refused(attack, snapshot_id):
    status, said = attack.commit(**{"snapshot-id": snapshot_id})
    assert status == 400 and said
