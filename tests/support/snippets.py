"""The lake that snippets of the page read, the places of its tables, and the judge of the rows."""

import pyarrow as pa
from polynya.runtime.namespaces import dotted
from polynya_local.clients.canonical import difference, from_arrow
from polynya_local.clients.native import Native
from polynya_local.reports.snippets import Place

from tests.support.rest import Rest
from tests.support.servers.in_process import ALIAS, StandIn

HOSTILE = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT 0);
USE lake;
CREATE TABLE plain(i INTEGER);
INSERT INTO plain VALUES (1), (2);
CREATE SCHEMA "a""b'c`d";
CREATE TABLE "a""b'c`d"."t'""`\\ $warehouse é🦆"("i""'`" INTEGER, s VARCHAR);
INSERT INTO "a""b'c`d"."t'""`\\ $warehouse é🦆" VALUES (1, 'x'), (2, NULL);
INSERT INTO "a""b'c`d"."t'""`\\ $warehouse é🦆" VALUES (3, 'y');
CREATE TABLE "a""b'c`d"."u'""`\\ é🦆"("i""'`" INTEGER);
INSERT INTO "a""b'c`d"."u'""`\\ é🦆" VALUES (5);
CREATE SCHEMA "with space";
CREATE TABLE "with space"."and/slash %2F"(i INTEGER);
INSERT INTO "with space"."and/slash %2F" VALUES (7);
"""
PINNED = "by the warehouse"


def places_of(served: StandIn, judge: Native) -> dict[str, Place]:
    """A place for each table: now, before by the client's own way, and by the warehouse."""
    rest, found = Rest(served.api_uri, "lake"), {}
    for table in judge.tables():
        name = f"{table.namespace}.{table.name}"
        where = (served.api_uri, "lake", served.s3_uri, dotted(table.namespace), table.name)
        snapshots = rest.load_table(table.namespace, table.name)["snapshots"]
        first = min(snapshots, key=lambda one: one["sequence-number"])
        then, own = first["sequence-number"], first["snapshot-id"]
        found[name] = Place(*where, virtual_bucket=ALIAS)
        found[f"{name} at {then}"] = Place(*where, then, own, ALIAS)
        found[f"{name} at {then} {PINNED}"] = Place(*where, then, None, ALIAS)
    assert len(found) == 12
    return found


def check(judge: Native, place: Place, rows: pa.Table) -> None:
    """The rows are DuckLake's at this place."""
    at = (*place.levels, place.table, place.lake_snapshot)
    assert difference(judge.canonical(*at), from_arrow(rows, judge.columns(*at))) == []
