"""`polynya serve --cache`: what was generated for a lake stays, whatever else is served."""

import re
import shutil
from io import BytesIO

import fastavro
import pytest
import requests
from polynya_local.processes.serving import Bridge, serving

from tests.e2e.commands.test_workers import SCRIPT


def table(name: str) -> str:
    return f"/v1/{name}/namespaces/main/tables/t"


def read(bridge: Bridge, name: str) -> tuple[bytes, bytes]:
    """The manifest list of a lake's table, and its manifest."""
    metadata = requests.get(bridge.catalog_uri + table(name), timeout=60).json()["metadata"]
    manifest_list = fetched(bridge, metadata["snapshots"][-1]["manifest-list"])
    [manifest] = fastavro.reader(BytesIO(manifest_list))
    return manifest_list, fetched(bridge, manifest["manifest_path"])


def fetched(bridge: Bridge, location: str) -> bytes:
    path = location.removeprefix("s3://")
    answer = requests.get(f"{bridge.s3_endpoint}/{path}", timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.content


def builds(bridge: Bridge) -> dict[str, float]:
    """How many files were generated, by the lake."""
    text = requests.get(f"{bridge.catalog_uri}/metrics", timeout=60).text
    found = re.findall(r'polynya_builds_total\{lake="(.*)"\} (.*)', text)
    return {lake: float(number) for lake, number in found}


@pytest.fixture
def serve(lake, moto, tmp_path):
    """Serves lakes of these names, each time with the same folder."""
    lakes = {name: lake.write(f"cached_{name}", SCRIPT) for name in ("a", "b")}

    def server(*names: str, workers: int = 1):
        lines = [f'[{name}]\ndatabase_url = "{lakes[name].database.url}"\n' for name in names]
        (tmp_path / "lakes.toml").write_text("".join(lines))
        options = "--lakes", str(tmp_path / "lakes.toml"), "--cache", str(tmp_path / "cache")
        return serving(
            None,
            moto,
            delivery="object-lambda",
            page=False,
            options=(*options, "--workers", str(workers)),
        )

    return server


def test_a_lake_that_is_added_leaves_the_others_warm(serve, tmp_path):
    with serve("a") as bridge:
        first = read(bridge, "a")
        assert builds(bridge)["a"] >= 2
    with serve("b", "a", workers=2) as bridge:
        assert read(bridge, "a") == first
        assert "a" not in builds(bridge)
        read(bridge, "b")
        assert builds(bridge)["b"] >= 2
    with serve("b") as bridge:
        read(bridge, "b")
        assert builds(bridge) == {}
    assert len([*(tmp_path / "cache").iterdir()]) == 2


def test_the_folder_may_be_deleted_while_it_is_used(serve, tmp_path):
    with serve("a", workers=2) as bridge:
        first = read(bridge, "a")
        shutil.rmtree(tmp_path / "cache")
        assert read(bridge, "a") == first
    # What is in the memory of a process is not written again; another one generates it.
    with serve("a") as bridge:
        assert read(bridge, "a") == first
    with serve("a") as bridge:
        assert read(bridge, "a") == first
        assert builds(bridge) == {}
