"""What an owner finds on the pages of a lake; the numbers are native DuckLake's."""

import re
import time
from html import unescape

import pytest
from polynya_local.clients.duckdb import LAKE, connect
from polynya_local.clients.native import attach
from polynya_local.reports.snippets import FIRST_CLIENTS, Place, client, connect_blocks

from tests.pages.markup import Markup

ORDERS = "/tables/shop/orders"
HOSTILE = "/tables/%3Cscript%3Ealert%281%29%3C~2Fscript%3E/a~2Fb%20%26%20%22c%22%20~7E%252F%27"
PAGES = [
    "/",
    "/?sort=bytes",
    "/?search=ORD",
    "/?snapshot=3",
    "/changes",
    "/changes?until=3",
    ORDERS,
    f"{ORDERS}?snapshot=3",
    f"{ORDERS}?until=4",
    f"{ORDERS}/files?column=amount&sort=size",
    f"{ORDERS}/difference?from=2&to=7",
    f"{ORDERS}?scale=steps",
    f"{HOSTILE}/difference?from=0&to=12",
    f"{HOSTILE}/read",
    f"{ORDERS}/difference?from=0&to=3",
    f"{ORDERS}/iceberg",
    f"{ORDERS}/iceberg?snapshot=3",
    f"{ORDERS}/iceberg/metadata",
    "/tables/shop/customers/files",
    "/tables/shop/intervals",
    "/tables/shop/intervals/iceberg",
    "/views/shop/large",
    HOSTILE,
    f"{HOSTILE}/files",
    f"{HOSTILE}/iceberg",
]


@pytest.fixture(scope="module")
def native(owner, moto):
    """The first value of a query of native DuckLake."""
    with connect(LAKE, moto) as con:
        attach(con, owner.lake)
        yield lambda sql: con.execute(sql).fetchone()[0]


@pytest.mark.parametrize("path", PAGES)
def test_each_page_is_there_and_safe(owner, path):
    answer = owner.get(path)
    assert answer.status == 200, answer.text
    assert Markup(answer.text).faults == []
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert owner.report(path)


@pytest.mark.parametrize("path", PAGES)
def test_links_keep_the_page_that_they_are_about(owner, path):
    """The link to the JSON is the page's own address, and gives the same report."""
    [link] = [one for one in Markup(owner.get(path).text).links if "format=json" in one]
    assert owner.get(link).json.keys() == owner.report(path).keys()
    assert link.partition("?")[0] == path.partition("?")[0]


def test_rows_are_those_of_ducklake(owner, native):
    lines = {(one["namespace"], one["name"]): one for one in owner.report("/")["lines"]}
    tables = {key: one["rows"] for key, one in lines.items() if one["kind"] == "table"}
    assert tables == {
        key: native(f"FROM lake.{quoted(key[0])}.{quoted(key[1])} SELECT count(*)")
        for key in tables
    }
    assert len(tables) == 4
    assert lines["shop", "large"]["kind"] == "view"


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


@pytest.mark.parametrize("snapshot", range(1, 8))
def test_rows_in_the_past_are_those_of_ducklake(owner, native, snapshot):
    report = owner.report(f"{ORDERS}?snapshot={snapshot}")
    wanted = native(f"SELECT count(*) FROM lake.shop.orders AT (VERSION => {snapshot})")
    [shown] = [one for one in report["snapshots"] if one["snapshot_id"] == snapshot]
    line = {one["name"]: one for one in owner.report(f"/?snapshot={snapshot}")["lines"]}["orders"]
    assert [report["counts"]["rows"], shown["counts"]["rows"], line["rows"]] == [wanted] * 3


STATUSES = [
    # A default that files lack: docs/clients/ says of these clients that they read NULL.
    ("orders", "partly", "", {"Spark", "Daft", "ClickHouse", "Trino", "Flink"}),
    ("customers", "served", "", {"ClickHouse"}),
    ("intervals", "refused", "no column", set()),
]


