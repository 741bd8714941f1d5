"""`publish --register`: Glue tables that name published metadata, read through PyIceberg.

moto is the stand-in for Glue. It does not compare the version of an update, as AWS does: one test
adds that. It does not check permissions; tests/contract/template compares those.
"""

import itertools
from contextlib import closing

import boto3
import pytest
from botocore.exceptions import ClientError
from polynya_local.clients import native as natives
from polynya_local.clients.canonical import difference, from_arrow
from polynya_local.clients.pyiceberg import s3_properties
from polynya_pipeline.common.errors import BadInput, Unavailable
from polynya_pipeline.common.storage import clients
from polynya_pipeline.publish import glue as glue_catalog
from polynya_pipeline.publish.job import publish
from pyiceberg.catalog.glue import GlueCatalog, _to_columns

from tests.aws.template import Stack

NUMBERS = itertools.count(1)


@pytest.fixture(autouse=True)
def aws(moto, monkeypatch):
    for service in ("S3", "GLUE"):
        monkeypatch.setenv(f"AWS_ENDPOINT_URL_{service}", moto)
    clients.cache_clear()
    glue_catalog._client.cache_clear()
    yield
    clients.cache_clear()
    glue_catalog._client.cache_clear()


@pytest.fixture
def glue():
    return boto3.client("glue")


@pytest.fixture
def database(glue):
    """The name of an empty Glue database, and of a bucket."""
    name = f"glue_{next(NUMBERS)}"
    glue.create_database(DatabaseInput={"Name": name})
    boto3.client("s3").create_bucket(Bucket=name.replace("_", "-"))
    return name


@pytest.fixture
def rows_lake(folder_lake):
    folder_lake.sql("CREATE TABLE t(i INTEGER, s VARCHAR)")
    folder_lake.sql("INSERT INTO t SELECT i, 'v' || i FROM range(100) r(i)")
    return folder_lake


def registered(lake, database: str, **options):
    schema = getattr(lake, "metadata_schema", "public")
    export = f"s3://{database.replace('_', '-')}/out"
    options = {"export": export, "environ": {}, "register": f"glue:{database}", **options}
    return publish(database=lake.database.url, metadata_schema=schema, **options)


def tables(glue, database: str) -> dict[str, dict]:
    return {one["Name"]: one for one in glue.get_tables(DatabaseName=database)["TableList"]}


def iceberg(moto: str) -> GlueCatalog:
    return GlueCatalog("glue", **{"glue.endpoint": moto}, **s3_properties(moto))


def done(report) -> dict[str, str | None]:
    return {one.name: one.registered or one.not_registered for one in report.tables}


def left_alone(report) -> str:
    """Why the only table was left alone."""
    [table] = report.tables
    assert table.registered is None and "1 left alone" in report.glue_summary
    return table.not_registered


@pytest.mark.slow("[17]")
@pytest.mark.parametrize("number", ["14", "17"])
def test_rows_read_through_glue_are_those_of_the_lake(number, lake, database, moto):
    lake = lake(number)
    report = registered(lake, database)
    assert set(done(report).values()) == {"created"}
    with closing(natives.open(lake, moto)) as native:
        for table in native.tables():
            read = iceberg(moto).load_table((database, table.name.lower()))
            types = native.columns(table.namespace, table.name)
            truth = native.canonical(table.namespace, table.name)
            assert difference(truth, from_arrow(read.scan().to_arrow(), types)) == []


def test_a_run_updates_what_has_changed(rows_lake, database, glue, moto):
    assert done(registered(rows_lake, database)) == {"main.t": "created"}
    assert done(registered(rows_lake, database)) == {"main.t": "unchanged"}
    first = tables(glue, database)["t"]["Parameters"]["metadata_location"]
    glue.update_table(
        DatabaseName=database,
        TableInput={
            **{k: tables(glue, database)["t"][k] for k in ("Name", "TableType", "Parameters")},
            "Description": "of the owner",
        },
    )
    rows_lake.sql("INSERT INTO t FROM t")
    assert done(registered(rows_lake, database)) == {"main.t": "updated"}
    found = tables(glue, database)["t"]
    assert found["Parameters"]["previous_metadata_location"] == first
    assert found["Parameters"]["metadata_location"] != first
    assert found["Description"] == "of the owner"
    assert iceberg(moto).load_table((database, "t")).scan().to_arrow().num_rows == 200


