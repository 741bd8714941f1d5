"""What has changed in a lake since an earlier state of its catalog, in one statement.

A snapshot names which tables it has changed (`changes_made`), and PostgreSQL which transaction has
written it (`xmin`). So if every transaction that has committed since has written a snapshot, the
snapshots name all changes except two that DuckLake may make in the same transaction: it expires
snapshots, and sets options.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ..connection.catalog_connection import Rows, Statement
from ..rows.objects import MOST_TRANSACTIONS, CatalogState, tables_with_other_rows
from .catalog import CHANGES_MADE, STATE_NOW, catalog_state

MOST_SNAPSHOTS = 100
"""How many snapshots are read; after more of them everything is taken as changed."""

MOST_COUNTED = 10_000
"""How many ids of snapshots are counted, to see whether one has expired."""


@dataclass(frozen=True, slots=True)
class SeenState:
    """A state of the catalog, and values that show whether others have changed it."""

    text: str
    state: CatalogState
    snapshot_id: int
    """The newest snapshot."""
    beside: str
    """The oldest snapshot and a hash of the options, which change without a snapshot."""
    counted: int
    """How many of the newest MOST_COUNTED ids of snapshots there are."""


COUNTED = f"""(SELECT count(*) FROM ducklake_snapshot AS s
  WHERE s.snapshot_id > {{0}} - {MOST_COUNTED} AND s.snapshot_id <= {{0}})::text"""

# Options of the whole lake have a scope of NULL, in the versions that have the column.
BESIDE = """(SELECT concat_ws(' ', (SELECT min(snapshot_id) FROM ducklake_snapshot),
  (SELECT md5(string_agg(o::text, ',' ORDER BY o::text)) FROM ducklake_metadata AS o)))"""

# Mostly the state has not changed, and no other part runs. Each part has an index.
CHANGES = f"""
WITH now AS MATERIALIZED (
  SELECT {STATE_NOW} AS state, txid_snapshot_xmax(txid_current_snapshot()) AS xmax,
    (SELECT coalesce(max(snapshot_id), -1) FROM ducklake_snapshot) AS newest),
changed AS MATERIALIZED (SELECT * FROM now
  WHERE state <> CAST(:state AS text) OR newest <> CAST(:snapshot_id AS bigint))
SELECT 'now', state, newest::text FROM now
UNION ALL
SELECT 'beside', {BESIDE}, {COUNTED.format("newest")} FROM changed
UNION ALL
SELECT 'counted', {COUNTED.format("CAST(:snapshot_id AS bigint)")}, NULL FROM changed
UNION ALL
SELECT 'snapshot', s.id_and_writer, s.changes_made FROM changed CROSS JOIN LATERAL (
  SELECT s.snapshot_id || ' ' || s.xmin AS id_and_writer,
    (SELECT {CHANGES_MADE} FROM ducklake_snapshot_changes AS c
      WHERE c.snapshot_id = s.snapshot_id) AS changes_made
  FROM ducklake_snapshot AS s WHERE s.snapshot_id > :snapshot_id
  ORDER BY s.snapshot_id DESC LIMIT {MOST_SNAPSHOTS + 1}) AS s
UNION ALL
SELECT 'aborted', i.id::text, NULL FROM changed CROSS JOIN LATERAL (
  SELECT generate_series(CAST(:xmax AS bigint),
    least(changed.xmax, CAST(:xmax AS bigint) + {MOST_TRANSACTIONS}) - 1)
  UNION ALL SELECT unnest(CAST(:running AS bigint[]))) AS i(id)
WHERE i.id < changed.xmax AND txid_status(i.id) = 'aborted'"""


ChangedTables = Mapping[int, int]
"""The snapshot that changed the rows of a table last, by table_id."""


def changes_since(
    earlier: SeenState | None,
) -> Statement[tuple[SeenState, ChangedTables | None]]:
    """The state now, and the tables that may have other rows than in an earlier one.

    None for the tables: anything may have changed.
    """

    def result(rows: Rows) -> tuple[SeenState, ChangedTables | None]:
        [(text, newest)] = _rows_of_kind(rows, "now")
        if not (beside := _rows_of_kind(rows, "beside")):
            assert earlier is not None
            return earlier, {}
        state = catalog_state(text)
        assert state is not None
        [(beside_text, counted)] = beside
        now = SeenState(text, state, int(newest), beside_text, int(counted))
        return now, _changed_tables(earlier, now, rows) if earlier else None

    return Statement(
        CHANGES,
        {
            "state": earlier.text if earlier else "",
            "snapshot_id": earlier.snapshot_id if earlier else -1,
            "xmax": earlier.state.xmax if earlier else None,
            "running": sorted(earlier.state.running) if earlier else [],
        },
        result,
    )


def _rows_of_kind(rows: Rows, kind: str) -> list[tuple[str, str]]:
    return [(first, second) for of_kind, first, second in rows if of_kind == kind]


def _changed_tables(earlier: SeenState, now: SeenState, rows: Rows) -> ChangedTables | None:
    snapshots = [
        (*text.split(), changes or "") for text, changes in _rows_of_kind(rows, "snapshot")
    ]
    ended = now.state.ended_since(earlier.state)
    if ended is None or len(snapshots) > MOST_SNAPSHOTS or now.beside != earlier.beside:
        return None
    if any(int(counted) != earlier.counted for counted, _ in _rows_of_kind(rows, "counted")):
        return None
    aborted = {int(id_) for id_, _ in _rows_of_kind(rows, "aborted")}
    writers = {int(writer) for _, writer, _ in snapshots}
    # A transaction that has written other rows may have changed anything.
    if writers != {id_ % 2**32 for id_ in ended - aborted}:
        return None
    tables: dict[int, int] = {}
    for snapshot_id, _, changes_made in reversed(snapshots):  # oldest first
        changed = tables_with_other_rows(changes_made)
        if changed is None:
            return None
        tables |= dict.fromkeys(changed, int(snapshot_id))
    return tables
