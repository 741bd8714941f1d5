"""Table properties that tell Iceberg clients how to write."""

from .write_locations import data_path, staging_path

RULES = {
    # Java deletes files of older snapshots otherwise, which DuckLake's history needs.
    "gc.enabled": "false",
    # Java rewrites our small manifests at every append otherwise.
    "commit.manifest-merge.enabled": "false",
}


def write_properties(
    table_location: str, table_uuid: str, staging_location: str, lake_data_path: str
) -> dict[str, str]:
    """The properties of a table that clients may write to.

    Args:
        table_location: the directory of the table, with a slash at its end.
        staging_location: the setting; empty: below the lake's data path.
    """
    return {
        **RULES,
        "write.data.path": data_path(table_location, table_uuid),
        "write.metadata.path": staging_path(staging_location, lake_data_path, table_uuid),
    }
