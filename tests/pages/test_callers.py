"""The page of a server that knows callers: who sees what.

The hidden half of the lake has a word in all that it is called, says and holds, and this word is
searched in every answer of every route. `twin` is the same lake without that half.
"""

import json
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import requests
from polynya_local.access.token_file import new_line
from polynya_local.page.app import VIEWS
from polynya_local.page.table_views import AGAIN_SECONDS
from polynya_local.processes.serving import Bridge, serving

WORD = "hush"
SLOW = "it took too long, and was stopped"
HIDDEN_ROWS = 7907

OPENED = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
CALL lake.set_option('data_inlining_row_limit', 0);
USE lake;
CREATE SCHEMA shop;
CREATE TABLE shop.birds AS SELECT range AS id, 'smew' AS name FROM range(5);
"""
HIDDEN = f"""
CREATE SCHEMA hush_space;
CREATE TABLE hush_space.hush_one AS SELECT 1 AS hush_column;
CREATE TABLE shop.hush_pay AS SELECT range AS hush_id, 'hush value' AS s
  FROM range({HIDDEN_ROWS});
CREATE VIEW shop.hush_view AS SELECT 'hush text' AS t;
COMMENT ON TABLE shop.hush_pay IS 'a hush comment';
ALTER TABLE shop.hush_pay ADD COLUMN hush_added INTEGER;
BEGIN;
CALL lake.set_commit_message('hush author', 'a hush message');
INSERT INTO shop.hush_pay SELECT 1, 'hush', 1;
COMMIT;
"""
VISIBLE = """
INSERT INTO shop.birds VALUES (5, 'goosander');
DELETE FROM shop.birds WHERE id = 1;
CREATE VIEW shop.bird_view AS SELECT 1 AS one;
BEGIN;
CALL lake.set_commit_message('ada', 'more birds');
INSERT INTO shop.birds VALUES (6, 'merganser');
COMMIT;
"""
BOTH = """
BEGIN;
CALL lake.set_commit_message('hush mixed author', 'a hush mixed message');
INSERT INTO shop.birds VALUES (7, 'eider');
INSERT INTO shop.hush_pay SELECT 2, 'hush', 2;
CREATE TABLE shop.hush_late AS SELECT 1 AS i;
COMMIT;
"""
ALONE = """
BEGIN;
CALL lake.set_commit_message('', '');
INSERT INTO shop.birds VALUES (7, 'eider');
COMMIT;
"""
LAST = """
INSERT INTO shop.hush_pay SELECT 3, 'hush', 3;
DROP TABLE shop.hush_late;
"""

POLICY = {
    "rules": [
        {"principals": ["token=reader"], "tables": {"shop": ["bird*"]}},
        {"principals": ["token=owner"], "tables": {"*": ["*"]}},
        {"principals": ["token=nobody"], "tables": {"nothing": ["*"]}},
    ]
}


@dataclass
class Visitor:
    """Somebody with a browser."""

    bridge: Bridge
    token: str
    session: requests.Session = field(default_factory=requests.Session)

    def sign_in(self, path: str = "/") -> requests.Response:
        return self.post("/login", {"token": self.token, "next": path})

    def post(self, path: str, form: dict[str, str], **headers: str) -> requests.Response:
        uri = self.bridge.catalog_uri + path
        return self.session.post(
            uri, data=form, headers=headers, allow_redirects=False, timeout=120
        )

    def get(self, path: str, **headers: str) -> requests.Response:
        """The answer to a page, when it is done."""
        uri = self.bridge.catalog_uri + path
        while True:
            answer = self.session.get(uri, headers=headers, allow_redirects=False, timeout=120)
            is_waiting = answer.status_code == 202 or "Retry-After" in answer.headers
            if not is_waiting or answer.status_code >= 400:
                return answer

    def report(self, path: str) -> Any:
        answer = self.get(f"{path}{'&' if '?' in path else '?'}format=json")
        assert answer.status_code == 200, (path, answer.text)
        if SLOW in answer.text:  # it is tried again after half a minute
            time.sleep(AGAIN_SECONDS)
            return self.report(path)
        return answer.json()


@dataclass(frozen=True)
class Team:
    """A server, and who may sign in."""

    bridge: Bridge
    folder: Path
    tokens: dict[str, str]

    def visitor(self, name: str, *, signed_in: bool = True) -> Visitor:
        one = Visitor(self.bridge, self.tokens[name])
        if signed_in:
            assert one.sign_in().status_code == 303
        return one

    def audit(self) -> list[dict[str, Any]]:
        lines = (self.folder / "audit.log").read_text().splitlines()
        return [json.loads(line) for line in lines]


@contextmanager
def team_of(address: str, moto: str, folder: Path, **given: Any) -> Iterator[Team]:
    folder.mkdir(exist_ok=True)
    lines = {name: new_line(name) for name in ("reader", "owner", "nobody")}
    (folder / "tokens").write_text("\n".join(line for _, line in lines.values()))
    (folder / "policy.json").write_text(json.dumps(given.pop("policy", POLICY)))
    named = {"--tokens": "tokens", "--policy": "policy.json", "--audit-log": "audit.log"}
    options = tuple(w for o, f in named.items() for w in (o, str(folder / f)))
    options += given.pop("options", ())
    with serving(address, moto, delivery="object-lambda", options=options, **given) as bridge:
        yield Team(bridge, folder, {name: token for name, (token, _) in lines.items()})


@pytest.fixture(scope="module")
def team(lake, moto, tmp_path_factory) -> Iterator[Team]:
    made = lake.write("callers_page", OPENED + HIDDEN + VISIBLE + BOTH + LAST)
    folder = tmp_path_factory.mktemp("callers_page")
    with team_of(made.database.url, moto, folder, metadata_schema=made.metadata_schema) as found:
        yield found


@pytest.fixture(scope="module")
def twin(lake, moto, tmp_path_factory) -> Iterator[Visitor]:
    """The owner of a lake that never had the hidden half."""
    made = lake.write("callers_twin", OPENED + VISIBLE + ALONE)
    folder = tmp_path_factory.mktemp("callers_twin")
    with team_of(made.database.url, moto, folder, metadata_schema=made.metadata_schema) as found:
        yield found.visitor("owner")


@pytest.fixture(scope="module")
def reader(team) -> Visitor:
    return team.visitor("reader")


@pytest.fixture(scope="module")
def owner(team) -> Visitor:
    return team.visitor("owner")


# What a visitor sees

BIRDS, PAY = "/tables/shop/birds", "/tables/shop/hush_pay"
OF_A_TABLE = {
    "": ("", "?snapshot={hidden_snapshot}", "?until={hidden_snapshot}", "?snapshot={mixed}"),
    "/files": ("", "?column=hush_id", "?column=id"),
    "/difference": ("?to={mixed}", "?to={hidden_snapshot}", "?from=2&to={mixed}"),
    "/rows": (
        "",
        "?column=hush_id&operator=%3D&value=1",
        "?column=id&operator=%3D&value=x",
        "?download=csv",
    ),
    "/profile": ("", "?read=1", "?stop=1"),
    "/read": ("",),
    "/iceberg": ("",),
    "/iceberg/metadata": ("",),
    "/iceberg/{manifest}": ("",),
    "/doctor": ("?check=again", ""),
}
QUERIES = (
    "SELECT count(*) AS n, sum(id) FROM shop.birds",
    "SELECT * FROM shop.hush_pay",
    "SELECT * FROM shop.hush_pa",
    "SELECT * FROM hush_space.hush_one",
    "SELECT hush_id FROM shop.birds",
    "SHOW ALL TABLES",
    "SELECT * FROM information_schema.tables",
    "DESCRIBE shop.hush_pay",
)
OF_THE_LAKE = {
    "/": (
        "",
        "?search=hush",
        "?search=se",
        "?search={hidden_snapshot}",
        "?snapshot={hidden_snapshot}",
        "?snapshot={mixed}",
        "?snapshot=2030-01-01",
        "?namespace=hush_space",
        "?sort=bytes",
        "?sort=changed",
    ),
    "/changes": (
        "",
        "?table=hush_pay",
        "?table=shop.hush_pay",
        "?author=hush+author",
        "?author=hush+mixed+author",
        "?kind=created",
        "?kind=dropped",
        "?since=2020-01-01",
        "?until={hidden_snapshot}",
    ),
    "/doctor": ("?check=again", "", "?check=all", "?stop=1"),
    "/sql": ("", *(f"?query={requests.utils.quote(query)}" for query in QUERIES)),
    "/views/{namespace}/{name}": ("",),
    **{f"/tables/{{namespace}}/{{name}}{page}": queries for page, queries in OF_A_TABLE.items()},
}
"""Queries of each route; a route that is not here fails the first test."""

NAMES = {
    "/tables": ("birds", "hush_pay", "hush_late"),
    "/views": ("bird_view", "hush_view"),
}


@dataclass(frozen=True)
class Places:
    """What an owner knows and a reader may guess."""

    hidden_snapshot: int
    mixed: int
    manifests: tuple[str, ...]


@pytest.fixture(scope="module")
def places(owner) -> Places:
    said = {s["message"]: s["snapshot_id"] for s in owner.report("/changes")["snapshots"]}
    manifests = [
        entry["path"].rpartition("/")[2]
        for table in (BIRDS, PAY)
        for entry in owner.report(f"{table}/iceberg")["files"]["manifests"]
    ]
    return Places(said["a hush message"], said["a hush mixed message"], tuple(manifests))


def urls(route: str, places: Places) -> Iterator[str]:
    """The addresses of a route, of visible and of hidden things."""
    names = next((n for start, n in NAMES.items() if route.startswith(f"{start}/")), ("",))
    for query in OF_THE_LAKE[route]:
        for name in names:
            for manifest in places.manifests if "{manifest}" in route else ("",):
                path = route.format(namespace="shop", name=name, manifest=manifest)
                yield path + query.format(
                    hidden_snapshot=places.hidden_snapshot, mixed=places.mixed
                )


def test_no_route_of_the_page_is_left_out():
    routes = {route.path for module in VIEWS for route in module.router.routes}
    assert routes == set(OF_THE_LAKE)


def said_by_asking(url: str) -> str:
    """What an answer repeats of the question."""
    return requests.utils.unquote(url.replace("+", " "))


def without_the_question(text: str, url: str) -> str:
    """An answer without the words that a visitor has sent, which a page shows again."""
    for part in sorted(set(re.split(r"[/?&=\s.]+", said_by_asking(url))), key=len, reverse=True):
        if WORD in part:
            text = re.sub(rf"(?<![a-z_]){re.escape(part)}(?![a-z_])", "", text)
    return text


def asked(url: str, format: str) -> str:
    return f"{url}{'&' if '?' in url else '?'}format={format}"


@pytest.mark.parametrize("route", OF_THE_LAKE)
def test_nothing_of_what_is_hidden_is_in_any_answer(reader, owner, places, route):
    seen_by_owner = ""
    for url in urls(route, places):
        answer = reader.get(asked(url, "json"))
        assert answer.status_code < 500, (url, answer.text)
        text = without_the_question(answer.text, url)
        assert WORD not in text, (url, text[text.index(WORD) - 200 :][:400])
        assert str(HIDDEN_ROWS) not in text, url
        if WORD not in seen_by_owner:
            seen_by_owner += without_the_question(owner.get(asked(url, "json")).text, url)
    # Otherwise the word would not say anything.
    assert WORD in seen_by_owner or route == "/doctor"


@pytest.mark.slow
@pytest.mark.parametrize("route", OF_THE_LAKE)
def test_nothing_of_what_is_hidden_is_on_any_page(reader, places, route):
    for url in urls(route, places):
        answer = reader.get(url)
        assert answer.status_code < 500, (url, answer.text)
        assert WORD not in without_the_question(answer.text, url), url


@pytest.mark.parametrize("format", ["html", "json"])
def test_a_hidden_table_is_answered_as_one_that_does_not_exist(reader, places, format):
    for route in OF_THE_LAKE:
        start = next((start for start in NAMES if route.startswith(f"{start}/")), None)
        if start is None:
            continue
        hidden = NAMES[start][1]
        missing = f"never_{hidden[5:]}"
        for query in OF_THE_LAKE[route]:
            numbers = {"hidden_snapshot": places.hidden_snapshot, "mixed": places.mixed}
            answers = []
            for name in (hidden, missing):
                path = route.format(namespace="shop", name=name, manifest=places.manifests[-1])
                answer = reader.get(asked(path + query.format(**numbers), format))
                own = {"date", "content-length", "x-request-id"}
                headers = {k: v for k, v in answer.headers.items() if k not in own}
                text = answer.text.replace(name, "NAME").replace("never_", "hush_")
                answers.append((answer.status_code, headers, text))
            assert answers[0] == answers[1] and answers[0][0] in (400, 404), (route, query)


def like_the_twin(report: Any) -> Any:
    """A report without what differs between any two lakes: ids, times, places."""
    if isinstance(report, list):
        return [like_the_twin(one) for one in report]
    if not isinstance(report, dict):
        return report
    left_out = OF_ANY_LAKE | (OF_CHANGES if "words" in report else set())
    return {key: like_the_twin(value) for key, value in report.items() if key not in left_out}


OF_ANY_LAKE = {
    *("snapshot_id", "newest", "changed_at", "time", "changed", "object_id", "data_path"),
    *("changes_made", "uuid", "table_id", "snapshot", "catalog_uri", "s3_endpoint"),
}
# How many rows a change has is left out where counting takes too long.
OF_CHANGES = {"rows"}


def test_sums_changes_and_names_are_those_of_a_lake_without_the_hidden_half(reader, twin):
    """Also of the growth, and of the snapshots: only their numbers have gaps."""
    found, expected = reader.report("/"), twin.report("/")
    for report in (found, expected):
        # The picture has a point for the oldest and the newest snapshot of each lake.
        report["sizes"] = [[s["rows"], s["files"], s["bytes"]] for s in report["sizes"]]
        report["sizes"] = [s for i, s in enumerate(report["sizes"]) if s not in report["sizes"][:i]]
        report["namespaces"] = [n for n in report["namespaces"] if n["name"] != "main"]
        report["newest_changes"] = [s for s in report["newest_changes"] if s["changes"]][:4]
    assert like_the_twin(found) == like_the_twin(expected)
    changes = [
        [s for s in one.report("/changes")["snapshots"] if s["changes"]] for one in (reader, twin)
    ]
    assert like_the_twin(changes[0]) == [
        s for s in like_the_twin(changes[1]) if s["changes"][0]["name"] != "main"
    ]
    assert reader.report("/changes")["authors"] == ["ada"]


def test_when_others_have_committed_is_not_said(reader, owner):
    """Only the number of the newest snapshot, which `/health` gives anybody."""
    newest = owner.report("/changes")["snapshots"][0]
    seen = reader.report("/changes")["snapshots"]
    assert seen[0]["snapshot_id"] == newest["snapshot_id"] and seen[0]["changes"] == []
    assert seen[0]["time"] == seen[1]["time"] < newest["time"]


def test_rows_sql_and_files_are_those_that_the_caller_may_read(reader, owner):
    query = requests.utils.quote("SELECT count(*) AS n, max(name) AS m FROM shop.birds")
    answer = reader.report(f"/sql?query={query}")["answer"]
    assert answer["notes"] == {}
    [[n, m]] = answer["rows"]["rows"]
    assert (n["text"], m["text"]) == ("7", "smew")
    shown = reader.report("/sql?query=SHOW+ALL+TABLES")["answer"]["rows"]["rows"]
    assert [row[2]["text"] for row in shown] == ["birds"]
    answer = reader.report(f"{BIRDS}/rows")
    assert answer["agree"] is True and answer["answer"]["iceberg"]["rows"] == 7
    filtered = reader.report(f"{BIRDS}/rows?column=id&operator=%E2%89%A5&value=6")["answer"]
    assert filtered["planned"]["files"] == 2 and filtered["iceberg"]["rows"] == 2
    profile = reader.report(f"{BIRDS}/profile?read=1")["answer"]
    assert profile["rows"] == 7
    csv = reader.get(f"{BIRDS}/rows?download=csv&sort=id")
    assert csv.text.splitlines()[:2] == ["id,name", "0,smew"]
    of_owner = owner.report(f"/sql?query={requests.utils.quote(QUERIES[1])}")["answer"]
    assert of_owner["rows"]["has_more"] is True


def test_the_health_of_the_lake_is_for_those_who_see_all(reader, owner):
    assert reader.get("/doctor").status_code == 403
    assert ">Health</a>" not in reader.get("/").text and ">Health</a>" in owner.get("/").text
    owner.get("/doctor?check=again")  # another test may have stopped it
    assert len(checked(owner, "/doctor")["tables"]) == 3
    report = checked(reader, f"{BIRDS}/doctor")
    assert [one["table"]["name"] for one in report["tables"]] == ["birds"]


def checked(visitor: Visitor, path: str) -> Any:
    """A report of health, when it is done."""
    while not (report := visitor.report(path))["is_done"]:
        time.sleep(0.2)
    return report


def test_who_has_no_rights_sees_an_empty_lake(team):
    nobody = team.visitor("nobody")
    report = nobody.report("/")
    assert (report["tables"], report["views"], report["namespaces"]) == (0, 0, [])
    assert report["totals"]["files"] == 0 and report["lines"] == []
    assert nobody.report("/changes")["authors"] == []
    assert nobody.get(BIRDS).status_code == 404


def test_what_one_caller_has_found_is_not_given_to_another(owner, reader):
    """Results are kept by what was asked: the same question of two callers has two answers."""
    query = "/sql?query=" + requests.utils.quote("SELECT count(*) AS n FROM shop.hush_pay")
    assert owner.report(query)["answer"]["rows"]["rows"][0][0]["text"] == str(HIDDEN_ROWS + 3)
    assert "rows" in reader.report(query)["answer"]["notes"]


# Who is let in; `tests/unit/local/access/test_login.py` has the thieves


def test_a_visitor_signs_in_and_out(team):
    visitor = team.visitor("reader", signed_in=False)
    answer = visitor.get(f"{BIRDS}/rows?first=100")
    assert answer.status_code == 303
    form = visitor.get(answer.headers["Location"])
    assert 'name="next" value="/tables/shop/birds/rows?first=100"' in form.text
    assert visitor.get("/static/page.css").status_code == 200
    answer = visitor.sign_in(f"{BIRDS}/rows?first=100")
    assert answer.headers["Location"] == f"{BIRDS}/rows?first=100"
    page = visitor.get("/")
    assert "Sign out" in page.text and page.headers["Cache-Control"] == "no-store"
    assert visitor.post("/logout", {}).status_code == 303
    assert visitor.get("/").status_code == 303
    texts = (team.folder / "audit.log").read_text()
    assert not any(token in texts for token in team.tokens.values()) and "session=" not in texts
    lines = [(line["operation"], line.get("who"), line["status"]) for line in team.audit()]
    assert ("login", "token=reader", 303) in lines and ("lake", "token=reader", 200) in lines


def test_the_page_of_another_site_signs_nobody_in_or_out(team, reader):
    for headers in (
        {"Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "null", "Sec-Fetch-Site": "same-site"},
        {"Host": "evil.example"},
    ):
        stranger = team.visitor("owner", signed_in=False)
        form = {"token": stranger.token, "next": "/"}
        assert stranger.post("/login", form, **headers).status_code == 421
        assert not stranger.session.cookies
        assert reader.post("/logout", {}, **headers).status_code == 421
    assert reader.get("/").status_code == 200


@pytest.mark.parametrize("path", ["/login", "/", "/logout/", "/login/callback"])
def test_nothing_else_is_posted(reader, path):
    assert reader.post(path, {"x": "y"}).status_code in (400, 401, 404, 405)


def test_without_a_page_nobody_is_asked_to_sign_in(lake, moto, tmp_path):
    made = lake("26")
    with team_of(
        made.database.url, moto, tmp_path, metadata_schema=made.metadata_schema, page=False
    ) as team:
        visitor = team.visitor("owner", signed_in=False)
        assert team.bridge.page is None
        for path in ("/", "/login", "/static/page.css", "/login/begin"):
            assert visitor.get(path).status_code == 401


# A change of the policy, and several lakes


@pytest.mark.slow
def test_a_change_of_the_policy_holds_for_sessions(lake, moto, tmp_path):
    made = lake.write("callers_policy", OPENED + HIDDEN)
    with team_of(made.database.url, moto, tmp_path, metadata_schema=made.metadata_schema) as team:
        reader = team.visitor("reader")
        assert reader.get(BIRDS).status_code == 200 and reader.get(PAY).status_code == 404
        policy = json.dumps(POLICY).replace("bird*", "hush_*")
        (team.folder / "policy.json").write_text(policy)
        until = time.monotonic() + 75  # it is read again every minute
        while reader.get(BIRDS).status_code != 404:
            assert time.monotonic() < until
            time.sleep(1)
        assert reader.get(PAY).status_code == 200


def test_a_lake_without_rights_is_not_in_the_list(lake, moto, tmp_path):
    lakes = {name: lake.write(f"callers_{name}", OPENED) for name in ("open", "hush")}
    tables = "\n".join(
        f"[{name}]\ndatabase_url = {json.dumps(made.database.url)}\n"
        f"metadata_schema = {json.dumps(made.metadata_schema)}\n"
        for name, made in lakes.items()
    )
    broken = '[hush_broken]\ndatabase_url = "postgresql://u@127.0.0.1:1/hush"\n'
    (tmp_path / "lakes.toml").write_text(tables + broken)
    every = {"tables": {"*": ["*"]}}
    rules = [
        {"principals": ["token=reader"], "lakes": ["open"], **every},
        {"principals": ["token=owner"], "lakes": ["*"], **every},
    ]
    options = ("--lakes", str(tmp_path / "lakes.toml"))
    with team_of(None, moto, tmp_path, options=options, policy={"rules": rules}) as team:
        reader, owner = team.visitor("reader"), team.visitor("owner")
        assert [one["name"] for one in reader.report("/")["lakes"]] == ["open"]
        assert WORD not in reader.get("/").text and WORD not in reader.get("/metrics").text
        assert [one["name"] for one in owner.report("/")["lakes"]] == ["open", "hush"]
        assert "hush_broken" in owner.report("/")["not_served"]
        assert reader.get(f"/lakes/open{BIRDS}").status_code == 200
        assert reader.report("/lakes/open/")["tables"] == 1
        for path in ("", BIRDS, "/doctor", "/sql", "/changes", "/x"):
            hidden, missing = (reader.get(f"/lakes/{name}{path}") for name in ("hush", "none"))
            assert (hidden.status_code, hidden.text) == (missing.status_code, missing.text)
            assert hidden.status_code == 404
        query = requests.utils.quote("SELECT count(*) AS n FROM shop.birds")
        answer = reader.report(f"/lakes/open/sql?query={query}")["answer"]
        assert answer["rows"]["rows"][0][0]["text"] == "5"