@pytest.mark.parametrize(("name", "word", "reason", "wrong"), STATUSES)
def test_a_status_says_what_clients_get(owner, name, word, reason, wrong):
    lines = {one["name"]: one for one in owner.report("/")["lines"]}
    assert lines[name]["status"]["word"] == word
    assert reason in lines[name]["status"]["reason"]
    assert set(lines[name]["status"]["wrong"]) == wrong
    # Nobody has named clients: those that every run tests are the owner's.
    assert set(lines[name]["status"]["own_wrong"]) == wrong & {"DuckDB", "PyIceberg", "Spark"}
    text = Markup(owner.get(f"/?search=shop.{name}").text).text
    assert ("wrong in Spark" in text) == ("Spark" in wrong)
    assert ("1 client of 11 would read wrong rows" in text) == (wrong == {"ClickHouse"})


@pytest.mark.parametrize(
    ("search", "tables", "changes"),
    [
        ("ORD", {"orders"}, 5),
        ("shop.", {"customers", "intervals", "large", "orders"}, 5),
        ("amount", {"orders"}, 5),
        ("test orders", set(), 1),
        ("loader", set(), 4),
    ],
)
def test_a_search_finds_tables_columns_and_messages(owner, search, tables, changes):
    report = owner.report(f"/?search={search.replace(' ', '%20')}")
    assert {line["name"] for line in report["lines"]} == tables
    assert len(report["newest_changes"]) == changes


def test_a_search_for_a_snapshot_or_a_day_goes_there(owner):
    assert owner.get("/?search=3").headers["Location"] == "/?snapshot=3"
    assert owner.get("/?search=2100-01-01").headers["Location"] == "/?snapshot=2100-01-01"


@pytest.mark.parametrize("query", ["search=orders", "search=nothing", "namespace=shop&page=1"])
def test_a_search_leaves_the_numbers_of_the_lake(owner, query):
    report = owner.report(f"/?{query}")
    assert report["totals"] == owner.report("/")["totals"] and report["totals"]["files"] > 0
    assert report["paging"]["total"] < report["totals"]["entries"]


@pytest.mark.parametrize(("query", "warehouse"), [("", "lake"), ("?snapshot=3", "lake@3")])
def test_the_first_page_connects_clients(owner, query, warehouse):
    text = unescape(owner.get(f"/{query}").text)
    place = Place(owner.uri, warehouse, s3_endpoint_of(text), "", "")
    for name in FIRST_CLIENTS:
        (block,) = connect_blocks(client(name), place)
        assert f'"connect-{FIRST_CLIENTS.index(name) + 1}-1">{block.text}</code>' in text


def s3_endpoint_of(text: str) -> str:
    return re.search(r'"s3.endpoint": "([^"]+)"', text)[1]


