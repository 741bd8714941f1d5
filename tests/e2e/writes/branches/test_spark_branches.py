"""Spark's branches, tags and staged snapshots: the same statements in Iceberg's own catalog."""

import tempfile
from collections import Counter
from types import SimpleNamespace

import pytest

from tests.support.catalog_versions import SERVED
from tests.support.servers.in_process import bridge
from tests.support.writes.altered import newest
from tests.support.writes.java_deltas import Deltas
from tests.support.writes.twins import query
from tests.support.writes.writable import EMPTY, set_up_writes

pytestmark = pytest.mark.spark

COLUMNS = "(id BIGINT, s STRING, p INT)"
NATIVE = (
    "CREATE TABLE {t} (id BIGINT, s VARCHAR, p INTEGER)",
    "INSERT INTO {t} SELECT range, 's' || range, range % 3 FROM range(30)",
    "DELETE FROM {t} WHERE id = 7",
)
INLINED = "INSERT INTO {t} VALUES (101, 'inlined', 1), (102, NULL, NULL), (103, 'x', 2)"
START = (
    f"CREATE TABLE {{t}} {COLUMNS} USING iceberg TBLPROPERTIES ({{properties}})",
    "INSERT INTO {t} SELECT id, concat('s', id), CAST(id % 3 AS INT) FROM range(30) WHERE id <> 7",
    "INSERT INTO {t} VALUES (101, 'inlined', 1), (102, NULL, NULL), (103, 'x', 2)",
)
BRANCH = (
    "ALTER TABLE {t} CREATE BRANCH b",
    "INSERT INTO {t}.branch_b VALUES (200, 'new', 1), (201, 'new', 2)",
    "DELETE FROM {t}.branch_b WHERE id IN (3, 101, 200)",
    "UPDATE {t}.branch_b SET s = 'changed' WHERE id IN (4, 103, 201)",
    "MERGE INTO {t}.branch_b AS t USING (SELECT 5L AS id UNION SELECT 300L) AS n ON t.id = n.id "
    "WHEN MATCHED THEN UPDATE SET s = 'merged' WHEN NOT MATCHED THEN INSERT (id) VALUES (n.id)",
    "DELETE FROM {t}.branch_b WHERE p = 0",
)


class Both:
    """A table of a lake, and the same one in Iceberg's own catalog in Hadoop's file system."""

    def __init__(self, served, s3, name, folder):
        from polynya_local.clients import spark

        self.lake, self._s3, self.name = served[0], s3, name
        self._session = spark.session()
        ours = spark.Spark(served[1].catalog_uri, "lake", served[1].s3_endpoint).catalog
        oracle = f"oracle_{ours}"
        prefix = f"spark.sql.catalog.{oracle}"
        self._session.conf.set(prefix, "org.apache.iceberg.spark.SparkCatalog")
        for key, value in {"type": "hadoop", "warehouse": folder, "cache-enabled": "false"}.items():
            self._session.conf.set(f"{prefix}.{key}", value)
        self.catalogs = ours, oracle

    def native(self, *statements):
        return query(
            self.lake, self._s3, *(sql.format(t=f"main.{self.name}") for sql in statements)
        )

    def sql(self, text, catalogs=None, **more):
        """Run a statement in both catalogs; its rows in each."""
        return [
            self._session.sql(
                text.format(
                    t=f"{catalog}.main.{self.name}", c=catalog, n=f"main.{self.name}", **more
                )
            ).collect()
            for catalog in catalogs or self.catalogs
        ]

    def oracle(self, *statements, **more):
        for text in statements:
            self.sql(text, self.catalogs[1:], **more)

    def changes(self, text):
        """Run a statement in both; in the lake it is one snapshot."""
        before = newest(self.lake)
        with SERVED.of(self.lake):
            self.sql(text, self.catalogs[:1])
        self.oracle(text)
        assert newest(self.lake) == before + 1, text
        self.check()

    def set(self, key, value):
        """A setting of the session; None: as it was."""
        if value is None:
            self._session.conf.unset(key)
        else:
            self._session.conf.set(key, value)

    def deltas(self, key):
        """Writers of deltas for the table in both catalogs."""
        iceberg = self._session._jvm.org.apache.iceberg
        java = SimpleNamespace(session=self._session, iceberg=iceberg)
        load = iceberg.spark.Spark3Util.loadIcebergTable
        names = [f"{catalog}.main.{self.name}" for catalog in self.catalogs]
        return [Deltas(java, load(self._session._jsparkSession, name), key) for name in names]

    def check(self, staged=0):
        """Compare the rows of all references and staged snapshots, and those of main natively."""
        ids = [
            [row.id for row in rows]
            for rows in self.sql(
                "SELECT snapshot_id AS id FROM {t}.snapshots "
                "WHERE summary['wap.id'] IS NOT NULL ORDER BY committed_at"
            )
        ]
        assert len(ids[0]) >= staged
        for pair in zip(*(of[:staged] for of in ids), strict=True):
            rows = [
                Counter(self.sql(f"SELECT * FROM {{t}} VERSION AS OF {id_}", [catalog])[0])
                for id_, catalog in zip(pair, self.catalogs, strict=True)
            ]
            assert rows[0] == rows[1]
        [references] = self.sql("SELECT name FROM {t}.refs", self.catalogs[1:])
        for [name] in references:
            ours, oracle = map(Counter, self.sql(f"SELECT * FROM {{t}} VERSION AS OF '{name}'"))
            assert ours == oracle, name
            if name == "main":
                assert Counter(map(tuple, ours.elements())) == Counter(self.native("FROM {t}"))


