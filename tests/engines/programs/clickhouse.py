"""What ClickHouse changes in a table. `make killed-programs` runs this file too."""

from contextlib import closing

import pytest

from tests.engines.programs.sinks import ClickHouse
from tests.support.writes.killed_often import Polynya
from tests.support.writes.sinks import ProgramFailed


def test_clickhouse_inserts_deletes_and_adds_columns(lake, moto, tmp_path):
    """Native DuckLake and PyIceberg see it; an UPDATE is refused, and changes nothing."""
    catalog = Polynya(lake, moto, tmp_path, ClickHouse.delivery)
    with closing(catalog.server):
        catalog.create_table()
        with closing(ClickHouse(catalog.bridge, moto, None)) as sink:
            sink.write(0)
            sink.write(1)
            for change in (
                "DELETE FROM ice.`main.t` WHERE id = 1 AND s = '0'",
                "ALTER TABLE ice.`main.t` DELETE WHERE id = 0 AND s = '1'",
                "ALTER TABLE ice.`main.t` ADD COLUMN more Nullable(Int32)",
            ):
                sink.query(change)
            expected = [(0, "0"), (0, "2"), (1, "1"), (1, "2")]
            assert catalog.rows() == expected
            with pytest.raises(ProgramFailed, match="accepts uploads below a table's"):
                sink.query("ALTER TABLE ice.`main.t` UPDATE s = 'x' WHERE id = 1")
        assert catalog.rows() == expected
