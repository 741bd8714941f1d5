"""Writes the examples of docs/reference/page-json.md from a real lake: `make docs-examples`."""

import json
import os
import tempfile
import time
from contextlib import chdir
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import duckdb
from polynya_local.clients.duckdb import extension_path
from polynya_local.processes.serving import serving

from .reference import EXAMPLES, REPORTS
from .reference import main as write_pages

LAKE = """
ATTACH 'ducklake:birds.ducklake' AS birds (DATA_PATH 'birds', DATA_INLINING_ROW_LIMIT 10);
USE birds;
CREATE TABLE sightings (day DATE NOT NULL, species VARCHAR, birds INTEGER, watched INTERVAL);
ALTER TABLE sightings SET PARTITIONED BY (species);
COMMENT ON TABLE sightings IS 'one row for each day and species';
INSERT INTO sightings
    SELECT DATE '2026-05-01' + i // 2, if(i % 2 = 0, 'smew', 'king eider'), i, NULL
    FROM (SELECT range::INTEGER AS i FROM range(60));
BEGIN;
DELETE FROM sightings WHERE birds < 6;
CALL birds.set_commit_message('ada', 'counted on land');
COMMIT;
INSERT INTO sightings VALUES ('2026-06-01', 'smew', 2, INTERVAL 2 HOUR);
CREATE VIEW many AS SELECT * FROM sightings WHERE birds > 50;
"""
PLACES = {
    "{namespace}": "main",
    "{name}": "sightings",
    "/views/main/sightings": "/views/main/many",
}
QUERIES = {
    "/sql": {"query": "SELECT species, sum(birds) FROM main.sightings GROUP BY ALL ORDER BY ALL"},
    "/tables/{namespace}/{name}/profile": {"read": "1"},
    "/tables/{namespace}/{name}/difference": {"from": "3", "to": "5"},
    "/tables/{namespace}/{name}/files": {"column": "birds"},
    "/tables/{namespace}/{name}/rows": {"column": "birds", "operator": "≥", "value": "50"},
}
MOST = 2
"""The entries of a list that are shown."""


def examples() -> dict[str, Any]:
    """An answer of each view."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        with duckdb.connect() as con:
            con.execute(f"LOAD '{extension_path('ducklake')}'")
            con.execute(LAKE)
        with serving("birds.ducklake", None, delivery="object-lambda") as bridge:
            of_iceberg = _answer(bridge.catalog_uri, "/tables/{namespace}/{name}/iceberg")
            manifest = Path(of_iceberg["files"]["manifests"][0]["path"]).name
            answers = {
                path: _cut(_answer(bridge.catalog_uri, path.replace("{manifest}", manifest)))
                for path in REPORTS
            }
            text = json.dumps(answers, ensure_ascii=False)
            text = text.replace(bridge.catalog_uri, "http://127.0.0.1:8181")
            text = text.replace(bridge.s3_endpoint, "http://127.0.0.1:8182")
    return json.loads(text.replace(os.path.realpath(folder), "/home/ada"))


def _answer(uri: str, path: str) -> Any:
    query = {"format": "json", **QUERIES.get(path, {})}
    for name, place in PLACES.items():
        path = path.replace(name, place)
    while True:
        with urlopen(f"{uri}{path}?{urlencode(query)}") as answer:
            report = json.load(answer)
        if answer.status == 200 and report.get("is_done", True):
            return report
        time.sleep(0.5)


def _cut(value: Any) -> Any:
    """Without the further entries of lists."""
    if isinstance(value, dict):
        return {name: _cut(part) for name, part in value.items()}
    return [_cut(part) for part in value[:MOST]] if isinstance(value, list) else value


def main() -> None:
    """Write the examples, and the page that shows them."""
    EXAMPLES.write_text(json.dumps(examples(), ensure_ascii=False, indent=1) + "\n")
    write_pages()


if __name__ == "__main__":
    main()