@pytest.fixture(scope="module")
def served(lake, moto):
    one = set_up_writes(lake.write("spark_branches", EMPTY))
    with bridge(one, moto, writes=True) as found:
        yield one, found


@pytest.fixture
def both(request, served, moto):
    with tempfile.TemporaryDirectory() as folder:
        yield Both(served, moto, f"t{abs(hash(request.node.name)) % 10**9}", folder)


def start(both, version=2, mode="merge-on-read"):
    modes = {f"write.{what}.mode": mode for what in ("delete", "update", "merge")}
    properties = {**modes, "format-version": str(version), "write.wap.enabled": "true"}
    both.native("CALL lake.set_option('data_inlining_row_limit', 0)", *NATIVE)
    both.native("CALL lake.set_option('data_inlining_row_limit', 10)", INLINED)
    texts = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
    both.oracle(*START, properties=texts)
    both.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ({texts})", both.catalogs[:1])
    both.check()


@pytest.mark.slow
@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("mode", ["merge-on-read", "copy-on-write"])
def test_a_branch_has_the_rows_of_its_statements_and_main_gets_them_at_once(both, mode, version):
    start(both, version, mode)
    for text in BRANCH:
        both.changes(text)
    both.changes("CALL {c}.system.fast_forward('{n}', 'main', 'b')")
    both.changes("DELETE FROM {t}.branch_b WHERE id = 8")
    both.changes(
        "ALTER TABLE {t} CREATE TAG before_main AS OF VERSION {v}".replace(" AS OF VERSION {v}", "")
    )
    both.changes("CALL {c}.system.fast_forward('{n}', 'main', 'b')")
    both.changes("ALTER TABLE {t} DROP BRANCH b")
    both.changes("INSERT INTO {t} VALUES (400, 'main', 0)")


@pytest.mark.slow
def test_write_audit_publish(both):
    """Staged snapshots by an id: one that follows main, and one that main has left behind."""
    start(both)
    both.set("spark.wap.id", "first")
    both.changes("INSERT INTO {t} VALUES (500, 'staged', 1)")
    both.set("spark.wap.id", "second")
    # Spark would delete a whole file from main, whatever the id says.
    both.changes("DELETE FROM {t} WHERE id = 4")
    both.set("spark.wap.id", "third")
    both.changes("INSERT INTO {t} VALUES (501, 'staged', 2), (502, 'staged', 2)")
    both.set("spark.wap.id", None)
    both.check(staged=3)
    both.changes("CALL {c}.system.publish_changes('{n}', 'second')")
    both.changes("INSERT INTO {t} VALUES (600, 'main', 0)")
    both.changes("CALL {c}.system.publish_changes('{n}', 'first')")
    with pytest.raises(Exception, match=r"(?i)wap id"):
        both.sql("CALL {c}.system.publish_changes('{n}', 'first')", both.catalogs[:1])
    both.check()
    both.set("spark.wap.branch", "audit")
    both.changes("INSERT INTO {t} VALUES (700, 'audited', 1)")
    both.changes("UPDATE {t} SET s = 'audited' WHERE id = 501 OR id = 600")
    both.set("spark.wap.branch", None)
    both.changes("CALL {c}.system.fast_forward('{n}', 'main', 'audit')")


def test_the_sequence_of_airbyte(both):
    """A branch on an empty table, deltas on it, main replaced by it, and the branch removed."""
    both.native("CREATE TABLE {t} (id INTEGER, s VARCHAR, p INTEGER)")
    both.oracle("CREATE TABLE {t} (id INT, s STRING, p INT) USING iceberg")
    tables = both.deltas(["id"])
    branch = "airbyte_staging"
    for number in range(2):
        for deltas in tables:
            deltas.table.manageSnapshots().createBranch(branch).commit()
        for step in range(3):
            ids = range(number + step, number + step + 4)
            rows = [(id_, f"{number}.{step}", id_ % 2) for id_ in ids]
            for deltas in tables:
                deltas.commit(rows, rows, branch)
            assert tables[0].rows(branch) == tables[1].rows(branch)
            main = tables[0].rows()
            assert main == tables[1].rows() == Counter(both.native("FROM {t}"))
        before = newest(both.lake)
        for deltas in tables:
            deltas.table.manageSnapshots().replaceBranch("main", branch).commit()
        assert newest(both.lake) == before + 1
        for deltas in tables:
            deltas.table.manageSnapshots().removeBranch(branch).commit()
        both.check()
        assert tables[0].rows() == tables[1].rows() != main
