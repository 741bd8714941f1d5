"""A client derives each change of rows from the entries and operations of the listed snapshots.

Without that, a client that tries a commit again does not see what others did meanwhile, and commits
over it (docs/developers/architecture.md, "Guarantees").
"""

import pytest
from pyiceberg.exceptions import RESTError

from tests.metadata.expected_metadata import served
from tests.support.derived_changes import ChangesJudge

# One of each kind: partitions, inlining and flush, evolution, merge, rewrite, expiry.
WITH_CHANGES = {"14", "17", "22", "36", "61", "71"}

MOST_SNAPSHOTS = 120


@pytest.mark.slow(but=["[14_"])
def test_each_change_can_be_derived(lake_name, lake, moto, shared_duckdb, left_out):
    wrong, compared = [], 0
    with served(lake(lake_name), moto, shared_duckdb, delivery="object-lambda") as case:
        if case.pyiceberg is None:
            left_out.append(f"{lake_name}: the lake is not served")
            return
        catalog = case.pyiceberg._catalog
        for table in case.native.tables():
            try:
                loaded = catalog.load_table((table.namespace, table.name))
            except RESTError as error:
                left_out.append(f"{lake_name} {table.name}: {error}")
                continue
            if len(loaded.snapshots()) > MOST_SNAPSHOTS:
                left_out.append(f"{lake_name} {table.name}: too many snapshots to read")
                continue
            judge = ChangesJudge(loaded)
            wrong += [f"{table.namespace}.{table.name} at {line}" for line in judge.wrong()]
            compared += judge.compared
            left_out += [f"{lake_name} {table.name}: {line}" for line in judge.unreadable]
    assert wrong == []
    assert compared or lake_name.split("_")[0] not in WITH_CHANGES
