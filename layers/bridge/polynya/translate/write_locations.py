"""Where clients write the files of a table, named by the table's uuid.

Tables can share a directory (after a rename), so a part of each path is the uuid. Because it is
all that a path depends on besides the directory, a table that does not exist yet (stage-create)
already has its paths.
"""

STAGING_DIRECTORY = ".polynya-staging/"
"""DuckLake names no directory like this: in a name with a dot it takes the uuid instead."""


def data_path(table_location: str, table_uuid: str) -> str:
    """The property `write.data.path`: where data files and delete files are, without a slash.

    Args:
        table_location: the directory of the table, with a slash at its end.
    """
    return f"{table_location}{table_uuid}"


def staging_path(staging_location: str, lake_data_path: str, table_uuid: str) -> str:
    """The property `write.metadata.path`: where manifests and manifest lists are, without a slash.

    A commit reads them once, and no row of DuckLake names them. Args: as `staging_root`.
    """
    return f"{staging_root(staging_location, lake_data_path)}{table_uuid}"


def staging_root(staging_location: str, lake_data_path: str) -> str:
    """The directory of these files of all tables, with a slash at its end.

    Args:
        staging_location: the setting; empty: a directory below the lake's data path.
        lake_data_path: DuckLake's option `data_path`.
    """
    return _with_slash(staging_location or _with_slash(lake_data_path) + STAGING_DIRECTORY)


def behind_access_point(virtual_location: str, lake_data_path: str) -> str:
    """Where S3 puts what clients upload to an Object Lambda access point.

    It passes uploads on, under the same key, to its supporting access point, which is one of the
    data's bucket (template.yaml). DuckDB puts the delete files of inlined rows there.
    """
    bucket = lake_data_path.partition("://")[2].partition("/")[0]
    key = virtual_location.partition("://")[2].partition("/")[2]
    return f"s3://{bucket}/{key}"


def _with_slash(location: str) -> str:
    return location if location.endswith("/") else f"{location}/"
