"""Clients remove whole data files of which PostgreSQL keeps deletes.

DuckLake ends such a file only after a flush: the change feed would tell the deletes once more. The
twin's check compares the feed of each snapshot; the delete files are those of a native flush.
"""

import pytest

from tests.e2e.writes.rows.test_overwrites import OPERATIONS
from tests.support.writes.hand_made import LIST, HandMade, avro_file
from tests.support.writes.starts import DO_NOT_INLINE, FILES, INLINE, NATIVE

pytestmark = pytest.mark.versions("1.1", "1.0")

DELETED = ("DELETE FROM {t} WHERE id IN (2, 7)", "DELETE FROM {t} WHERE id = 3")
VECTORS = "CALL lake.set_option('write_deletion_vectors', {on})".format
STARTS = {
    "one snapshot": (*FILES, INLINE, DELETED[0]),
    "two snapshots": (*FILES, INLINE, *DELETED),
    "after a delete file": (*FILES, DELETED[0], INLINE, DELETED[1]),
    "after two": (*FILES, *DELETED, INLINE, "DELETE FROM {t} WHERE id = 4"),
    "after a deletion vector": (
        *(*FILES, VECTORS(on="true"), DELETED[0], VECTORS(on="false")),
        *(INLINE, DELETED[1]),
    ),
    "updated": (*FILES, INLINE, "UPDATE {t} SET s = 'x' WHERE id IN (2, 7)"),
}
FLUSH = "CALL ducklake_flush_inlined_data('lake', table_name => '{name}')"
DELETES = """
SELECT d.begin_snapshot - t.begin_snapshot, d.delete_count, d.partial_max - t.begin_snapshot
FROM ducklake_delete_file AS d JOIN ducklake_table AS t USING (table_id)
WHERE t.table_name = :name ORDER BY 1, 2, 3"""


@pytest.mark.slow(but=["deletion vector-delete all]"])
@pytest.mark.parametrize("operation", ["delete all", "overwrite all"])
@pytest.mark.parametrize("start", STARTS)
def test_the_change_feed_tells_each_delete_once(twin, start, operation):
    action, sql = OPERATIONS[operation]
    twin.native(DO_NOT_INLINE, *STARTS[start])
    twin.changes(sql, lambda: action(twin.table()))
    twin.check()
    twin.native(*NATIVE)
    twin.check()


@pytest.mark.parametrize("start", ["one snapshot", "two snapshots", "after a delete file"])
def test_delete_files_are_those_of_a_native_flush(twin, served, start):
    action, sql = OPERATIONS["delete all"]
    twin.native(DO_NOT_INLINE, *STARTS[start])
    twin.changes(sql, lambda: action(twin.table()))
    ours = twin.lake.database.run(DELETES, name=twin.name)
    twin.name = f"{twin.name}_native"
    twin.source, twin.memory = f"lake.main.{twin.name}", f"memory.main.{twin.name}"
    twin.native(DO_NOT_INLINE, *STARTS[start], FLUSH)
    assert ours == twin.lake.database.run(DELETES, name=twin.name)


def test_create_or_replace_flushes_too(twin, served, moto):
    """It ends all rows without a removal of each file."""
    twin.native(DO_NOT_INLINE, *STARTS["two snapshots"])
    made = HandMade(served[1], moto)

    def replace():
        document = made.load(twin.name)
        path = made.put(document, "write.metadata.path", ".avro", avro_file(LIST, []))
        snapshot = {
            "snapshot-id": 2**42 + 7,
            "sequence-number": document["last-sequence-number"] + 1,
            "timestamp-ms": document["last-updated-ms"] + 1,
            "manifest-list": path,
            "summary": {"operation": "append"},
            "schema-id": document["current-schema-id"],
        }
        main = {"ref-name": "main", "type": "branch", "snapshot-id": 2**42 + 7}
        updates = [
            {"action": "remove-snapshot-ref", "ref-name": "main"},
            {"action": "add-snapshot", "snapshot": snapshot},
            {"action": "set-snapshot-ref", **main},
        ]
        required = [{"type": "assert-table-uuid", "uuid": document["table-uuid"]}]
        assert made.post(twin.name, required, updates) == (200, "")

    twin.changes("DELETE FROM {t}", replace)
    twin.check()
