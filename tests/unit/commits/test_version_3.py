"""What a new column of a type that needs format version 3 must fit."""

import pytest
from polynya.commits.plan.columns import check_version, new_column_type
from polynya.commits.request.tags import requested_version
from polynya.ducklake.column_tree import ColumnNode
from polynya.ducklake.writes.stats import box_text
from polynya.rest.schemas import type_of
from polynya.runtime.errors import BadRequest

TYPES = ("geometry", "timestamp_ns", "variant")


@pytest.mark.parametrize("column_type", [*TYPES, "timestamptz_ns"])
def test_version_3_has_the_type(column_type):
    column = ColumnNode(1, "c", column_type)
    check_version([column], 3, is_1_1=True)
    with pytest.raises(BadRequest, match="needs format version 3"):
        check_version([column], 2, is_1_1=True)


def test_catalogs_before_1_1_have_no_nanoseconds_with_a_zone():
    column = ColumnNode(1, "s", "struct", children=(ColumnNode(2, "c", "timestamptz_ns"),))
    check_version([column], 3, is_1_1=True)
    with pytest.raises(BadRequest, match=r"the column s\.c has the type timestamptz_ns"):
        check_version([column], 3, is_1_1=False)


@pytest.mark.parametrize(
    ("properties", "upgrade", "version"),
    [
        ({}, None, None),
        ({"format-version": "1"}, None, 1),
        ({"format-version": "3"}, None, 3),
        ({}, 1, 1),
        ({}, 3, 3),
        ({"format-version": "2"}, 3, 3),
    ],
)
def test_a_client_asks_for_a_version(properties, upgrade, version):
    assert requested_version(properties, upgrade) == version


@pytest.mark.parametrize(("properties", "upgrade"), [({"format-version": "4"}, None), ({}, 0)])
def test_ducklake_has_no_table_of_another_version(properties, upgrade):
    with pytest.raises(BadRequest, match="format version 2 or 3"):
        requested_version(properties, upgrade)


@pytest.mark.parametrize("name", ["geometry", "geometry(OGC:CRS84)", "geometry(ogc:crs84)"])
def test_the_default_coordinate_reference_system_may_be_named(name):
    assert new_column_type(type_of(name).name, "c") == "geometry"


@pytest.mark.parametrize(
    "name", ["geometry(EPSG:3857)", "geography", "geography(OGC:CRS84, karney)"]
)
def test_others_are_refused(name):
    with pytest.raises(BadRequest, match="no geography, and no coordinate reference system"):
        new_column_type(type_of(name).name, "c")


def test_a_box_without_finite_edges_is_not_written():
    with pytest.raises(ValueError, match="inf"):
        box_text(
            [({f"{axis}{end}": float("inf") for axis in "xyzm" for end in ("min", "max")}, [])]
        )