RENAMED = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
CREATE TABLE lake.a(i INT);
ALTER TABLE lake.a RENAME TO b;
CREATE TABLE lake.c AS SELECT 1 AS i;
ALTER TABLE lake.b ADD COLUMN j INT;
BEGIN; ALTER TABLE lake.b RENAME TO d; INSERT INTO lake.d VALUES (2, 3); COMMIT;
CREATE VIEW lake.v AS SELECT 1 AS x;
ALTER VIEW lake.v RENAME TO w;
BEGIN; ALTER TABLE lake.d RENAME TO x; CREATE TABLE lake.d(i INT); COMMIT;
BEGIN; INSERT INTO lake.d VALUES (3); INSERT INTO lake.c VALUES (4); COMMIT;
"""
DEEDS = {
    1: ["created the table main.a"],
    2: ["renamed main.a to main.b"],
    3: ["created the table main.c", "inserted rows into main.c"],
    4: ["altered main.b"],
    5: ["renamed main.b to main.d", "inserted rows into main.d"],
    6: ["created the view main.v"],
    7: ["renamed main.v to main.w"],
    8: ["renamed main.d to main.x", "created the table main.d"],
    9: ["inserted rows into main.c", "inserted rows into main.d"],
}
HISTORIES = {
    "x": {
        1: ("create", ["created the table"]),
        2: ("alter", ["renamed it from main.a"]),
        4: ("alter", ["altered: added j int32"]),
        5: ("append", ["renamed it from main.b", "inserted rows"]),
        8: ("alter", ["renamed it from main.d"]),
    },
    "c": {
        3: ("append", ["created the table", "inserted rows"]),
        9: ("append", ["inserted rows"]),
    },
    "d": {8: ("create", ["created the table"]), 9: ("append", ["inserted rows"])},
}


@pytest.fixture(scope="module")
def renamed(lake, show):
    return show(lake.write("renamed", RENAMED))


def test_changes_tell_a_rename_from_a_new_table(renamed):
    snapshots = renamed.report("/changes")["snapshots"]
    said = {
        one["snapshot_id"]: [f"{change['words']} {change['name']}" for change in one["changes"]]
        for one in snapshots
    }
    assert {at: said[at] for at in DEEDS} == DEEDS


@pytest.mark.parametrize("name", HISTORIES)
def test_the_history_of_a_table_tells_its_beginning_and_its_names(renamed, name):
    moments = renamed.report(f"/tables/main/{name}")["snapshots"]
    assert {m["snapshot_id"]: (m["kind"], m["words"]) for m in moments} == HISTORIES[name]


def test_the_rows_of_a_change_are_a_link_away_with_what_the_snapshot_did_elsewhere(renamed):
    path = "/tables/main/d/difference?to=9"
    assert f"{path}#rows" in Markup(renamed.get("/changes").text).links
    report = renamed.report(path)
    assert (report["before"]["snapshot_id"], report["after"]["snapshot_id"]) == (8, 9)
    assert report["also_changed"] == [{"namespace": "main", "name": "c"}]
    links = Markup(renamed.get(path).text).links
    assert "/tables/main/c/difference?from=8&to=9#undo" in links


def test_columns_have_both_types_and_the_reason_of_the_hidden_one(owner):
    columns = {one["path"]: one for one in owner.report(ORDERS)["columns"]}
    types = {path: (one["type"], one["iceberg_type"]) for path, one in columns.items()}
    assert types == {
        "id": ("int64", "long"),
        "day": ("date", "date"),
        "customer": ("varchar", "string"),
        "amount": ("decimal(12,2)", "decimal(12, 2)"),
        "took": ("interval", ""),
        "priority": ("int32", "int"),
    }
    assert columns["took"]["hidden"] == "Iceberg has no interval"
    assert columns["amount"]["comment"] == "in euros"
    assert columns["priority"]["default"] == "3"


def test_the_difference_of_two_snapshots(owner, native):
    report = owner.report(f"{ORDERS}/difference?from=3&to=7")
    files = [one["rows"] for one in report["added"]["files"]]
    assert sorted(files) == [60, 80]
    assert report["removed"]["paging"]["total"] == 0
    assert [(one["kind"], one["after"]["path"]) for one in report["columns"]] == [
        ("added", "priority")
    ]
    after = native("SELECT count(*) FROM lake.shop.orders AT (VERSION => 7)")
    assert report["counts_after"]["rows"] == after
    assert [one["snapshot_id"] for one in report["snapshots"]] == [4, 5, 6, 7]
    words = [one["words"] for one in report["snapshots"]]
    assert words[-1] == ["altered: added priority int32, priority has default 3"] or (
        words[-1] == ["altered: added priority int32"]
    )


def changes_of(native, first, last):
    """How many rows of orders DuckLake's own feed has: inserted, deleted, updated."""
    kinds = ", ".join(
        f"count(*) FILTER (WHERE change_type = '{kind}')"
        for kind in ("insert", "delete", "update_postimage")
    )
    feed = f"ducklake_table_changes('lake', 'shop', 'orders', {first}, {last})"
    return native(f"SELECT [{kinds}] FROM {feed}")


def ready(owner, path):
    for _ in range(60):
        report = owner.report(path)
        if report.get("rows") is not None or report.get("is_done"):
            return report
        time.sleep(0.5)
    raise TimeoutError(path)


def test_the_rows_of_a_difference_are_those_of_the_change_feed(owner, native):
    path = f"{ORDERS}/difference?from=4&to=7"
    counts = ready(owner, path)["rows"]["counts"]
    for snapshot_id, found in counts.items():
        assert [*found.values()] == changes_of(native, snapshot_id, snapshot_id)
    assert set(counts) == {"5", "6"}
    inserted, deleted, _ = changes_of(native, 5, 7)
    text = Markup(owner.get(path).text).text
    assert f"{inserted} inserted" in text and f"{deleted} deleted" in text
    assert "Not compared with Iceberg’s entries" in text  # this page has no catalog beside it
    shown = ready(owner, f"{path}&rows=deleted")["rows"]["rows"]["rows"]
    assert [row["what"] for row in shown] == ["deleted"] * deleted
    assert Markup(owner.get(f"{path}&rows=deleted").text).faults == []


