"""One value of DuckLake's catalog is wrong: in any column of any of its tables.

Clients get the rows that DuckLake reads then, or the table is refused by a sentence. No answer is
an unexpected error, and tables that the row is not about stay as they are.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from random import Random
from typing import NamedTuple

import pyarrow as pa
import pytest
import requests
from duckdb.sqltypes import DuckDBPyType
from polynya_local.clients import pyiceberg
from polynya_local.clients.canonical import Canonical, from_arrow
from pyiceberg.catalog.rest import TableResponse
from pyiceberg.expressions.visitors import bind, rewrite_not
from pyiceberg.io.pyarrow import expression_to_pyarrow
from pyiceberg.table import Table

from tests.differential.test_filters import predicates
from tests.support.changed_values import (
    Change,
    Changes,
    NativeProcess,
    Read,
    Truth,
    changed,
    script,
)
from tests.support.servers.in_process import reset_functions, standing_in

MODE = "scan-planning-mode"
SETTINGS = {"CHUNK_FILES": "2", "SCAN_PLANNING": "server"}
SECONDS = 60
FILTERS = 4

# (scripts, whether rows are inlined, how many changes, seed)
LAKES = [
    pytest.param(("13",), True, 5, 3, id="few"),
    *(
        pytest.param(numbers, inlines, 400, 1, id="+".join(numbers), marks=pytest.mark.slow)
        for numbers, inlines in [
            (("13", "26"), True),  # inlined rows and deletes; comments, views, macros
            (("28",), False),  # added files with columns in their paths
            (("19", "21"), False),  # buckets, years; sort orders
            (("22", "54"), True),  # columns added with defaults, dropped, renamed; structs
        ]
    ),
]

LISTS = ("config?warehouse=lake", *(f"lake/namespaces{x}" for x in ("", "/main/tables")))

GONE = "either it is gone, or"
"""Without the right to list a bucket, a missing file looks like a missing right: 500 names both."""

UNLIKE_DUCKLAKE = {
    # Only the footer shows it, which is not read for each file.
    ("ducklake_data_file", "record_count"): "PyIceberg skips a file without rows",
    ("ducklake_data_file", "mapping_id"): "an added file looks like one of DuckLake",
    (
        "ducklake_name_mapping",
        "is_partition",
    ): "a file without a column that its mapping says it has",
    ("ducklake_column", "column_type"): "clients do not cast what DuckLake casts",
    # PyIceberg fails on a column of a file that has no name in the mapping.
    **{
        ("ducklake_name_mapping", column): "a name that is not in the mapping"
        for column in ("mapping_id", "source_name", "target_field_id", "parent_column", "row")
    },
}
"""Where clients get other rows than DuckLake, or an error of their own."""

BELIEVED = re.compile("min_value|max_value|value_count|null_count|contains_nan|record_count|row")
"""Columns of statistics that DuckLake believes, so that a filter loses rows there too."""


class Answer(NamedTuple):
    """What a client gets of a read."""

    rows: pa.Table | None
    hidden: frozenset[str] = frozenset()
    status: int = 200
    message: str = ""


UNREADABLE = -1
"""The status of an error in the client, which gets all files of metadata."""


class Served:
    """A lake behind the functions, as PyIceberg and a plain client see it."""

    def __init__(self, stand_in) -> None:
        self._where = (stand_in.api_uri, "lake", stand_in.s3_uri)
        self._client = pyiceberg.open(*self._where)
        self._client._catalog.properties[MODE] = "client"
        self.close = self._client.close

    def get(self, target: str) -> requests.Response:
        return requests.get(f"{self._where[0]}/v1/{target}", timeout=SECONDS)

    def names(self) -> list[str]:
        return [
            one["name"] for one in self.get("lake/namespaces/main/tables").json()["identifiers"]
        ]

    def table(self, name: str) -> Table | Answer:
        answer = self.get(f"lake/namespaces/main/tables/{name}?snapshots=all")
        if not answer.ok:
            return Answer(None, status=answer.status_code, message=answer.text)
        loaded = TableResponse.model_validate_json(answer.text)
        return self._client._catalog._response_to_table(("main", name), loaded)

    def rows(self, table: Table | Answer, snapshot_id: int | None) -> Answer:
        if isinstance(table, Answer):
            return table
        if snapshot_id is not None and table.snapshot_by_id(snapshot_id) is None:
            return Answer(None, status=404, message="the snapshot is not listed")
        hidden = frozenset(json.loads(table.properties.get("polynya.hidden-columns", "[]")))
        try:
            return Answer(table.scan(snapshot_id=snapshot_id).to_arrow(), hidden)
        except Exception as error:
            return self._failure(table, snapshot_id, error)

    def _failure(self, table: Table, snapshot_id: int | None, error: Exception) -> Answer:
        """The answer to whoever reads the manifest list, if that is an error."""
        snapshot = table.snapshot_by_id(snapshot_id) if snapshot_id else table.current_snapshot()
        path = snapshot.manifest_list.removeprefix("s3://")
        answer = requests.get(f"{self._where[2]}/{path}", timeout=SECONDS)
        if answer.ok:
            return Answer(None, status=UNREADABLE, message=f"{type(error).__name__}: {error}")
        return Answer(None, status=answer.status_code, message=answer.text)

    def lost(self, table: Table, rows: pa.Table, random: Random) -> Iterator[str]:
        """Filters with which a scan gives other rows than those that match."""
        possible = [predicate for _, predicate in predicates(table, rows, 2)]
        for predicate in random.sample(possible, min(FILTERS, len(possible))):
            bound = bind(table.schema(), rewrite_not(predicate), case_sensitive=True)
            expected = rows.filter(expression_to_pyarrow(bound)).num_rows
            for mode in ("client", "server"):
                self._client._catalog.properties[MODE] = mode
                try:
                    count = table.scan(predicate).to_arrow().num_rows
                except Exception as error:
                    if IS_REFUSED.search(str(error)):
                        continue
                    yield f"{predicate}, planned by the {mode}: {error}"
                else:
                    if count != expected:
                        yield f"{predicate}, planned by the {mode}: {count} rows, not {expected}"
                finally:
                    self._client._catalog.properties[MODE] = "client"


# PyIceberg writes infinity and NaN as null.
IS_REFUSED = re.compile("BadRequest|HTTP status 400|planned by the client|null is none")


@pytest.mark.parametrize(("numbers", "inlines", "most", "seed"), LAKES)
def test_a_wrong_value_changes_no_other_table_and_no_answer_is_unexpected(
    numbers, inlines, most, seed, lake, moto
):
    written = lake.write(f"changed_{'_'.join(numbers)}", script(*numbers, inlines=inlines))
    native = NativeProcess(written, moto)
    random = Random(seed)
    with (
        closing(native),
        closing(written.database.connect()) as con,
        standing_in(written, moto, **SETTINGS) as stand_in,
        closing(Served(stand_in)) as served,
    ):
        changes = Changes(con, seed)
        reads = list(read_of(served))
        intact = native.read(reads)
        assert not wrong_answers(served, NOTHING, intact, intact, random)
        wrong, made = [], 0
        for change in changes.drawn():
            with changed(con, change) as is_changed:
                if is_changed:
                    made += 1
                    reset_functions()
                    # Other tables at the newest snapshot alone.
                    truths = native.read([r for r in reads if r[0] in change.about or not r[1]])
                    found = wrong_answers(served, change, truths, intact, random)
                    wrong += [f"{change}: {line}" for line in found]
            if made == most:
                break
        reset_functions()
        assert not wrong_answers(served, NOTHING, native.read(reads), intact, random)
    assert not wrong, "\n".join(wrong)
    assert made > min(most, 300) - 1


NOTHING = Change("nothing", "", "", "", frozenset())


def read_of(served: Served) -> Iterator[Read]:
    """The newest snapshot of each table, and an earlier one."""
    for name in served.names():
        table = served.table(name)
        ids = sorted(snapshot.snapshot_id for snapshot in table.snapshots())
        yield name, None
        if len(ids) > 1:
            yield name, ids[len(ids) // 2]


def wrong_answers(
    served: Served,
    change: Change,
    truths: dict[Read, Truth],
    intact: dict[Read, Truth],
    random: Random,
) -> list[str]:
    wrong = []
    for target in LISTS:
        answer = served.get(target)
        if answer.status_code >= 500:
            wrong.append(f"{target}: {answer.status_code} {answer.text}")
    tables = {name: served.table(name) for name, _ in truths}
    for (name, snapshot_id), truth in truths.items():
        answer = served.rows(tables[name], snapshot_id)
        problem = problem_of(answer, truth, intact[name, snapshot_id], change, name in change.about)
        if problem:
            wrong.append(f"{name} at {snapshot_id}: {problem}")
        elif answer.rows and name in change.about and not snapshot_id and has_claims(change):
            wrong += [f"{name}: {line}" for line in served.lost(tables[name], answer.rows, random)]
    return wrong


def has_claims(change: Change) -> bool:
    """Whether the table of the catalog says what files hold, and the change is not believed."""
    if change.table.endswith("column_stats") or change.table == "ducklake_data_file":
        return not BELIEVED.fullmatch(change.column)
    return "partition" in change.table or "file" in change.table


def problem_of(
    answer: Answer, truth: Truth, intact: Truth, change: Change, is_about: bool
) -> str | None:
    is_known = is_about and (change.table, change.column) in UNLIKE_DUCKLAKE
    if answer.rows is None:
        if answer.status == UNREADABLE:
            return None if truth.error or is_known else answer.message
        if (answer.status >= 500 and GONE not in answer.message) or "NoSuchKey" in answer.message:
            return f"{answer.status} {answer.message}"
        is_one_of_others = not is_about and not truth.error
        return f"refused: {answer.message}" if is_one_of_others else None
    if truth.rows is None:
        # Where DuckLake reads nothing, anything goes but another table's rows.
        return None if is_about or rows_of(answer, intact) == shown(intact, answer) else "changed"
    if rows_of(answer, truth) == shown(truth, answer) or is_known:
        return None
    return "other rows than those of DuckLake"


def rows_of(answer: Answer, truth: Truth) -> Canonical:
    types = {name: DuckDBPyType(type_) for name, type_ in truth.types.items()}
    return from_arrow(answer.rows, types, answer.hidden)


def shown(truth: Truth, answer: Answer) -> Canonical:
    """DuckLake's rows without the columns that are hidden."""
    columns, rows = truth.rows.columns, Counter()
    places = [place for place, name in enumerate(columns) if name not in answer.hidden]
    for row, count in truth.rows.rows.items():
        rows[tuple(row[place] for place in places)] += count
    return Canonical(tuple(columns[place] for place in places), rows)
