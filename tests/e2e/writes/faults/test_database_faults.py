"""PostgreSQL goes away within a commit: the rows are there exactly once, or not at all."""

import itertools
from contextlib import closing
from dataclasses import replace

import pyarrow as pa
import pytest
from polynya_local.clients.pyiceberg import s3_properties
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import CommitStateUnknownException

from tests.support.servers.cut_connections import cutting
from tests.support.servers.in_process import bridge
from tests.support.writes.writable import EMPTY, judging, set_up_writes

EVERY = 7
"""All pieces were cut once; every seventh takes half a minute."""
AT_LEAST = 4
"""Cuts of an append: it sends some thirty statements, each of them in one piece or more."""
SCHEMA = pa.schema([("id", pa.int64())])


@pytest.fixture(scope="module")
def served(lake, moto):
    one = set_up_writes(lake.write("cut", EMPTY))
    with cutting(one.database.port) as (port, cuts):
        url = replace(one.database, port=port).url
        with bridge(one, moto, writes=True, settings={"DATABASE_URL": url}) as served:
            yield one, served, cuts


@pytest.fixture
def cuts(served):
    yield served[2]
    served[2].then_away = served[2].is_away = False


@pytest.fixture
def table(served, request):
    s3 = s3_properties(served[1].s3_endpoint)
    with closing(RestCatalog("c", uri=served[1].catalog_uri, warehouse="lake", **s3)) as catalog:
        yield catalog.create_table(f"main.{request.node.name}", SCHEMA)


@pytest.fixture
def ids(served, moto, request):
    def found() -> list[int]:
        with judging(served[0], moto) as judge:
            name = f'lake.main."{request.node.name}"'
            return [id_ for (id_,) in judge.query(f"SELECT id FROM {name} ORDER BY id")]

    return found


def rows(*values: int) -> pa.Table:
    return pa.table({"id": pa.array(values, pa.int64())})


def test_a_connection_that_is_lost_anywhere_costs_another_attempt(table, cuts, ids):
    """Each append loses its connection some pieces later than the one before."""
    numbers, before = [], cuts.done
    for number in itertools.count(step=EVERY):
        numbers.append(number)
        done, cuts.at_piece = cuts.done, number
        table.append(rows(number))
        if cuts.done == done:
            break
    cuts.at_piece = None
    assert AT_LEAST <= cuts.done - before == len(numbers) - 1
    assert ids() == numbers


@pytest.mark.parametrize("when", ["before_commit", "after_commit"])
def test_a_commit_whose_answer_is_lost_is_found_by_the_next_claim(table, cuts, ids, when):
    done = cuts.done
    setattr(cuts, when, True)
    table.append(rows(1, 2))
    assert cuts.done == done + 1
    assert ids() == [1, 2]
    assert len(table.refresh().snapshots()) == 1


# Each waits until the time of a request is up.
WHILE_AWAY = [
    pytest.param("before_commit", [], marks=pytest.mark.slow),
    pytest.param("after_commit", [1, 2]),
]


@pytest.mark.parametrize(("when", "expected"), WHILE_AWAY)
def test_a_commit_is_unknown_while_postgresql_is_away(table, cuts, ids, when, expected):
    setattr(cuts, when, True)
    cuts.then_away = True
    with pytest.raises(CommitStateUnknownException, match="lost at COMMIT"):
        table.append(rows(1, 2))
    assert ids() == expected
    cuts.is_away = False
    assert len(table.refresh().snapshots()) == len(expected) // 2


def test_a_terminated_backend_costs_another_attempt(served, table, ids, monkeypatch):
    """`pg_terminate_backend` just before the files are written."""
    from polynya.ducklake.writes import files

    kept, killed = files.add, []

    def add(con, *arguments):
        if not killed:
            [[pid]] = con.run("SELECT pg_backend_pid()")
            killed.append(pid)
            served[0].database.run("SELECT pg_terminate_backend(:pid)", pid=pid)
        kept(con, *arguments)

    monkeypatch.setattr(files, "add", add)
    table.append(rows(1, 2))
    assert killed and ids() == [1, 2]
