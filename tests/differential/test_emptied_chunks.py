"""Changes of a table after all files of some of its manifests have ended.

`make histories` found that no list could be built at the snapshot of a column's new type.
"""

from contextlib import closing

import pytest
from polynya_local.clients import duckdb, native, pyiceberg
from polynya_local.clients.canonical import difference, from_arrow

from tests.support import rest
from tests.support.servers.in_process import bridge

SCRIPT = """
ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}');
CALL lake.set_option('data_inlining_row_limit', 0);
USE lake;
"""

# Each chunk has one file; no file of t is left at the second change.
TABLE = """
CREATE TABLE {t}(id INTEGER, p INTEGER, s STRUCT(x INTEGER));
INSERT INTO {t} VALUES (1, 1, {{'x': 1}});
INSERT INTO {t} VALUES (2, 2, {{'x': 2}});
INSERT INTO {t} VALUES (3, 3, {{'x': 3}});
DELETE FROM {t} WHERE id = 1;
DELETE FROM {t} WHERE id = 3;
{change};
INSERT INTO {t}(id) VALUES (4);
DELETE FROM {t};
{again};
INSERT INTO {t}(id) VALUES (5);
"""
CHANGES = {
    "promoted": ("ALTER COLUMN id TYPE BIGINT", "ALTER COLUMN p TYPE BIGINT"),
    "nested": ("ADD COLUMN s.y INTEGER", "DROP COLUMN s.x"),
    "renamed": ("RENAME COLUMN p TO q", "RENAME COLUMN q TO p"),
    "dropped": ("DROP COLUMN p", "DROP COLUMN s"),
    "added": ("ADD COLUMN q INTEGER DEFAULT 7", "ADD COLUMN r INTEGER"),
    "partitioned": ("SET PARTITIONED BY (p)", "RESET PARTITIONED BY"),
}
# CI reads each change with one of the clients.
PAIRS = [
    pytest.param(
        name,
        client,
        id=f"{name}-{client.NAME.lower()}",
        marks=[pytest.mark.slow] * ((row + column) % 2),
    )
    for row, name in enumerate(CHANGES)
    for column, client in enumerate((pyiceberg, duckdb))
]


def script() -> str:
    parts = [SCRIPT]
    for name, changes in CHANGES.items():
        change, again = (f"ALTER TABLE {name} {one}" for one in changes)
        parts.append(TABLE.format(t=name, change=change, again=again))
    return "".join(parts)


@pytest.fixture(scope="module")
def served(lake, moto):
    one = lake.write("emptied_chunks", script())
    with bridge(one, moto, settings={"CHUNK_FILES": "1", "SNAPSHOT_LIMIT": "1000"}) as found:
        yield one, found


@pytest.mark.slow("[dropped-duckdb]", "[added-pyiceberg]", "[renamed-pyiceberg]")
@pytest.mark.parametrize(("name", "client"), PAIRS)
def test_every_snapshot_has_its_rows(served, moto, client, name):
    one, found = served
    where = (found.catalog_uri, found.warehouse, found.s3_endpoint)
    with closing(native.open(one, moto)) as truth, closing(client.open(*where)) as reader:
        document = rest.Rest(*where[:2]).load_table("main", name)
        snapshots = [one["snapshot-id"] for one in document["snapshots"]]
        for at in snapshots:
            rows = reader.rows("main", name, at)
            wanted = truth.canonical("main", name, at)
            assert difference(wanted, from_arrow(rows, truth.columns("main", name, at))) == [], at
    assert len(snapshots) >= 9
