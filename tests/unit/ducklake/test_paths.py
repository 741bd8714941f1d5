import pytest
from polynya.ducklake.paths import file_location, table_location
from polynya.ducklake.rows.files import DeleteFile
from polynya.ducklake.rows.objects import Lake, Schema, Table

RELATIVE = {"lake": "s3://lake/data/", "schema": "main/", "table": "t/", "file": "f.parquet"}


def locations(**levels: str | tuple[str, bool]) -> tuple[str, str]:
    """The locations of a table and a file in it; a level is a path or (path, is_relative)."""
    paths = RELATIVE | levels
    schema, table, file = (
        (paths[level], True) if isinstance(paths[level], str) else paths[level]
        for level in ("schema", "table", "file")
    )
    where = (
        row(Lake, data_path=paths["lake"]),
        row(Schema, path=schema[0], path_is_relative=schema[1]),
        row(Table, path=table[0], path_is_relative=table[1]),
    )
    of_file = row(DeleteFile, path=file[0], path_is_relative=file[1])
    return table_location(*where), file_location(*where, of_file)


def row(kind: type, **values):
    """A record in which only these values matter."""
    return kind(**dict.fromkeys(kind.__dataclass_fields__) | values)


@pytest.mark.parametrize(
    ("levels", "table", "file"),
    [
        ({}, "s3://lake/data/main/t/", "s3://lake/data/main/t/f.parquet"),
        # An absolute level replaces all levels before it.
        ({"file": ("s3://x/f", False)}, "s3://lake/data/main/t/", "s3://x/f"),
        ({"table": ("s3://x/t/", False)}, "s3://x/t/", "s3://x/t/f.parquet"),
        ({"schema": ("s3://x/", False)}, "s3://x/t/", "s3://x/t/f.parquet"),
        (
            {"schema": ("s3://x/", False), "table": ("s3://y/t/", False)},
            "s3://y/t/",
            "s3://y/t/f.parquet",
        ),
        # Nothing else is normalised, decoded or encoded, because these are keys of S3.
        ({"file": ("s3://x/./a/././f", False)}, "s3://lake/data/main/t/", "s3://x/a/f"),
        ({"file": "./a./.b"}, "s3://lake/data/main/t/", "s3://lake/data/main/t/a./.b"),
        ({"lake": "s3://lake//"}, "s3://lake//main/t/", "s3://lake//main/t/f.parquet"),
        ({"table": "/t/"}, "s3://lake/data/main//t/", "s3://lake/data/main//t/f.parquet"),
        (
            {"file": "k=a%2Fb%20c/é ü/../f.parquet"},
            "s3://lake/data/main/t/",
            "s3://lake/data/main/t/k=a%2Fb%20c/é ü/../f.parquet",
        ),
        # A local lake on one machine; a path without an absolute base stays relative.
        ({"lake": "/srv/lake/"}, "/srv/lake/main/t/", "/srv/lake/main/t/f.parquet"),
        ({"lake": "data/"}, "data/main/t/", "data/main/t/f.parquet"),
        ({"schema": "", "table": ""}, "s3://lake/data/", "s3://lake/data/f.parquet"),
    ],
)
def test_each_level_is_added_or_replaces_what_was_before(levels, table, file):
    assert locations(**levels) == (table, file)
