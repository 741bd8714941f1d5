"""What the local commands and the jobs say of a lake with schemas within schemas.

The page, `doctor`, `inspect`, `verify` and `publish`: each table of the same name is one of its
own, under all levels of its name. The truth are the rows that native DuckLake reads in the flat
lake, before its schemas are put into each other.
"""

import itertools
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from urllib.parse import quote

import boto3
import pytest
from polynya.runtime.namespaces import Namespace, dotted
from polynya.storage.aws import AwsSettings
from polynya_local.cli import app
from polynya_local.clients import native
from polynya_local.clients.native import Lake
from polynya_local.clients.pyiceberg import s3_properties
from polynya_local.page.links import table_path
from polynya_local.reports import opened_table, snippets
from polynya_local.reports.preview import Endpoints, IcebergDuckDB, NoName, Question
from polynya_local.reports.snippets import Place
from polynya_pipeline.common.errors import BadInput
from polynya_pipeline.common.storage import clients
from polynya_pipeline.publish import glue as glue_catalog
from polynya_pipeline.publish.job import publish
from polynya_pipeline.verify.job import verify
from pyiceberg.table import StaticTable
from typer.testing import CliRunner

from tests.pages.conftest import Page, showing
from tests.pages.markup import Markup
from tests.support.catalog_versions import catalog_of, to_1_1
from tests.support.nested_schemas import FLAT, NESTED, nest, script
from tests.support.servers.in_process import bridge as bridged

EUROPE = ("sales", "europe")
NUMBERS = itertools.count(1)


@dataclass(frozen=True)
class Case:
    """The lake with nested schemas, and the rows that its tables had in the flat one."""

    lake: Lake
    rows: dict[str, int]
    """Of each table, by its full name."""


@pytest.fixture(scope="module")
def case(lake, moto) -> Case:
    made = lake.write("nested_reports", script())
    with closing(native.Native(made, moto)) as reader:
        rows = {
            dotted(*namespace, "t"): reader.rows(flat, "t").num_rows
            for namespace, flat in FLAT.items()
        }
    to_1_1(made)
    nest(made, NESTED)
    con = catalog_of(made)
    con.run(
        "UPDATE ducklake_snapshot_changes SET changes_made = "
        """replace(changes_made, '"in_sales"."t"', '"sales"."europe"."t"')"""
    )
    con.close()
    return Case(made, rows)


@pytest.fixture(autouse=True)
def aws(moto, monkeypatch):
    for service in ("S3", "GLUE"):
        monkeypatch.setenv(f"AWS_ENDPOINT_URL_{service}", moto)
    clients.cache_clear()
    glue_catalog._client.cache_clear()
    yield
    clients.cache_clear()
    glue_catalog._client.cache_clear()


@pytest.fixture(scope="module")
def page(case, moto) -> Iterator[Page]:
    with showing(case.lake, moto) as found:
        yield found


def full_names(lines) -> list[str]:
    return [f"{one['namespace']}.{dotted(one['name'])}" for one in lines]


def test_the_list_has_each_table_under_all_levels(case, page, monkeypatch):
    # On a slow machine the page would show some tables as `unknown`.
    monkeypatch.setattr(opened_table, "CPU_SECONDS", 60)
    report = page.report("/")
    rows = {
        name: line["rows"]
        for name, line in zip(full_names(report["lines"]), report["lines"], strict=True)
        if line["kind"] == "table"
    }
    assert rows == case.rows
    assert (report["tables"], report["views"]) == (len(FLAT), len(FLAT))
    assert {one["name"]: (one["tables"], one["views"]) for one in report["namespaces"]} == {
        dotted(*namespace): (1, 1) for namespace in FLAT
    }
    assert {one["status"]["word"] for one in report["lines"]} == {"served"}


