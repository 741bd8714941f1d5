"""The statistics files that a table keeps."""

import json

import pytest
from polynya.commits.request.table_commit import TableCommit
from polynya.commits.request.tags import LONGEST_DESCRIPTION, changed_statistics
from polynya.ducklake.rows.objects import Tag
from polynya.mapping.properties import STATISTICS
from polynya.mapping.tables import MOST_FILES, shown_files
from polynya.runtime.errors import BadRequest

STAGING = "s3://lake/.polynya-staging/u/"


def file(snapshot_id, size=10):
    path = f"{STAGING}{snapshot_id}.stats"
    return {"snapshot-id": snapshot_id, "statistics-path": path, "blob-metadata": ["x" * size]}


def after(files, removed=()):
    """What is shown after commits that set these files, one each, and one that removes some."""
    tags: list[Tag] = []
    commits = [TableCommit(statistics={"statistics": [one]}) for one in files]
    commits.append(TableCommit(removed_statistics=[("statistics", id_) for id_ in removed]))
    for commit in commits:
        for key, value in changed_statistics(commit, tags, STAGING).items():
            tags = [Tag(1, key, value)]
    return [one["snapshot-id"] for one in shown_files(tags, 0).get("statistics", [])]


def test_the_newest_of_each_snapshot_are_kept_in_order():
    assert after([file(1), file(2), file(3), file(2, size=11)]) == [1, 3, 2]
    assert after([file(1), file(2), file(1)]) == [1, 2]
    assert after(map(file, [1, 2, 3]), removed=[2, 7]) == [1, 3]
    assert after(map(file, [1]), removed=[1]) == []


def test_the_newest_ten_are_kept():
    ids = list(range(MOST_FILES + 3))
    assert after(map(file, ids)) == ids[3:]


def test_long_descriptions_end_earlier_ones():
    long = LONGEST_DESCRIPTION // 2
    assert after([file(1), file(2, long), file(3, long), file(4, long)]) == [3, 4]
    with pytest.raises(BadRequest, match="compute statistics for fewer columns"):
        after([file(1, LONGEST_DESCRIPTION)])


def test_a_tag_of_an_earlier_version_has_one_file():
    text = json.dumps({"at": 1, "file": file(7)})
    assert shown_files([Tag(1, STATISTICS, text)], 1) == {"statistics": [file(7)]}


def test_a_tag_that_somebody_has_changed_shows_nothing():
    for text in ("", "{}", "[1]", '[{"at": "x", "file": {"snapshot-id": 1}}]'):
        assert shown_files([Tag(1, STATISTICS, text)], 0) == {}