def test_the_delivery_materialize_is_registered(rows_lake, database, moto):
    bucket = database.replace("_", "-")
    environ = {"DELIVERY": "materialize", "VIRTUAL_BUCKET": bucket}
    assert done(registered(rows_lake, database, export=None, environ=environ)) == {
        "main.t": "created"
    }
    assert iceberg(moto).load_table((database, "t")).scan().to_arrow().num_rows == 100


def test_the_columns_are_those_of_pyiceberg(folder_lake, database, glue, moto):
    types = "BOOLEAN TINYINT INTEGER BIGINT FLOAT DOUBLE DECIMAL(9,2) DATE TIME TIMESTAMP"
    types += " TIMESTAMPTZ VARCHAR BLOB UUID INTEGER[] MAP(VARCHAR,INTEGER[])"
    types += " STRUCT(a_INTEGER,b_STRUCT(c_UUID[]))"
    words = [f"c{n} {word.replace('_', ' ')}" for n, word in enumerate(types.split())]
    folder_lake.sql(f"CREATE TABLE t({', '.join(words)}, gone DATE)")
    folder_lake.sql("COMMENT ON COLUMN t.c1 IS 'a comment'")
    folder_lake.sql("INSERT INTO t(c1) VALUES (1)")
    folder_lake.sql("ALTER TABLE t DROP COLUMN gone")
    folder_lake.sql("INSERT INTO t(c1) VALUES (2)")
    registered(folder_lake, database)
    expected = _to_columns(iceberg(moto).load_table((database, "t")).metadata)
    assert tables(glue, database)["t"]["StorageDescriptor"]["Columns"] == expected
    assert len(expected) == 18


def test_a_table_of_somebody_else_is_left_alone(rows_lake, database, glue):
    theirs = {"Name": "t", "TableType": "EXTERNAL_TABLE", "Parameters": {"a": "b"}}
    glue.create_table(DatabaseName=database, TableInput=theirs)
    assert "did not register" in left_alone(registered(rows_lake, database, deregister=True))
    assert tables(glue, database)["t"]["Parameters"] == {"a": "b"}
    with pytest.raises(BadInput, match=r"main\.t is not registered: .* did not register"):
        registered(rows_lake, database, tables=["main.t"])


def test_a_table_to_which_somebody_has_committed_is_left_alone(rows_lake, database, moto):
    registered(rows_lake, database)
    table = iceberg(moto).load_table((database, "t"))
    table.append(table.scan(limit=3).to_arrow())
    rows_lake.sql("INSERT INTO t FROM t")
    assert "somebody has committed" in left_alone(registered(rows_lake, database))
    rows_lake.sql("DROP TABLE t")
    assert registered(rows_lake, database, deregister=True).deregistered == []
    assert iceberg(moto).load_table((database, "t")).scan().to_arrow().num_rows == 103


def test_an_older_run_changes_nothing(rows_lake, database, glue):
    registered(rows_lake, database)
    before = tables(glue, database)["t"]
    marks = before["Parameters"] | {"polynya.snapshot-id": "99"}
    changed = {"Name": "t", "TableType": "EXTERNAL_TABLE", "Parameters": marks}
    glue.update_table(DatabaseName=database, TableInput=changed)
    rows_lake.sql("INSERT INTO t FROM t")
    assert "newer run" in left_alone(registered(rows_lake, database))
    assert tables(glue, database)["t"]["Parameters"] == marks


def test_tables_that_are_gone_stay_or_are_removed(rows_lake, database, glue):
    rows_lake.sql("CREATE SCHEMA s")
    rows_lake.sql("CREATE TABLE s.u AS FROM t")
    others = {"Name": "others", "Parameters": {"polynya.data-path": "s3://other/lake/"}}
    glue.create_table(DatabaseName=database, TableInput=others)
    registered(rows_lake, database)
    rows_lake.sql("ALTER TABLE t RENAME TO v")
    rows_lake.sql("DROP TABLE s.u")
    assert done(registered(rows_lake, database)) == {"main.v": "created"}
    assert tables(glue, database).keys() == {"t", "u", "v", "others"}
    of_main = registered(rows_lake, database, namespaces=["main"], deregister=True)
    assert of_main.deregistered == ["t"]
    assert registered(rows_lake, database, deregister=True).deregistered == ["u"]
    assert tables(glue, database).keys() == {"v", "others"}