# What is searched, and the namespaces that have something.
SEARCHES = [
    ("namespace=sales.europe", [EUROPE]),
    ("namespace=sales", [("sales",)]),
    ("namespace=europe", [("europe",)]),
    ('namespace="a.b"', [("a.b",)]),
    ("namespace=a.b", [("a", "b")]),
    ("namespace=north", []),
    ("search=sales.europe", [EUROPE, (*EUROPE, "north")]),
    ("search=Europe.t", [EUROPE, ("europe",)]),
]


@pytest.mark.parametrize(("query", "namespaces"), SEARCHES)
def test_a_search_is_for_names_of_all_levels(page, query, namespaces):
    lines = page.report(f"/?{quote(query, safe='=')}")["lines"]
    tables = [one["namespace"] for one in lines if one["kind"] == "table"]
    assert sorted(tables) == sorted(dotted(*namespace) for namespace in namespaces)


def test_every_link_of_the_list_leads_to_its_own_table(case, page):
    """All pages of each table; none is that of a table of the same name on another level."""
    links = {link for link in Markup(page.get("/").text).links if link.startswith("/tables/")}
    paths = {table_path(dotted(*namespace), "t"): namespace for namespace in FLAT}
    assert {link.removesuffix("/read") for link in links} >= set(paths)
    ids = set()
    for path, namespace in paths.items():
        report = page.report(path)
        ids.add(report["head"]["table_id"])
        assert report["head"]["namespace"] == dotted(*namespace)
        assert report["counts"]["rows"] == case.rows[dotted(*namespace, "t")]
        for part in ("", "/files", "/iceberg", "/iceberg/metadata", "/read"):
            answer = page.get(f"{path}{part}")
            found = Markup(answer.text)
            assert (answer.status, found.faults) == (200, []), path
            assert f"{dotted(*namespace)}.t" in found.text
            assert all(link.startswith(path) for link in found.links if link.startswith("/tables/"))
        view = page.report(table_path(dotted(*namespace), "v", "view"))
        assert view["head"]["namespace"] == dotted(*namespace)
    assert len(ids) == len(FLAT)


def test_the_list_links_to_every_table(page):
    """Of the links on the pages of the lake each is there."""
    paths = {
        link
        for start in ("/", "/changes", "/?namespace=sales.europe")
        for link in Markup(page.get(start).text).links
        if link.startswith(("/tables/", "/views/")) and "format=json" not in link
    }
    for path in paths:
        answer = page.get(path.partition("#")[0])
        assert (answer.status, Markup(answer.text).faults) == (200, []), path


# The segment of a path, and the namespace that it is.
ADDRESSES = [
    ("sales~.europe", EUROPE),
    ("sales~.north", None),
    ("north", None),
    ("a.b", ("a.b",)),
    ("a~.b", ("a", "b")),
    ("sales.europe", None),
]


@pytest.mark.parametrize(("segment", "namespace"), ADDRESSES)
def test_an_address_means_one_namespace(page, segment, namespace):
    for path in (f"/tables/{segment}/t", f"/views/{segment}/v", f"/tables/{segment}/t/doctor"):
        answer = page.get(f"{path}?format=json")
        assert answer.status in ((200, 202) if namespace else (404,)), path
        if namespace:
            assert answer.json["head"]["namespace"] == dotted(*namespace)


def test_changes_name_all_levels(case, page):
    changes = [change for one in page.report("/changes")["snapshots"] for change in one["changes"]]
    created = [change for change in changes if change["words"] == "created the table"]
    [europe] = [change for change in created if change["name"] == "sales.europe.t"]
    assert (europe["namespace"], europe["table"]) == ("sales.europe", "t")
    changed = {d["name"] for d in changes if d["object_kind"] == "table" and d["object_id"]}
    assert changed == set(case.rows)