def test_each_change_has_the_number_of_its_rows(owner, native):
    found = {
        (one["snapshot_id"], change["kind"]): change["rows"]
        for one in owner.report("/changes?table=shop.orders")["snapshots"]
        for change in one["changes"]
        if change["name"] == "shop.orders" and change["rows"] is not None
    }
    assert {snapshot_id for snapshot_id, _ in found} == {2, 3, 4, 5, 6}
    for (snapshot_id, kind), rows in found.items():
        inserted, deleted, _ = changes_of(native, snapshot_id, snapshot_id)
        assert rows == (deleted if "delete" in kind else inserted)


def test_what_altered_altered_is_said(owner):
    details = {
        one["snapshot_id"]: change["details"]
        for one in owner.report("/changes")["snapshots"]
        for change in one["changes"]
        if change["kind"] == "altered_table"
    }
    assert details[7][0] == "added priority int32"


def test_the_lake_grows(owner, native):
    *_, last = owner.report("/changes")["sizes"]
    files, size = native(
        "SELECT (sum(file_count)::BIGINT, sum(file_size_bytes)::BIGINT) "
        "FROM ducklake_table_info('lake')"
    )
    assert (last["files"], last["bytes"]) == (files, size)
    assert owner.report("/changes?author=ada")["sizes"] == []


@pytest.mark.parametrize("scale", ["time", "steps"])
def test_the_history_has_a_switch_for_its_scale(owner, scale):
    text = owner.get(f"{ORDERS}?scale={scale}").text
    assert 'class="chart history"' in text
    assert ("one step for each snapshot</a>" in text) == (scale == "time")
    assert owner.get(f"{ORDERS}?scale=log").status == 400


def test_a_table_with_one_snapshot_has_no_picture(owner):
    text = owner.get("/tables/shop/intervals").text
    assert 'class="chart history"' not in text and "What" in text


def test_ids_are_no_part_of_names(owner):
    text = owner.get(ORDERS).text
    assert '<th scope="row" class="column depth-0">id</th>' in text


def test_one_client_is_shown_at_a_time(owner):
    text = owner.get(f"{ORDERS}/read?client=Spark").text
    assert text.count('<h2 id="client-') == 1 and ">Spark</h2>" in text
    assert owner.get(f"{ORDERS}/read?client=%3Cb%3E").status == 400
    assert len(owner.report(f"{ORDERS}/read")["clients"]) == 9


OF_TABLE = "(changes::VARCHAR LIKE '%orders%' OR list_contains(flatten(map_values(changes)), {}))"
FOUND = [
    ("author=ada", "author = 'ada'"),
    ("author=nobody", "false"),
    ("kind=dropped", "false"),
    ("kind=created", "changes::VARCHAR LIKE '%created%'"),
    ("kind=rows", "changes::VARCHAR SIMILAR TO '.*(inserted|deleted|inlined).*'"),
    ("table=shop.orders", OF_TABLE),
    ("table=orders&author=loader", f"{OF_TABLE} AND author = 'loader'"),
    ("table=shop.nothing", "false"),
    ("table=orders&kind=rows&until=3", f"{OF_TABLE} AND author = 'loader' AND snapshot_id <= 3"),
]


@pytest.mark.parametrize(("query", "condition"), FOUND, ids=[query for query, _ in FOUND])
def test_changes_are_found_by_author_table_and_kind(query, condition, owner, native):
    sql = "SELECT table_id::VARCHAR FROM ducklake_table_info('lake') WHERE table_name = 'orders'"
    condition = condition.format(f"'{native(sql)}'")
    expected = native(
        "SELECT list(snapshot_id ORDER BY snapshot_id DESC) FROM ducklake_snapshots('lake') "
        f"WHERE {condition}"
    )
    report = owner.report(f"/changes?{query}")
    assert [one["snapshot_id"] for one in report["snapshots"]] == (expected or [])
    assert report["authors"] == ["ada", "loader"]


