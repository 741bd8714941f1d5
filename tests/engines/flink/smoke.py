"""Flink reads and appends; what it writes is compared with native DuckLake.

`make flink` runs this file. Its name keeps it out of CI, which has no Flink.
"""

from collections import Counter

import pytest
import urllib3

from tests.engines.flink.session import run, settings, sql
from tests.support.servers.in_process import bridge
from tests.support.writes.starts import DO_NOT_INLINE, LAKE, STARTS
from tests.support.writes.writable import set_up_writes

APPENDED = [
    # in Flink, and in a table in memory if it is another statement there; each is one snapshot
    (
        "CREATE TABLE {t} (id BIGINT, s STRING, p INT) PARTITIONED BY (p)",
        "CREATE TABLE {t} (id BIGINT, s VARCHAR, p INTEGER)",
    ),
    ("INSERT INTO {t} VALUES (1, 'a', 1), (2, CAST(NULL AS STRING), 2)", None),
    (
        "INSERT OVERWRITE {t} VALUES (3, 'b', 2)",
        "DELETE FROM {t} WHERE p = 2; INSERT INTO {t} VALUES (3, 'b', 2)",
    ),
    ("ALTER TABLE {t} ADD (grams DOUBLE)", "ALTER TABLE {t} ADD COLUMN grams DOUBLE"),
    ("INSERT INTO {t} VALUES (4, 'c', 1, 1.5)", None),
]
SOURCE = (
    "CREATE TEMPORARY TABLE source (id BIGINT, s STRING) WITH ('connector'='datagen', "
    "'rows-per-second'='4', 'fields.id.kind'='sequence', 'fields.id.start'='1', "
    "'fields.id.end'='80', 'fields.s.length'='3')"
)
KEYED = "CREATE TABLE {t} (id BIGINT, s STRING, PRIMARY KEY (id) NOT ENFORCED)"


@pytest.fixture(scope="module")
def served(lake, moto):
    one = set_up_writes(lake.write("flink", LAKE))
    with bridge(one, moto, writes=True) as found:
        yield one, found, moto


@pytest.fixture
def ask(served, twin):
    table = f"ice.main.{twin.name}"
    return lambda mode, *texts: sql(served[1], mode, *(text.format(t=table) for text in texts))


@pytest.mark.parametrize("start", ["both deletes", "partitions with inlined rows and deletes"])
def test_reads_and_appends(ask, twin, start):
    twin.native(DO_NOT_INLINE, *STARTS[start])
    before = rows_of(twin, twin.source)
    inserted = "INSERT INTO {t} (id, s, p) VALUES (20, 'u', 1)"
    select = "SELECT id, s, p FROM {t}"
    lines: list[str] = []
    twin.changes(
        inserted,
        lambda: lines.extend(ask("BATCH", select, inserted, f"{select} WHERE p = 1")),
    )
    found = Counter(lines)
    assert found == shown(before) + shown(
        Counter({row: n for row, n in rows_of(twin, twin.source).items() if row[2] == 1})
    )
    twin.check()


def test_batch(ask, twin):
    before = twin.newest()
    assert ask("BATCH", *(text for text, _ in APPENDED)) == []
    assert twin.newest() == before + len(APPENDED)
    for number, (text, other) in enumerate(APPENDED, before + 1):
        for one in (other or text).split(";"):
            twin.con.execute(one.replace("STRING", "VARCHAR").format(t=twin.memory))
        then = f"{twin.source} AT (VERSION => {number})"
        assert rows_of(twin, then) == rows_of(twin, twin.memory), text


def test_checkpoints(ask, twin):
    """Each snapshot keeps the checkpoint from which Flink continues, and no row comes twice."""
    insert = "INSERT INTO {t} SELECT id, s FROM source"
    lines = ask("STREAMING", "CREATE TABLE {t} (id BIGINT, s STRING)", SOURCE, insert)
    assert lines == []
    found = twin.con.execute(f"SELECT id FROM {twin.source} ORDER BY 1").fetchall()
    assert found == [(number,) for number in range(1, 81)]
    summaries = [one.summary for one in twin.table().snapshots()]
    checkpoints = [int(one["flink.max-committed-checkpoint-id"]) for one in summaries]
    assert len(checkpoints) > 1
    assert checkpoints == sorted(set(checkpoints))
    assert len({one["flink.job-id"] for one in summaries}) == 1


def test_upserts_of_a_stream(served, twin):
    twin.native(DO_NOT_INLINE, "CREATE TABLE {t} (id BIGINT, s VARCHAR)")
    twin.native("INSERT INTO {t} VALUES (1, 'a'), (3, 'a')")
    words = [f"{name}={value}" for name, value in settings(served[1]).items()]
    upserted = "DELETE FROM {t} WHERE id = 1; INSERT INTO {t} VALUES (1, 'b'), (2, 'c')"
    twin.changes(upserted, lambda: run("Upsert", f"main.{twin.name}", *words).check_returncode())
    twin.check()


def test_upserts_in_sql(ask, twin):
    """A commit for each checkpoint, most of which delete rows of earlier ones by their keys."""
    keyed = KEYED + " WITH ('write.upsert.enabled'='true')"
    insert = "INSERT INTO {t} SELECT MOD(id, 7), CAST(id AS STRING) FROM source"
    assert ask("STREAMING", keyed, SOURCE, insert) == []
    last = {number % 7: str(number) for number in range(1, 81)}
    rows = twin.con.execute(f"SELECT id, s FROM {twin.source}").fetchall()
    assert sorted(rows) == sorted(last.items())
    assert sorted(twin.table().scan().to_arrow().to_pylist(), key=lambda row: row["id"]) == [
        {"id": id_, "s": s} for id_, s in sorted(last.items())
    ]
    assert len(twin.table().snapshots()) > 5


def test_a_primary_key_is_kept(served, ask, twin):
    ask("BATCH", KEYED)
    url = f"{served[1].catalog_uri}/v1/lake/namespaces/main/tables/{twin.name}"
    [schema] = urllib3.request("GET", url).json()["metadata"]["schemas"]
    assert schema["identifier-field-ids"] == [1]


def rows_of(twin, source):
    return Counter(twin.con.execute(f"SELECT * FROM {source}").fetchall())


def shown(rows):
    """Rows as Flink prints them."""

    def text(value):
        return "null" if value is None else str(value)

    return Counter({f"row +I[{', '.join(map(text, row))}]": n for row, n in rows.items()})