SNIPPETS = {
    "DuckDB": {EUROPE: 'ice."sales.europe"."t"', ("a.b",): 'ice."a.b"."t"'},
    "PyIceberg": {
        EUROPE: 'load_table(("sales", "europe", "t"))',
        ("a.b",): 'load_table(("a.b", "t"))',
    },
    "Spark": {EUROPE: "ice.`sales`.`europe`.`t`", ("a.b",): "ice.`a.b`.`t`"},
    "Trino": {EUROPE: 'ice."sales.europe"."t"'},
    "ClickHouse": {EUROPE: "ice.`sales.europe.t`"},
}


@pytest.mark.parametrize("name", SNIPPETS)
def test_snippets_name_the_levels_as_their_client_does(name):
    for namespace, text in SNIPPETS[name].items():
        place = Place("http://c", "lake", "http://s3", dotted(*namespace), "t")
        assert text in snippets.blocks(snippets.client(name), place)[-1].text


def test_a_preview_reads_the_table_of_its_namespace(case, moto):
    with bridged(case.lake, moto) as served:
        found = served.catalog_uri, served.warehouse, served.s3_endpoint
        reader = IcebergDuckDB(Endpoints(*found, case.lake.database.url, "public", AwsSettings()))
        snapshot = catalog_of(case.lake).run("SELECT max(snapshot_id) FROM ducklake_snapshot")[0][0]
        for namespace in FLAT:
            question = Question(namespace, "t", snapshot, (), frozenset(), 0)
            if namespace == ("a", 'q"uo.te'):
                with pytest.raises(NoName), reader.attached(question):
                    pass
                continue
            with reader.attached(question) as source:
                [[rows]] = reader.con.execute(f"SELECT count(*) FROM {source}").fetchall()
            assert rows == case.rows[dotted(*namespace, "t")], namespace
        reader.con.close()


def run(command: str, case: Case, moto: str, *arguments: str, code: int = 0) -> dict:
    where = ["--database", case.lake.database.url, "--metadata-schema", case.lake.metadata_schema]
    where += ["--s3-endpoint", moto, "--json"]
    answer = CliRunner().invoke(app, [command, *where, *arguments])
    assert answer.exit_code == code, answer.output
    return json.loads(answer.stdout) if code == 0 else {"error": answer.output}


def test_doctor_counts_each_table(case, moto):
    document = run("doctor", case, moto)
    found = {one["name"]: one["counts"][-1] for one in document["tables"]}
    assert {name: count["iceberg"] for name, count in found.items()} == case.rows
    assert all(count["same"] for count in found.values())
    faults = {one["name"]: one["client_faults"] for one in document["tables"]}
    with_duckdb = [
        name for name, some in faults.items() if "DuckDB" in {one["client"] for one in some}
    ]
    assert with_duckdb == ['"a.b".t', 'a."q""uo.te".t']
    assert document["well"]


INSPECTED: list[tuple[str, Namespace]] = [
    ("sales.europe.t", EUROPE),
    ("europe.t", ("europe",)),
    ('"a.b".t', ("a.b",)),
    ("a.b.t", ("a", "b")),
    ('a."q""uo.te".t', ("a", 'q"uo.te')),
]


@pytest.mark.parametrize(("name", "namespace"), INSPECTED)
def test_inspect_takes_all_levels(case, moto, name, namespace):
    document = run("inspect", case, moto, name)
    assert document["name"] == dotted(*namespace, "t")
    assert document["snapshots"][-1]["rows"] == case.rows[document["name"]]


def test_inspect_says_which_tables_have_a_name(case, moto):
    error = run("inspect", case, moto, "t", code=1)["error"]
    assert "several tables are called t" in error and "sales.europe.t" in error


def test_verify_reads_every_table(case, moto):
    with bridged(case.lake, moto) as served:
        report = verify(
            database=case.lake.database.url,
            metadata_schema=case.lake.metadata_schema,
            levels=("catalog", "storage", "metadata"),
            catalog_uri=served.catalog_uri,
            bridge_s3_endpoint=served.s3_endpoint,
            warehouse=served.warehouse,
            footers=True,
        )
    assert (report.findings, report.tables) == ([], len(FLAT))


