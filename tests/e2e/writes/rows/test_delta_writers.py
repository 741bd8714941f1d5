"""Iceberg's own writers of equality deletes, as Flink and Debezium use them, in a JVM.

The same deltas go to a table of Iceberg's in-memory catalog, whose rows Iceberg's own reader gives.
"""

import random
from collections import Counter
from types import SimpleNamespace

import pytest

from tests.support.writes.starts import DO_NOT_INLINE, INLINE

pytestmark = pytest.mark.spark

STEPS = 6
ROWS = 12
SPECS = {
    "no partitions": (None, ["id"]),
    "in partitions that the key has": (("p", "identity"), ["id", "p"]),
    "in partitions that the key lacks": (("p", "identity"), ["id"]),
    "in buckets": (("id", "bucket"), ["id", "s"]),
}
TEXTS = "a", "b", None


@pytest.fixture(scope="module")
def java(spark):
    from polynya_local.clients import spark as of_spark

    session = of_spark.session()
    iceberg = session._jvm.org.apache.iceberg
    catalog = iceberg.inmemory.InMemoryCatalog()
    catalog.initialize("oracle", {})
    catalog.createNamespace(iceberg.catalog.Namespace.of(array(session, ["main"])))
    return SimpleNamespace(
        session=session, iceberg=iceberg, oracle=catalog, catalog=spark.client.catalog
    )


def array(session, texts, kind="java.lang.String"):
    of_java = session._jvm
    for part in kind.split("."):
        of_java = getattr(of_java, part)
    made = session.sparkContext._gateway.new_array(of_java, len(texts))
    for n, text in enumerate(texts):
        made[n] = text
    return made


class Deltas:
    """A table of Iceberg, which Java's writers change."""

    def __init__(self, java, table, key):
        self._java, self.table = java, table
        self._schema = table.schema()
        self._key = [self._schema.findField(name).fieldId() for name in key]
        self._of_key = self._schema.select(array(java.session, key))
        ids = java.session.sparkContext._gateway.new_array(java.session._jvm.int, len(key))
        for n, id_ in enumerate(self._key):
            ids[n] = id_
        self._factory = java.iceberg.data.GenericAppenderFactory(
            self._schema, table.spec(), ids, self._of_key, None
        )

    def commit(self, rows, keys):
        """One RowDelta: rows of the three columns, and keys with values of all three."""
        self.table.refresh()
        delta = self.table.newRowDelta()
        for partition, of_partition in self._by_partition(rows):
            records = [self._record(self._schema, row) for row in of_partition]
            file = self._written("newDataWriter", records, partition)
            delta.addRows(file.toDataFile())
        for partition, of_partition in self._by_partition(keys):
            records = [self._record(self._of_key, row) for row in of_partition]
            file = self._written("newEqDeleteWriter", records, partition)
            delta.addDeletes(file.toDeleteFile())
        delta.commit()

    def _by_partition(self, rows):
        spec = self.table.spec()
        if not spec.isPartitioned():
            return [(None, rows)] if rows else []
        iceberg = self._java.iceberg
        groups = {}
        for row in rows:
            key = iceberg.PartitionKey(spec, self._schema)
            record = self._record(self._schema, row)
            key.partition(iceberg.data.InternalRecordWrapper(self._schema.asStruct()).wrap(record))
            groups.setdefault(key.toPath(), (key, []))[1].append(row)
        return [*groups.values()]

    def _record(self, schema, row):
        record = self._java.iceberg.data.GenericRecord.create(schema)
        values = dict(zip(("id", "s", "p"), row, strict=True))
        for field in schema.columns():
            record.setField(field.name(), values[field.name()])
        return record

    def _written(self, method, records, partition):
        iceberg = self._java.iceberg
        files = (
            iceberg.io.OutputFileFactory.builderFor(self.table, 1, random.randrange(2**31))
            .format(iceberg.FileFormat.PARQUET)
            .build()
        )
        output = files.newOutputFile(partition) if partition else files.newOutputFile()
        writer = getattr(self._factory, method)(output, iceberg.FileFormat.PARQUET, partition)
        for record in records:
            writer.write(record)
        writer.close()
        return writer

    def rows(self):
        """As Iceberg's own reader gives them."""
        self.table.refresh()
        records = self._java.iceberg.data.IcebergGenerics.read(self.table).build().iterator()
        rows = Counter()
        while records.hasNext():
            record = records.next()
            rows[tuple(record.getField(name) for name in ("id", "s", "p"))] += 1
        return rows


@pytest.mark.slow(but=["in partitions that the key lacks"])
@pytest.mark.parametrize("spec", SPECS)
def test_deltas(twin, java, spec):
    partitioning, key = SPECS[spec]
    iceberg = java.iceberg
    twin.native(DO_NOT_INLINE, "CREATE TABLE {t} (id INTEGER, s VARCHAR, p INTEGER)")
    identifier = f"{java.catalog}.main.{twin.name}"
    ours = iceberg.spark.Spark3Util.loadIcebergTable(java.session._jsparkSession, identifier)
    if partitioning:
        name, transform = partitioning
        changed = ours.updateSpec()
        expressions = iceberg.expressions.Expressions
        term = expressions.bucket(name, 3) if transform == "bucket" else expressions.ref(name)
        changed.addField(term).commit()
        ours.refresh()
    oracle = java.oracle.createTable(
        iceberg.catalog.TableIdentifier.of(array(java.session, ["main", twin.name])),
        ours.schema(),
        ours.spec(),
    )
    tables = Deltas(java, ours, key), Deltas(java, oracle, key)
    randomly = random.Random(spec)
    for step in range(STEPS):
        if step == STEPS // 2:
            twin.con.execute(INLINE)
        rows, keys = [
            [
                (randomly.randrange(20), randomly.choice(TEXTS), randomly.randrange(3))
                for _ in range(count)
            ]
            for count in (ROWS, ROWS if step else 0)
        ]
        for table in tables:
            table.commit(rows, keys)
        expected = tables[1].rows()
        native = twin.con.execute(f"SELECT id, s, p FROM {twin.source}").fetchall()
        assert Counter(native) == expected, step
        assert tables[0].rows() == expected
