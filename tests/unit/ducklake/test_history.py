"""The state that a history gives for each snapshot: sums over hand-made events."""

from dataclasses import replace

import pytest
from polynya.ducklake.queries.history import Totals, state_at, states, unservable_reason
from polynya.ducklake.queries.lifetimes import KINDS
from polynya.ducklake.rows.files import Event
from polynya.ducklake.rows.lifetimes import UnservableRange


def begins(snapshot_id: int, kind: str = "data", files=1, rows=10, size=100, hash=7) -> Event:
    return Event(snapshot_id, kind, 1, files, rows, size, hash)


def ends(snapshot_id: int, kind: str = "data", files=1, rows=10, size=100, hash=7) -> Event:
    return Event(snapshot_id, kind, -1, files, rows, size, hash, past=hash * 1000 + snapshot_id)


def totals(files=0, rows=0, size=0, hash=0, changed_at=0, added=None, removed=None) -> Totals:
    return Totals(files, rows, size, hash, changed_at, added, removed)


FIRST = begins(2, files=2, rows=20, size=200, hash=5)
MORE = begins(4, files=1, rows=1, size=10, hash=11)
LESS = ends(4, files=1, rows=8, size=80, hash=3)
REST = ends(9, files=2, rows=13, size=130, hash=13)
LIFE = [FIRST, LESS, MORE, REST]
# (snapshot id, totals of the kind `data`)
LIVES = [
    (0, totals()),
    (1, totals()),
    (2, totals(2, 20, 200, 5, 2, FIRST)),
    (3, totals(2, 20, 200, 5, 2, FIRST)),
    (4, totals(2, 13, 130, 13, 4, MORE, LESS)),
    (8, totals(2, 13, 130, 13, 4, MORE, LESS)),
    (9, totals(0, 0, 0, 0, 9, None, REST)),
    (99, totals(0, 0, 0, 0, 9, None, REST)),
]


@pytest.mark.parametrize(("snapshot_id", "expected"), LIVES)
def test_state_is_the_sum_of_what_has_begun_and_not_ended(snapshot_id, expected):
    found = state_at(LIFE, snapshot_id)["data"]
    assert replace(found, past=0) == expected
    assert (found.past != 0) == (expected.removed is not None)


def test_states_of_many_snapshots_are_those_of_each_alone():
    ids = [0, 1, 2, 3, 4, 8, 9, 99]
    found = list(states(LIFE, ids))
    assert found == [(snapshot_id, state_at(LIFE, snapshot_id)) for snapshot_id in ids]


def test_later_events_do_not_change_a_state():
    (_, first), *_ = found = list(states(LIFE, [2, 4, 9]))
    assert first["data"].files == 2
    assert len({id(state) for _, state in found}) == 3


def test_kinds_are_counted_separately():
    state = state_at([begins(2, kind, hash=n) for n, kind in enumerate(KINDS, start=1)], 2)
    assert [state[kind].hash for kind in KINDS] == list(range(1, len(KINDS) + 1))
    one = state_at([begins(3, "delete"), begins(5, "inlined")], 9)
    assert (one["data"].changed_at, one["delete"].changed_at, one["inlined"].changed_at) == (
        0,
        3,
        5,
    )


def test_changes_of_an_expired_snapshot_count_in_the_next_requested_one():
    events = [begins(2), begins(3), begins(4)]
    assert [state["data"].files for _, state in states(events, [3, 10])] == [2, 3]


def test_a_rewrite_at_one_snapshot_is_recognised_by_its_hashes():
    """The sums alone are the same for a rewrite and for no change."""
    state = state_at([begins(2, hash=9), ends(5, hash=9), begins(5, hash=9)], 5)["data"]
    assert (state.files, state.hash, state.changed_at) == (1, 9, 5)
    assert state.added is not None and state.removed is not None


def test_the_past_depends_on_what_ended_and_when():
    """A cleanup changes it, because files of such states can no longer be generated."""
    pasts = [
        state_at(events, 9)["data"].past
        for events in (
            [begins(2), ends(5)],
            [begins(2), ends(6)],
            [begins(2, hash=8), ends(5, hash=8)],
            [],
        )
    ]
    assert len(set(pasts)) == 4


def test_table_without_events_is_empty_everywhere():
    assert state_at([], 7) == {kind: Totals() for kind in KINDS}


FILES = [
    UnservableRange(3, 5, "merged"),
    UnservableRange(5, None, "a mapping"),
    UnservableRange(4, 9, "a vector"),
]


@pytest.mark.parametrize(
    ("snapshot_id", "reason"),
    [
        (2, None),
        (3, "merged"),
        (4, "merged"),
        (5, "a mapping"),
        (9, "a mapping"),
        (99, "a mapping"),
    ],
)
def test_snapshot_is_unservable_while_an_unservable_file_is_visible(snapshot_id, reason):
    assert unservable_reason(FILES, snapshot_id) == reason


def test_snapshot_is_servable_again_after_the_unservable_files_end():
    ended = [UnservableRange(3, 5, "merged"), UnservableRange(4, 9, "a vector")]
    assert [unservable_reason(ended, n) for n in (2, 4, 5, 8, 9)] == [
        None,
        "merged",
        "a vector",
        "a vector",
        None,
    ]
    assert unservable_reason([], 3) is None