def test_verify_takes_one_table(case):
    address = {"database": case.lake.database.url, "metadata_schema": case.lake.metadata_schema}
    assert verify(table="sales.europe.t", **address).tables == 1
    with pytest.raises(BadInput, match=r"no table sales\.north\.t"):
        verify(table="sales.north.t", **address)


def test_verify_finds_a_schema_in_none(case):
    """Such a schema counts as dropped, and its tables with it."""
    address = {"database": case.lake.database.url, "metadata_schema": case.lake.metadata_schema}
    con = catalog_of(case.lake)
    where = "WHERE schema_name = 'north'"
    [[parent_id]] = con.run(f"SELECT parent_schema_id FROM ducklake_schema {where}")
    con.run(f"UPDATE ducklake_schema SET parent_schema_id = 9999 {where}")
    try:
        report = verify(levels=["catalog"], **address)
    finally:
        con.run(f"UPDATE ducklake_schema SET parent_schema_id = :id {where}", id=parent_id)
        con.close()
    [finding] = report.findings
    assert finding.message == "the table t is in a schema that does not exist"


def published(case: Case, export: str, **options):
    address = {"database": case.lake.database.url, "metadata_schema": case.lake.metadata_schema}
    return publish(**address, export=export, environ={}, **options)


def test_an_export_has_a_folder_for_each_table(case, moto, tmp_path):
    report = published(case, str(tmp_path))
    locations = {one.name: one.metadata_location for one in report.tables}
    rows = {
        name: StaticTable.from_metadata(location, s3_properties(moto)).scan().to_arrow().num_rows
        for name, location in locations.items()
    }
    assert rows == case.rows


SELECTED = [
    ({"tables": ["sales.europe.t"]}, [EUROPE]),
    ({"namespaces": ["sales"]}, [("sales",)]),
    ({"namespaces": ["sales.europe", '"a.b"']}, [EUROPE, ("a.b",)]),
    ({"namespaces": ["a.b"]}, [("a", "b")]),
]


@pytest.mark.parametrize(("options", "namespaces"), SELECTED)
def test_publish_takes_all_levels(case, tmp_path, options, namespaces):
    report = published(case, str(tmp_path), **options, dry_run=True)
    assert [one.name for one in report.tables] == [dotted(*one, "t") for one in namespaces]


def test_publish_says_which_namespace_is_missing(case, tmp_path):
    with pytest.raises(BadInput, match=r"no namespace north$"):
        published(case, str(tmp_path), namespaces=["sales", "north"])


@pytest.fixture
def database():
    """The name of an empty Glue database, and of a bucket."""
    name = f"nested_{next(NUMBERS)}"
    boto3.client("glue").create_database(DatabaseInput={"Name": name})
    boto3.client("s3").create_bucket(Bucket=name.replace("_", "-"))
    return name


def test_glue_has_one_level(case, database):
    """A Glue table is one of a namespace of the lake, and no other takes its place."""
    export = f"s3://{database.replace('_', '-')}/out"
    register = {"register": f"glue:{database}"}

    def results(*namespaces: str, **options) -> Counter[str | None]:
        report = published(case, export, namespaces=namespaces, **register, **options)
        return Counter(one.registered or one.not_registered for one in report.tables)

    [(reason, number)] = results().items()
    assert number == len(FLAT)
    assert reason == (
        f"{len(FLAT)} tables would have the Glue name t; publish each schema into a Glue "
        "database of its own, with --namespace"
    )
    assert results("a.b") == {"created": 1}
    assert results("a.b") == {"unchanged": 1}
    for other in ('"a.b"', "a", "sales.europe"):
        [reason] = results(other)
        assert reason == "Glue has a table t that this lake's schema did not register"
    assert results("a.b", deregister=True) == {"unchanged": 1}
