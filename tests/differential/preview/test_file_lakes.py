"""A preview of a lake in files: native DuckLake reads the mirror, and has the file's rows."""

import time
from contextlib import closing

import pytest
import requests
from polynya_local.processes.serving import serving

from tests.support.file_lakes import KINDS, NativeFile, written

pytestmark = pytest.mark.slow
LAKE, TABLE = "22", "se"
SECONDS = 60


@pytest.mark.parametrize("kind", KINDS)
def test_the_mirror_of_a_file_agrees_with_the_file(kind, tmp_path):
    lake = written(LAKE, kind, tmp_path / "lake")
    with closing(NativeFile(lake)) as judge:
        expected = len(judge.rows("main", TABLE))
    with serving(lake.address, None, delivery="object-lambda") as bridge:
        report = ready(f"{bridge.catalog_uri}/tables/main/{TABLE}/rows?format=json")
    assert (report["is_mirror"], report["agree"]) == (True, True)
    assert report["answer"]["native"]["rows"] == expected


def ready(url: str) -> dict:
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        answer = requests.get(url, timeout=SECONDS)
        if answer.status_code != 202:
            answer.raise_for_status()
            return answer.json()
    raise TimeoutError(url)