def test_names_that_glue_cannot_tell_apart_are_left_out(rows_lake, database, glue):
    rows_lake.sql("CREATE SCHEMA s")
    rows_lake.sql('CREATE TABLE s."T" AS FROM t')
    rows_lake.sql('CREATE TABLE "a b" AS FROM t')
    rows_lake.sql('CREATE TABLE "Upper" AS FROM t')
    report = registered(rows_lake, database)
    reasons = {name: text.split(";")[0] for name, text in done(report).items()}
    two = "2 tables would have the Glue name t"
    assert reasons == {
        "main.t": two,
        "s.T": two,
        "main.a b": "Athena takes a-z, 0-9 and _ in names only",
        "main.Upper": "created",
    }
    assert tables(glue, database).keys() == {"upper"}


def test_an_update_names_the_version_that_it_replaces(rows_lake, database, glue):
    """As AWS compares it: https://docs.aws.amazon.com/glue/latest/webapi/API_UpdateTable.html"""
    registered(rows_lake, database)
    rows_lake.sql("INSERT INTO t FROM t")
    tried = []

    def compare(params, **_):
        tried.append(params["VersionId"])
        if len(tried) == 1:  # somebody is faster
            found = tables(glue, database)["t"]
            marks = found["Parameters"] | {"owner": "somebody"}
            theirs = {"Name": "t", "TableType": "EXTERNAL_TABLE", "Parameters": marks}
            glue.update_table(DatabaseName=database, TableInput=theirs)
        if params["VersionId"] != tables(glue, database)["t"]["VersionId"]:
            error = {"Error": {"Code": "ConcurrentModificationException"}}
            raise glue_catalog._client().exceptions.ConcurrentModificationException(
                error, "UpdateTable"
            )

    glue_catalog._client().meta.events.register("provide-client-params.glue.UpdateTable", compare)
    assert done(registered(rows_lake, database)) == {"main.t": "updated"}
    assert len(tried) == 2 and tried[0] != tried[1]
    assert tables(glue, database)["t"]["Parameters"]["owner"] == "somebody"


BAD_OPTIONS = [
    ({"register": "glue:no_such"}, "there is no Glue database no_such"),
    ({"register": "hive:x"}, "--register must be glue:DATABASE"),
    ({"register": "glue:"}, "--register must be glue:DATABASE"),
    ({"register": None, "deregister": True}, "--deregister needs --register"),
    ({"deregister": True, "tables": ["main.t"]}, "--deregister needs whole schemas"),
    ({"export": "/tmp/x"}, "needs an --export to s3://"),
    ({"export": None, "environ": {"VIRTUAL_BUCKET": "b"}}, "needs DELIVERY=materialize"),
]


@pytest.mark.parametrize(("options", "message"), BAD_OPTIONS)
def test_bad_options_have_an_error_that_says_what_to_do(rows_lake, database, options, message):
    with pytest.raises(BadInput, match=message):
        registered(rows_lake, database, **options)


def test_a_dry_run_registers_nothing(rows_lake, database, glue):
    assert done(registered(rows_lake, database, dry_run=True)) == {"main.t": None}
    assert tables(glue, database) == {}


def test_the_template_allows_what_is_called(rows_lake, database):
    called = set()
    events = glue_catalog._client().meta.events
    events.register("before-call.glue", lambda model, **_: called.add(f"glue:{model.name}"))
    for sql in ("INSERT INTO t FROM t", "INSERT INTO t FROM t", "DROP TABLE t"):
        registered(rows_lake, database, deregister=True)
        rows_lake.sql(sql)
    registered(rows_lake, database, deregister=True)
    role = Stack({"PipelineCode": "b/", "PublishSchedule": "s", "GlueDatabase": database})
    [allowed] = [one for one in role.statements("PipelineRole") if "glue" in str(one)]
    assert called == set(allowed["Action"])


def test_a_denied_request_ends_the_run(rows_lake, database):
    def deny(**_):
        raise ClientError({"Error": {"Code": "AccessDeniedException"}}, "CreateTable")

    glue_catalog._client().meta.events.register("provide-client-params.glue.CreateTable", deny)
    with pytest.raises(Unavailable, match="AccessDeniedException"):
        registered(rows_lake, database)
