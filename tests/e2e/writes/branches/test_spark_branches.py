"""Spark's branches, tags and staged snapshots: the same statements in Iceberg's own catalog."""

import tempfile
from collections import Counter

import pytest

from tests.support.servers.in_process import bridge
from tests.support.writes.altered import newest
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
        self._catalogs = ours, oracle

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
            for catalog in catalogs or self._catalogs
        ]

    def oracle(self, *statements, **more):
        for text in statements:
            self.sql(text, self._catalogs[1:], **more)

    def changes(self, text):
        """Run a statement in both; in the lake it is one snapshot."""
        before = newest(self.lake)
        self.sql(text)
        assert newest(self.lake) == before + 1, text
        self.check()

    def check(self):
        """Compare the rows of all references, and those of main natively."""
        [references] = self.sql("SELECT name FROM {t}.refs", self._catalogs[1:])
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
    both.sql(f"ALTER TABLE {{t}} SET TBLPROPERTIES ({texts})", both._catalogs[:1])
    both.check()


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
