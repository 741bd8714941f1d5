"""Local S3: no verb reaches a file that is not a client's, however its key is spelled.

The catalog, and files that it names, are where clients may upload, so that nothing else protects
them. Only what is in the folder counts: each file must have the bytes that it had.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, unquote, urlsplit
from xml.sax.saxutils import escape

import pyarrow as pa
import pytest
from polynya_local.lakes.address import parse
from polynya_local.lakes.catalogs import catalog_of
from polynya_local.lakes.lake_files import BUCKET
from polynya_local.lakes.mirror import Mirror
from polynya_local.processes.serving import serving
from polynya_local.s3.local_bucket import BESIDE_A_CATALOG, CatalogFiles, LocalBucket
from polynya_local.s3.loopback import loopback
from polynya_local.s3.proxy import S3Proxy
from polynya_local.s3.requests import S3Address
from polynya_local.s3.uploads import UploadPaths
from pyiceberg.catalog import load_catalog

from tests.support.file_lakes import KINDS, FileLake, query, writing

WITH_CATALOG, ADDED, LINKED = (f"{n}1a1fb09-8760-7336-b677-0e4f6c1fb6b5" for n in range(3))
"""Folders that may be those of tables, because a uuid is their name."""
ONE_ROW = pa.table({"id": pa.array([1], pa.int64())})


class Beside(FileLake):
    """A lake whose catalog is in the folder of its data."""

    @property
    def data(self) -> Path:
        return self.folder.parent


class Served(NamedTuple):
    lake: Beside
    connection: HTTPConnection
    keys: dict[str, str]
    """The keys of files, by what they are."""
    own: str
    """A folder in which a client may upload, with a slash at its end."""

    def request(
        self, method: str, key: str, query: str = "", body: bytes = b"", **headers: str
    ) -> tuple[int, bytes]:
        """Status and body of the answer; the key is sent as it is."""
        self.connection.request(method, f"/{BUCKET}/{key}{query}", body, headers)
        answer = self.connection.getresponse()
        return answer.status, answer.read()

    def files(self) -> dict[str, bytes]:
        """All files of the folder, and the one beside it."""
        folder = self.lake.data.parent
        return {
            str(path): path.read_bytes()
            for path in folder.rglob("*")
            if path.is_file() and ".polynya-" not in path.name
        }


@pytest.fixture(scope="module", params=["sqlite", pytest.param("duckdb", marks=pytest.mark.slow)])
def served(request, tmp_path_factory) -> Iterator[Served]:
    root = tmp_path_factory.mktemp(request.param) / "data"
    lake = Beside("lake", request.param, root / WITH_CATALOG)
    lake.folder.mkdir(parents=True)
    with ExitStack() as stack:
        with writing(lake) as con:
            con.execute("CALL lake.set_option('data_inlining_row_limit', 0)")
            con.execute("CREATE TABLE t (id BIGINT)")
            con.execute("INSERT INTO t FROM range(10)")
        bridge = stack.enter_context(
            serving(lake.address, None, delivery="object-lambda", writes=True)
        )
        keys = files_of(lake, bridge)
        own = keys["data file"].rpartition("/")[0] + "/"
        connection = HTTPConnection(urlsplit(bridge.s3_endpoint).netloc, timeout=60)
        yield Served(lake, stack.enter_context(closing(connection)), keys, own)


NATIVE = """
CREATE TABLE "ä" (id BIGINT);
INSERT INTO "ä" FROM range(10);
DELETE FROM "ä" WHERE id = 3;
CREATE TABLE "ö" AS FROM "ä";
DROP TABLE "ö";
CALL ducklake_expire_snapshots('lake', older_than => now() + INTERVAL 1 DAY);
CALL ducklake_add_data_files('lake', 't', '{added}');
DELETE FROM t WHERE id = 77;
"""
"""The directory of a table with such a name is its uuid."""


NOT_NATIVE = " AND path NOT LIKE '%ducklake-%' AND path NOT LIKE '%added%'"


def files_of(lake: Beside, bridge) -> dict[str, str]:
    """Make one file of each kind, by a client and natively."""
    root = lake.data
    load_catalog("c", uri=bridge.catalog_uri, warehouse="lake").load_table("main.t").append(ONE_ROW)
    (root / ADDED).mkdir()
    (root / LINKED).symlink_to(root / "main")
    (root.parent / "outside.parquet").write_bytes(b"outside")
    added = f"{root}/{ADDED}/.//added.parquet"
    with writing(lake) as con:
        con.execute(f"COPY (SELECT 77::BIGINT AS id) TO '{root / ADDED / 'added.parquet'}'")
        for statement in con.extract_statements(NATIVE.format(added=added)):
            con.execute(statement)
    named = "SELECT path FROM ducklake_{} WHERE path LIKE '%{}.parquet'"
    assert query(lake, named.format("data_file", "added")) == [(added,)], "it is spelled otherwise"
    [[scheduled]] = query(lake, named.format("files_scheduled_for_deletion", ""))
    [[deletes]] = query(lake, named.format("delete_file", "-delete"))
    [deletes] = root.rglob(deletes)
    [[by_client]] = query(lake, named.format("data_file", "") + NOT_NATIVE)
    native = next(p for p in deletes.parent.iterdir() if p != deletes)
    catalog = f"{WITH_CATALOG}/{lake.file.name}"
    return {
        **{f"catalog{end}": f"{catalog}{end}" for end in BESIDE_A_CATALOG},
        "data file": f"main/t/{by_client}",
        "native file": str(native.relative_to(root)),
        "added file": f"{ADDED}/added.parquet",
        "delete file": str(deletes.relative_to(root)),
        "scheduled file": scheduled,
        "outside": "../outside.parquet",
    }


def encoded(key: str) -> str:
    return "".join(c if c == "/" else f"%{ord(c):02x}" for c in key)


def after(folder: str) -> Callable[[str], str]:
    return lambda key: f"{folder}{key}"


SPELLINGS: dict[str, Callable[[str], str]] = {
    "plain": lambda key: key,
    "slash before": after("/"),
    "slashes before": after("///"),
    "slash within": lambda key: "//".join(key.rsplit("/", 1)),
    "slashes within": lambda key: key.replace("/", "///"),
    "encoded slash": lambda key: "%2F".join(key.rsplit("/", 1)),
    "slash at the end": lambda key: f"{key}/",
    "encoded slash at the end": lambda key: f"{key}%2f",
    "slashes at the end": lambda key: f"{key}//",
    "dot": lambda key: "/./".join(key.rsplit("/", 1)),
    "dot before": after("./"),
    "dot at the end": lambda key: f"{key}/.",
    "encoded dot": lambda key: "/%2E/".join(key.rsplit("/", 1)),
    "dots": lambda key: "/x/../".join(key.rsplit("/", 1)),
    "encoded dots": after(f"{ADDED}/%2e%2E/"),
    "dots to the folder": after(f"{ADDED}/../../data/"),
    "percent": encoded,
    "percent twice": lambda key: quote(encoded(key)),
    "NUL at the end": lambda key: f"{key}%00",
    "NUL and more": lambda key: f"{key}%00/x.parquet",
    "link": lambda key: key.replace("main/", f"{LINKED}/", 1),
    "longest": lambda key: "./" * 3000 + key,
}
WHOLE = (
    b"<CompleteMultipartUpload><Part><PartNumber>1</PartNumber></Part></CompleteMultipartUpload>"
)


def deleted(served: Served, key: str) -> tuple[int, bytes]:
    """DeleteObjects, of which the key is not encoded; no XML has NUL."""
    body = f"<Delete><Object><Key>{escape(unquote(key))}</Key></Object></Delete>"
    return served.request("POST", "", "?delete", body.encode())


def completed(served: Served, key: str) -> tuple[int, bytes]:
    """A whole multipart upload; the first answer that is none of success."""
    status, body = served.request("POST", key, "?uploads")
    if status != 200:
        return status, body
    upload = body.partition(b"<UploadId>")[2].partition(b"<")[0].decode()
    assert served.request("PUT", key, f"?uploadId={upload}&partNumber=1", b"changed")[0] == 200
    return served.request("POST", key, f"?uploadId={upload}", WHOLE)


def completed_elsewhere(served: Served, key: str) -> tuple[int, bytes]:
    """One that was begun for another key."""
    _, body = served.request("POST", f"{served.own}begun.parquet", "?uploads")
    upload = body.partition(b"<UploadId>")[2].partition(b"<")[0].decode()
    part = f"?uploadId={upload}&partNumber=1"
    assert served.request("PUT", f"{served.own}begun.parquet", part, b"changed")[0] == 200
    return served.request("POST", key, f"?uploadId={upload}", WHOLE)


VERBS: dict[str, Callable[[Served, str], tuple[int, bytes]]] = {
    "GET": lambda served, key: served.request("GET", key),
    "GET a part": lambda served, key: served.request("GET", key, Range="bytes=0-9"),
    "HEAD": lambda served, key: served.request("HEAD", key),
    "PUT": lambda served, key: served.request("PUT", key, body=b"changed"),
    "PUT nothing": lambda served, key: served.request("PUT", key),
    "DELETE": lambda served, key: served.request("DELETE", key),
    "DeleteObjects": deleted,
    "multipart upload": completed,
    "multipart upload of another key": completed_elsewhere,
    "CopyObject to it": lambda served, key: served.request(
        "PUT", key, **{"x-amz-copy-source": f"{BUCKET}/{served.keys['data file']}"}
    ),
    "CopyObject of it": lambda served, key: served.request(
        "PUT", f"{served.own}copy.parquet", **{"x-amz-copy-source": f"{BUCKET}/{key}"}
    ),
}
READS = frozenset(("GET", "GET a part", "HEAD"))
IS_READ = frozenset(("data file", "native file", "added file", "delete file", "scheduled file"))
"""Clients read these."""
STORED_ELSEWHERE = frozenset(("percent twice",))
"""Spellings that are another key, at which a client may upload."""


FEW = ("plain", "slash within", "slash at the end", "dot", "encoded dots", "NUL at the end", "link")
OF_FEW = ("catalog", "catalog-journal", "catalog.wal", "native file", "delete file", "outside")


@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_reaches_a_file(served, verb):
    check(served, verb, {kind: served.keys[kind] for kind in OF_FEW}, FEW)


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_no_verb_reaches_any_file_in_any_spelling(served, verb):
    check(served, verb, served.keys, SPELLINGS)


def check(served: Served, verb: str, keys: dict[str, str], spellings: Iterable[str]) -> None:
    """Each request is refused, and each file of the folder is as it was."""
    before, wrong = served.files(), []
    for kind, key in keys.items():
        if kind in IS_READ and verb in READS:
            continue
        for name in spellings:
            status, body = VERBS[verb](served, SPELLINGS[name](key))
            is_refused = status in {403, 404} or b"AccessDenied" in body or b"Malformed" in body
            if not is_refused and name not in STORED_ELSEWHERE:
                wrong.append((kind, name, status, body[-200:]))
    after = served.files()
    changed = [path for path, content in before.items() if after.get(path) != content]
    created = [path for path in after.keys() - before.keys() if "%" not in path]
    assert (wrong, changed, created) == ([], [], [])


@pytest.mark.parametrize("name", sorted(SPELLINGS.keys() - STORED_ELSEWHERE))
def test_a_spelling_reads_the_file_or_nothing(served, name):
    for kind in IS_READ:
        expected = (served.lake.data / served.keys[kind]).read_bytes()
        status, body = served.request("GET", SPELLINGS[name](served.keys[kind]))
        assert (status, body) == (200, expected) or status == 404


def test_a_listing_has_no_file_of_the_catalog(served):
    status, body = served.request("GET", "", "?list-type=2")
    assert status == 200 and served.keys["data file"].encode() in body
    assert served.lake.file.name.encode() not in body


def test_what_is_not_committed_is_uploaded_replaced_and_removed(served):
    """As before: a client repeats an upload whose answer was lost."""
    key = f"{served.own}d%3D1//new.parquet"
    path = served.lake.data / served.own / "d=1" / "new.parquet"
    for upload in (VERBS["PUT"], completed, VERBS["PUT"]):
        assert upload(served, key)[0] == 200
        assert path.read_bytes() == b"changed"
        path.write_bytes(b"another")
    assert served.request("GET", key) == (200, b"another")
    assert served.request("DELETE", key)[0] == 204 and not path.exists()
    assert served.request("DELETE", key)[0] == 204


def test_a_folder_is_marked(served):
    """PyArrow does it after each removal."""
    for folder in (served.own, f"{served.own}none/"):
        before = served.files()
        assert served.request("PUT", folder)[0] == 200
        assert served.request("DELETE", folder)[0] == 204
        assert served.request("PUT", folder, body=b"changed")[0] == 403
        assert served.files() == before


STRANGE = [
    ("POST", "?uploadId={upload}", WHOLE.decode().encode("utf-16"), 400, b"MalformedXML"),
    ("POST", "?uploadId={upload}", WHOLE.replace(b">1<", b">%s<" % (b"1" * 5000)), 400, b"Malf"),
    ("POST", "?uploadId={upload}", WHOLE.replace(b">1<", b">0<"), 400, b"MalformedXML"),
    (
        "POST",
        "?uploadId={upload}",
        WHOLE.replace(b"</Part>", b"</Part><Part><PartNumber>1</PartNumber></Part>"),
        400,
        b"InvalidPartOrder",
    ),
    ("POST", "?uploadId={upload}", b"<a>" * 100_000 + b"</a>" * 100_000, 400, b"InvalidPart"),
    (
        "POST",
        "?uploadId={upload}",
        b'<?xml version="1.0" encoding="cp037"?>' + "<!DOCTYPE a><a/>".encode("cp037"),
        400,
        b"MalformedXML",
    ),
    ("PUT", "?uploadId={upload}&partNumber=" + "1" * 5000, b"", 400, b"InvalidArgument"),
    ("PUT", "?uploadId={upload}&partNumber=%D9%A1", b"", 400, b"InvalidArgument"),
    ("PUT", "?uploadId={upload}&partNumber=0", b"", 400, b"InvalidArgument"),
]


@pytest.mark.parametrize(("method", "parameters", "body", "status", "code"), STRANGE)
def test_a_strange_request_is_refused(served, method, parameters, body, status, code):
    key = f"{served.own}parts.parquet"
    _, begun = served.request("POST", key, "?uploads")
    upload = begun.partition(b"<UploadId>")[2].partition(b"<")[0].decode()
    assert served.request("PUT", key, f"?uploadId={upload}&partNumber=1", b"x")[0] == 200
    found = served.request(method, key, parameters.format(upload=upload), body)
    assert found[0] == status and code in found[1], found


KEYS = [
    ("levels", lambda own: f"{own}{'x/' * 3000}a.parquet", 403),
    ("a long part", lambda own: f"{own}{'x' * 256}/a.parquet", 403),
    ("a long key", lambda own: f"{own}{('x' * 200 + '/') * 6}a.parquet", 403),
    ("below a file", lambda own: f"{own}there.parquet/a.parquet", 403),
    ("a folder", lambda own: f"{own}folder", 403),
    ("no UTF-8", lambda own: f"{own}%ff.parquet", 200),
]


@pytest.mark.parametrize(("key", "status"), [k[1:] for k in KEYS], ids=[k[0] for k in KEYS])
def test_a_strange_key_is_refused(served, key, status):
    for there in ("there.parquet", "folder/a.parquet"):
        assert served.request("PUT", f"{served.own}{there}", body=b"x")[0] == 200
    assert served.request("PUT", key(served.own), body=b"x")[0] == status
    assert served.request("GET", key(served.own))[0] == (200 if status == 200 else 404)
    assert served.request("DELETE", key(served.own))[0] in {204, 403}
    assert served.request("GET", "", f"?list-type=2&max-keys={'9' * 5000}")[0] == 200


# POSIX frees all locks of a process on a file as soon as it closes the file, whatever it was opened
# for.

NATIVE_WRITER = """
import sqlite3, sys, duckdb
kind, file = sys.argv[1:]
for _ in sys.stdin:
    try:
        if kind == "sqlite":
            con = sqlite3.connect(file, timeout=0, isolation_level=None)
            con.execute("BEGIN IMMEDIATE")
        else:
            con = duckdb.connect(file)
        con.close()
        print("gets in", flush=True)
    except (sqlite3.OperationalError, duckdb.IOException):
        print("is locked out", flush=True)
