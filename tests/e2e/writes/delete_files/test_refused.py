"""Deletes that are refused before anything changes, with what to do instead."""

import pytest
from polynya.commits.plan import row_deletes
from polynya.iceberg.parquet import delete_files
from polynya.virtual_files import inlined_rows

from tests.support.writes.starts import DO_NOT_INLINE, STARTS

DELETE = "DELETE FROM {t} WHERE id IN (1, 4, 6)"

REFUSED = {
    "data files": (row_deletes, "MOST_DELETE_FILES", 1),
    "rows deleted before": (inlined_rows, "MOST_DELETED", 2),
    "rows deleted now": (delete_files, "MOST_POSITIONS", 2),
}


@pytest.mark.slow(but=["[rows deleted now]"])
@pytest.mark.parametrize("what", REFUSED)
def test_too_many(twin, change, monkeypatch, what):
    twin.native(*STARTS["delete files"], DO_NOT_INLINE)
    module, name, most = REFUSED[what]
    before = twin.newest()
    with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="Failed to commit"):
        patch.setattr(module, name, most)
        change(DELETE)
    assert twin.newest() == before
    change(DELETE)
    twin.check()
