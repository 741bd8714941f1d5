"""The page over catalogs of other versions, whose tables have other columns."""

import pytest

from tests.pages.conftest import showing
from tests.pages.test_every_lake import visit_all
from tests.support.catalog_versions import WRITTEN, restored, to_1_1

IN_CI = {"0.2"}
OLD = [pytest.param(name, marks=[] if name in IN_CI else [pytest.mark.slow]) for name in WRITTEN]


@pytest.mark.slow
@pytest.mark.parametrize("name", OLD)
def test_each_page_of_an_old_lake_can_be_visited(name, postgres_server, moto):
    with showing(restored(name, "-page", postgres_server, moto), moto) as page:
        assert len(visit_all(page)) > 10
        assert any(line["rows"] for line in page.report("/")["lines"])


@pytest.mark.slow
def test_each_page_of_a_newer_lake_can_be_visited(lake, moto):
    newer = lake.copied("13")
    to_1_1(newer)
    with showing(newer, moto) as page:
        assert len(visit_all(page)) > 10
        assert any(line["inlined"] for line in page.report("/")["lines"])