"""


class Locked(NamedTuple):
    """A lake whose file this process has open, to commit; `attempt` is that of another writer."""

    served: Served
    attempt: Callable[[], str]


@contextmanager
def none_uncommitted(locations: Collection[str]) -> Iterator[set[str]]:
    yield set()


@contextmanager
def locked(kind: str, folder: Path, database, catalogs: CatalogFiles | None) -> Iterator[Locked]:
    lake = Beside("lake", kind, folder / WITH_CATALOG)
    lake.folder.mkdir()
    with writing(lake) as con:
        con.execute("CREATE TABLE t (id BIGINT)")
    if catalogs is None:
        catalogs = CatalogFiles.from_paths([lake.file])
    bucket = f"s3://{BUCKET}"
    paths = UploadPaths.from_locations(
        data_path=bucket, staging_location="", virtual_location="s3://v/polynya"
    )
    proxy = S3Proxy(LocalBucket(BUCKET, folder, catalogs), paths, none_uncommitted)
    words = [sys.executable, "-c", NATIVE_WRITER, kind, str(lake.file)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with ExitStack() as stack:
        stack.callback(proxy.stop)
        process = stack.enter_context(subprocess.Popen(words, text=True, bufsize=1, **pipes))
        stack.callback(process.stdin.close)

        def attempt() -> str:
            process.stdin.write("try\n")
            return process.stdout.readline().strip()

        uri = stack.enter_context(
            loopback(lambda request: proxy.answer(request, S3Address.from_request(request)))
        )
        connection = HTTPConnection(urlsplit(uri).netloc, timeout=60)
        stack.callback(connection.close)
        mirror = Mirror(catalog_of(parse(lake.address)), "main", database, None)
        stack.enter_context(closing(mirror)).begin()
        stack.enter_context(mirror.writing())
        keys = {"catalog": f"{WITH_CATALOG}/{lake.file.name}", "data file": "none.parquet"}
        yield Locked(Served(lake, connection, keys, f"{ADDED}/"), attempt)


@pytest.mark.parametrize("kind", KINDS)
def test_no_request_lets_another_writer_in(kind, tmp_path, postgres_server):
    database = postgres_server.create_database(f"locked_{kind}")
    with locked(kind, tmp_path, database, None) as (served, attempt):
        key = served.keys["catalog"]
        assert attempt() == "is locked out"
        (tmp_path / ADDED).mkdir()
        (tmp_path / LINKED).symlink_to(served.lake.folder)
        (tmp_path / ADDED / "link").symlink_to(served.lake.file)
        (tmp_path / ADDED / "name").hardlink_to(served.lake.file)
        for spelled in (
            *(spelling(key) for spelling in SPELLINGS.values()),
            *(f"{LINKED}/{served.lake.file.name}", f"{ADDED}/link", f"{ADDED}/name"),
        ):
            for request in VERBS.values():
                request(served, spelled)
            assert attempt() == "is locked out", spelled
        assert served.request("GET", "", "?list-type=2")[0] == 200
        assert attempt() == "is locked out"


@pytest.mark.parametrize("kind", KINDS)
def test_a_request_that_opens_the_file_would_let_another_writer_in(kind, tmp_path, postgres_server):
    database = postgres_server.create_database(f"unlocked_{kind}")
    with locked(kind, tmp_path, database, CatalogFiles()) as (served, attempt):
        assert attempt() == "is locked out"
        assert served.request("GET", served.keys["catalog"])[0] == 200
        # The server closes the file after the client has the last of its bytes.
        end = time.monotonic() + 30
        while (answer := attempt()) == "is locked out" and time.monotonic() < end:
            time.sleep(0.01)
        assert answer == "gets in"
