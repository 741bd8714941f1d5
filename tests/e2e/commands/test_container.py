"""`polynya serve` as docs/docker/Dockerfile starts it, without a container."""

import json
import re
import shlex
import subprocess
import sys
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest
import yaml
from polynya_local.cli import app
from polynya_local.clients import pyiceberg
from polynya_local.processes.serving import COMMAND, environment
from typer.testing import CliRunner

from tests.support import file_lakes

ROOT = Path(__file__).parents[3]
DOCKER = ROOT / "docs/docker"
DOCKERFILE = (DOCKER / "Dockerfile").read_text().replace("\\\n", " ")
ELSEWHERE = "127.0.0.2"  # stands for an address that is not the loopback interface's usual one


def words_of(instruction: str) -> list[str]:
    """The JSON list of an instruction."""
    [found] = re.findall(rf"^{instruction}.*?(\[.*\])$", DOCKERFILE, re.MULTILINE)
    return json.loads(found)


def healthcheck(port: str) -> list[str]:
    """The command that asks whether the container is healthy, for a catalog at another port."""
    python, *words = words_of("HEALTHCHECK")
    assert python == "python" and sum(":8181/" in word for word in words) == 1
    return [sys.executable, *(word.replace(":8181/", f":{port}/") for word in words)]


@contextmanager
def served(words: list[str], folder: Path):
    """The line of JSON of a command that runs in a folder."""
    command = [*words, "--port", "0"]
    process = subprocess.Popen(
        command, cwd=folder, env=environment({}), stdout=subprocess.PIPE, text=True
    )
    try:
        yield json.loads(process.stdout.readline())
    finally:
        process.terminate()
        assert process.wait(20) == 0
        process.stdout.close()


def status(url: str, host: str | None = None) -> int:
    request = Request(url, headers={"Host": host} if host else {})
    try:
        with urlopen(request, timeout=20) as answer:
            return answer.status
    except HTTPError as error:
        error.close()
        return error.code


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    lake = file_lakes.empty("duckdb", tmp_path_factory.mktemp("container"))
    return lake.folder


def test_the_container_is_reached_and_healthy(folder):
    name, *words = words_of("ENTRYPOINT")
    assert name == "polynya"
    with served([*COMMAND, *words, "lake.duckdb", "--allow-host", "polynya"], folder) as ready:
        port, s3_port = (ready[key].rpartition(":")[2] for key in ("catalog_uri", "s3_endpoint"))
        healthy = healthcheck(port)
        assert subprocess.run(healthy).returncode == 0, shlex.join(healthy)
        for at in (port, s3_port):
            url = f"http://{ELSEWHERE}:{at}/" + ("health" if at == port else "polynya-local-data")
            assert (status(url), status(url, "polynya"), status(url, "evil.example")) == (
                200,
                200,
                421,
            )


@pytest.mark.slow
def test_without_the_option_only_the_loopback_interface_is_listened_on(folder):
    with served([*COMMAND, "serve", "lake.duckdb"], folder) as ready:
        port = ready["catalog_uri"].rpartition(":")[2]
        assert status(f"http://127.0.0.1:{port}/health") == 200
        assert status(f"http://127.0.0.1:{port}/v1/config", "evil.example") == 421
        with pytest.raises(URLError, match="refused"):
            status(f"http://{ELSEWHERE}:{port}/health")


@pytest.mark.slow
def test_an_address_of_this_machine_is_listened_on(tmp_path):
    lake = file_lakes.empty("duckdb", tmp_path)
    with file_lakes.writing(lake) as con:
        con.execute("CREATE TABLE t AS SELECT i FROM range(100) AS r(i)")
    with served([*COMMAND, "serve", "lake.duckdb", "--host", ELSEWHERE], tmp_path) as ready:
        where = (ready["catalog_uri"], ready["warehouse"], ready["s3_endpoint"])
        assert all(ELSEWHERE in address for address in (where[0], where[2]))
        with closing(pyiceberg.open(*where)) as client:
            assert client.rows("main", "t").num_rows == 100
        with pytest.raises(URLError, match="refused"):
            status(ready["catalog_uri"].replace(ELSEWHERE, "127.0.0.1") + "/health")


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--host", "lake.example"], 2, "is not an IPv4 address"),
        (["--host", "192.0.2.1"], 1, "--host takes an address of this machine"),
    ],
)
def test_an_address_of_another_machine_is_refused(words, code, message, folder):
    refused = CliRunner().invoke(app, ["serve", str(folder / "lake.duckdb"), *words])
    assert refused.exit_code == code and message in refused.stderr


def test_the_compose_file_agrees_with_the_document():
    """tests/docs/test_team.py runs its command."""
    text, page = (DOCKER / "compose.yaml").read_text(), (ROOT / "docs/team.md").read_text()
    service = yaml.safe_load(text)["services"]["polynya"]
    given = re.findall(r"\$\{(\w+):\?\}", text)
    assert {*given} == {*re.findall(r"^ +([A-Z0-9_]+)=", page, re.MULTILINE)}
    # What is mounted has what the command reads, and the document says how each is made.
    assert service["volumes"] == ["./access:/access:ro"]
    for name in re.findall(r"/access/([\w.]+)", " ".join(service["command"])):
        assert f"`{name}`" in page
    assert service["ports"] == ["8181:8181", "8182:8182"]
    # As the image: a container is not restarted because PostgreSQL does not answer.
    assert ":8181/live'" in " ".join(service["healthcheck"]["test"])


def test_nobody_elsewhere_may_write(lake, moto):
    words = ["serve", lake("01").database.url, "--s3-endpoint", moto, "--port", "0"]
    refused = CliRunner().invoke(app, [*words, "--writes", "--host", "0.0.0.0"])
    assert refused.exit_code == 1 and "would let everybody write" in refused.stderr
