"""Where clients write: below a directory of the table's uuid, in two places."""

import pytest
from polynya.mapping.properties import data_path, staging_path

UUID = "01a1fad5-de06-72d5-96d5-394e01873100"


@pytest.mark.parametrize(
    ("table_location", "expected"),
    [
        ("s3://lake/main/t/", f"s3://lake/main/t/{UUID}"),
        ("s3://lake//x y/%2F/", f"s3://lake//x y/%2F/{UUID}"),
    ],
)
def test_data_files_are_in_the_directory_of_the_table(table_location, expected):
    assert data_path(table_location, UUID) == expected


@pytest.mark.parametrize(
    ("setting", "lake_data_path", "expected"),
    [
        ("", "s3://lake/d/", f"s3://lake/d/.polynya-staging/{UUID}"),
        ("", "s3://lake", f"s3://lake/.polynya-staging/{UUID}"),
        ("s3://other/staged/", "s3://lake/d/", f"s3://other/staged/{UUID}"),
        ("s3://other/staged", "s3://lake/d/", f"s3://other/staged/{UUID}"),
        ("s3://other", "s3://lake/d/", f"s3://other/{UUID}"),
    ],
)
def test_metadata_files_are_below_the_staging_location(setting, lake_data_path, expected):
    assert staging_path(setting, lake_data_path, UUID) == expected
