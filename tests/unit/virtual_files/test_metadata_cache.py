"""A document is built once for the same history, and again for another or a future one."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from polynya.mapping.schemas import Visibility, schemas
from polynya.virtual_files.contexts import DOCUMENTS, MetadataCache

from tests.unit.mapping.test_tables import HISTORY


class Counting:
    """Makes a different document at each call."""

    def __init__(self) -> None:
        self.documents = MetadataCache()

    def __call__(self, history, hidden_types=frozenset()) -> object:
        shown = schemas(history.columns, history.table.begin_snapshot, 9, Visibility(hidden_types))
        source = history, shown, history.unservable
        return self.documents.get_or_build(*source, lambda now_ms: object())


def history_of(number: int):
    return replace(HISTORY, table=replace(HISTORY.table, table_uuid=f"uuid-{number}"))


def test_the_document_of_the_same_history_is_built_once():
    made = Counting()
    document = made(HISTORY)
    assert made(replace(HISTORY)) is document
    later = replace(HISTORY.lake, snapshot_id=HISTORY.lake.snapshot_id + 1)
    assert made(replace(HISTORY, lake=later, snapshot_id=later.snapshot_id)) is document


def test_another_history_gives_another_document():
    made = Counting()
    documents = [made(HISTORY)]
    [*before, last] = HISTORY.events
    for other in (
        {"events": [*before, replace(last, past=last.past + 1)]},
        {"snapshots": HISTORY.snapshots[1:]},
        {"columns": HISTORY.columns[:-1]},
        {"table": replace(HISTORY.table, table_name="renamed")},
        {"lake": replace(HISTORY.lake, data_path="s3://moved/")},
    ):
        documents.append(made(replace(HISTORY, **other)))
    assert len(set(map(id, documents))) == len(documents) == 6


def test_other_columns_of_the_same_history_give_another_document():
    made = Counting()
    types = frozenset(column.column_type for column in HISTORY.columns)
    assert made(HISTORY, types) is not made(HISTORY)


def test_a_snapshot_in_the_future_is_shown_with_the_current_time_each_time():
    soon = datetime.now(UTC) + timedelta(hours=1)
    [*before, last] = HISTORY.snapshots
    ahead = replace(HISTORY, snapshots=[*before, replace(last, snapshot_time=soon)])
    made = Counting()
    assert made(ahead) is not made(ahead)


def test_the_tables_that_were_loaded_last_are_kept():
    made = Counting()
    documents = [made(history_of(number)) for number in range(DOCUMENTS + 1)]
    assert made(history_of(DOCUMENTS)) is documents[DOCUMENTS]
    assert made(history_of(1)) is documents[1]
    assert made(history_of(0)) is not documents[0]