def test_changes_are_found_since_a_time(owner, native):
    snapshots = "FROM ducklake_snapshots('lake')"
    time = native(
        f"SELECT strftime(snapshot_time, '%Y-%m-%dT%H:%M:%S.%f') {snapshots} WHERE snapshot_id = 4"
    )
    expected = native(
        f"SELECT list(snapshot_id ORDER BY snapshot_id DESC) {snapshots} "
        f"WHERE snapshot_time >= TIMESTAMP '{time}'"
    )
    found = owner.report(f"/changes?since={time}")["snapshots"]
    assert [one["snapshot_id"] for one in found] == expected and expected[-1] == 4
    every = owner.report("/changes")["snapshots"]
    assert owner.report(f"/changes?since={time[:10]}")["snapshots"] == every
    assert owner.report("/changes?since=9998-12-31")["snapshots"] == []


def test_the_form_of_changes_keeps_what_was_asked(owner):
    text = owner.get("/changes?author=ada&table=shop.orders&kind=rows").text
    assert 'value="shop.orders"' in text
    assert "<option selected>ada</option>" in text and "<option selected>rows</option>" in text
    assert owner.get("/changes?table=a.").status == 400


def test_a_date_or_a_time_shows_the_state_that_ducklake_has_then(owner, native):
    snapshots = "FROM ducklake_snapshots('lake') WHERE snapshot_id = {}"
    time = f"SELECT strftime(snapshot_time, '{{}}') {snapshots}"
    exact = native(time.format("%Y-%m-%dT%H:%M:%S.%f", 4))
    at = f"SELECT count(*) FROM lake.shop.orders AT (TIMESTAMP => TIMESTAMP '{exact}')"
    answer = owner.get(f"{ORDERS}/rows?snapshot={exact}%2B00:00&filter=id")
    assert answer.status == 303
    assert answer.headers["Location"] == f"{ORDERS}/rows?snapshot=4&filter=id"
    assert native(at) == native("SELECT count(*) FROM lake.shop.orders AT (VERSION => 4)")
    newest = native("SELECT max(snapshot_id) FROM ducklake_snapshots('lake')")
    day = native(time.format("%Y-%m-%d", newest))
    assert owner.get(f"/?snapshot={day}").headers["Location"] == f"/?snapshot={newest}"
    assert owner.get("/?snapshot=2001-01-01").status == 404
    assert owner.get("/?snapshot=yesterday").status == 400


@pytest.mark.parametrize(
    ("path", "title"),
    [
        ("/", "Tables"),
        ("/changes", "Changes"),
        (f"{ORDERS}/files", "shop.orders"),
        ("/views/shop/large", "shop.large"),
        ("/nothing", "404"),
    ],
)
def test_the_title_names_the_lake(path, title, owner):
    """Three lakes are three tabs of a browser. A page that is none says nothing of the lake."""
    lake = "" if title == "404" else " – shop.ducklake"
    assert f"<title>{title}{lake} – Polynya</title>" in owner.get(path).text


def test_what_a_writer_said_is_text(owner):
    text = owner.get("/changes").text
    assert "&lt;b&gt;test orders&lt;/b&gt;" in text and "<b>test orders" not in text
    said = {one["snapshot_id"]: one["message"] for one in owner.report("/changes")["snapshots"]}
    assert said[6] == '<b>test orders</b> "removed"'


def test_manifests_are_followed_to_the_files_of_ducklake(owner, native):
    manifests = owner.report(f"{ORDERS}/iceberg")["files"]["manifests"]
    [data] = [one for one in manifests if one["kind"] == "data"]
    name = data["path"].rpartition("/")[2]
    found = owner.report(f"{ORDERS}/iceberg/{name}")
    paths = {one["file"]["path"] for one in found["entries"]}
    files = owner.report(f"{ORDERS}/files")["files"]
    assert paths == {one["location"] for one in files}
    rows = sum(one["file"]["rows"] for one in found["entries"])
    deleted = sum(one["deleted"] for one in files)
    assert rows - deleted == native("SELECT count(*) FROM lake.shop.orders")


