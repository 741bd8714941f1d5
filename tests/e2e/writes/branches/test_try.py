import pyarrow as pa, pytest
from contextlib import closing
from tests.support.writes.everywhere import everywhere, plain
ROWS = pa.table({"id": [1, 2], "s": ["a", "b"]})
@pytest.fixture(scope="module")
def lake_of(lake, moto):
    with everywhere(lake, moto, "branches") as one:
        yield one

def rows(table, branch):
    return sorted(map(tuple, (r.values() for r in table.scan(snapshot_id=table.snapshot_by_name(branch).snapshot_id).to_arrow().to_pylist())))

def test_try(lake_of):
    at, name = lake_of, lake_of.new("t")
    table = at.catalog.create_table(f"main.{name}", ROWS.schema)
    table.append(ROWS)
    at.native(f"INSERT INTO {name} VALUES (3, 'native')")
    table.refresh()
    head = table.current_snapshot().snapshot_id
    table.manage_snapshots().create_branch(head, "b").commit()
    more = pa.table({"id": [10, 11], "s": ["x", "y"]})
    table.append(more, branch="b")
    print(table.refs())
    print(rows(table, "b"))
    table.delete("id = 2", branch="b")
    print(rows(table, "b"), rows(table, "main"))
    table.overwrite(pa.table({"id": [3], "s": ["over"]}), "id = 3", branch="b")
    print(rows(table, "b"), rows(table, "main"))
    print("native", at.native(f"FROM {name}"))
    print("duckdb", at.duckdb(f"FROM ice.main.{name}"))
    print("duckdb tx", at.duckdb("BEGIN", f"FROM ice.main.{name}"))
    print("duckdb at", at.duckdb(f"FROM ice.main.{name} AT (TIMESTAMP => now())"))
    b = table.snapshot_by_name("b").snapshot_id
    print("duckdb at b", at.duckdb(f"FROM ice.main.{name} AT (VERSION => {b})"))
    table.refresh()
    for s in at.document(name)["snapshots"]: print(s)
    at.commit(name, {"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":b})
    table.refresh()
    print(table.refs(), rows(table,"b"), rows(table,"main"))
    print("native", at.native(f"FROM {name}"))
    at.check(name)
    for s in at.document(name)["snapshots"]: print(s)
