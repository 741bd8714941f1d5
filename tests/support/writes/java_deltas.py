"""Iceberg's own writers of equality deletes, in Spark's JVM."""

import random
from collections import Counter


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
        self._names = [field.name() for field in self._schema.columns()]
        self._key = [self._schema.findField(name).fieldId() for name in key]
        self._of_key = self._schema.select(array(java.session, key))
        ids = java.session.sparkContext._gateway.new_array(java.session._jvm.int, len(key))
        for n, id_ in enumerate(self._key):
            ids[n] = id_
        self._factory = java.iceberg.data.GenericAppenderFactory(
            self._schema, table.spec(), ids, self._of_key, None
        )

    def commit(self, rows, keys, branch="main"):
        """One RowDelta: rows of all columns, and keys with values of all columns."""
        self.table.refresh()
        delta = self.table.newRowDelta().toBranch(branch)
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
        values = dict(zip(self._names, row, strict=True))
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

    def rows(self, name="main"):
        """As Iceberg's own reader gives them, of a tag or branch."""
        self.table.refresh()
        rows = Counter()
        snapshot = self.table.snapshot(name)
        if snapshot is None:
            return rows
        scan = self._java.iceberg.data.IcebergGenerics.read(self.table)
        records = scan.useSnapshot(snapshot.snapshotId()).build().iterator()
        while records.hasNext():
            record = records.next()
            rows[tuple(record.getField(name) for name in self._names)] += 1
        return rows