def test_bounds_that_do_not_overlap_are_seen(owner):
    overlap = owner.report(f"{ORDERS}/files?column=id")["overlap"]
    assert (overlap["files"], overlap["mean_depth"], overlap["most_depth"]) == (4, 1.0, 1)
    overlap = owner.report(f"{ORDERS}/files?column=customer")["overlap"]
    assert (overlap["files"], overlap["most_depth"]) == (4, 4)


ERRORS = [
    ("/tables/shop/none", 404, "there is no table shop.none at snapshot"),
    (f"{ORDERS}?snapshot=0", 404, "did not exist at snapshot 0"),
    (f"{ORDERS}?snapshot=999", 404, "the lake has no snapshot 999"),
    (f"{ORDERS}/files?page=9", 400, "there is no page 9"),
    (f"{ORDERS}/files?column=nope", 400, "the table has no column nope"),
    (f"{ORDERS}/iceberg/nope.avro", 400, "the manifest list has no manifest"),
    (f"{ORDERS}/difference", 400, "This address is not understood: to: Field required"),
    (f"{ORDERS}/difference?to=0", 404, "the lake has no snapshot before 0"),
    ("/changes?since=friday", 400, "since is neither a day like 2026-11-20 nor a time: friday"),
    ("/?snapshot=x", 400, "This address is not understood: snapshot"),
    ("/?snapshot=-1", 400, "This address is not understood: snapshot"),
    (f"/?snapshot={2**63}", 400, "This address is not understood: snapshot"),
    ("/?sort=evil", 400, "This address is not understood: sort"),
    ("/views/shop/none", 404, "there is no view shop.none"),
    ("/nowhere", 404, "There is no such page"),
    ("/static/..~2Fapp.py", 404, "There is no such page"),
    ("/static/page.html", 404, "There is no such page"),
    ("/tables/<img src=x>/y".replace(" ", "%20"), 404, "&lt;img src=x&gt;"),
]


@pytest.mark.parametrize(("path", "status", "sentence"), ERRORS)
def test_an_error_is_a_page_with_a_sentence(owner, path, status, sentence):
    answer = owner.get(path)
    assert (answer.status, Markup(answer.text).faults) == (status, [])
    assert sentence in answer.text
    mark = "&" if "?" in path else "?"
    assert owner.get(f"{path}{mark}format=json").json["error"]["code"] == status


def test_only_get_and_head_are_answered(owner):
    assert owner.get("/", method="POST").status == 405
    assert owner.get("/", method="HEAD").text == ""


def test_health_says_what_is_hidden_and_refused(owner):
    for _ in range(60):
        report = owner.report("/doctor")
        if report["is_done"]:
            break
        time.sleep(1)
    said = [(one["level"], one["about"], one["message"]) for one in report["findings"]]
    assert ("note", "shop.orders", "the column took is hidden: Iceberg has no interval") in said
    assert any(about == "shop.intervals" and "no column" in words for _, about, words in said)
    assert not report["is_well"] and Markup(owner.get("/doctor").text).faults == []


def test_health_is_coloured_by_the_worst_consequence_and_leads_to_the_table(owner):
    path = f"{ORDERS}/doctor"
    for _ in range(60):
        report = owner.report(path)
        if report["is_done"]:
            break
        time.sleep(1)
    order = ["wrong rows", "unreadable", "hidden", "slow", "information"]
    found = [one["consequence"] for one in report["findings"]]
    assert found == sorted(found, key=order.index) and found[0] == report["worst"] == "wrong rows"
    assert report["is_well"] and report["summary"].startswith("Some clients read wrong rows: ")
    page = owner.get(path).text
    assert 'class="notice error"' in page and 'class="notice good"' not in page
    assert 'class="status wrong-rows"' in page
    table = {"namespace": "shop", "name": "orders"}
    assert all(one["table"] == table for one in report["findings"] if one["about"] == "shop.orders")
    findings, _, _ = page.partition('<h2 id="advice">')
    assert findings.count(f'<b><a href="{ORDERS}">shop.orders</a></b>') == len(found)
