"""NGINX and HAProxy from Debian's packages, with the configurations of docs/team.md."""

import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from socket import create_connection

import pytest
from polynya_local.processes.postgres import HOST, free_port

from tests.support.debian import install

DOCUMENT = (Path(__file__).parents[3] / "docs/team.md").read_text()

AROUND_NGINX = """
daemon off; master_process off; pid {folder}/pid; error_log {folder}/log notice;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
{text}
}}
"""


def configuration(name: str) -> str:
    """The configuration of a program in the document."""
    [text] = re.findall(rf"```{name}\n(.*?)```", DOCUMENT, re.DOTALL)
    return text


@contextmanager
def balanced_by(
    name: str, ports: list[int], certificate: Path, key: Path, folder: Path
) -> Iterator[tuple[int, int]]:
    """Run a balancer before two servers; yields its ports, for the catalog and for S3.

    Args:
        ports: of the catalogs of the servers; S3 has the next ones.
    """
    program = install(name, lambda: shutil.which(name) or shutil.which(f"/usr/sbin/{name}"))
    if program is None:
        pytest.skip(f"no {name}: it is installed by root on Debian")
    own = free_port(), free_port()
    text = configuration(name)
    for number, port in enumerate(ports, 1):
        checked = f"10.0.0.{number}:8182 check port"
        text = text.replace(f"{checked} 8181", f"{checked} {port}")
        for more in (0, 1):
            place = f"10.0.0.{number}:{8181 + more}"
            assert place in text
            text = text.replace(place, f"{HOST}:{port + more}")
    for theirs, ours in zip(("8181", "8182"), own, strict=True):
        text = re.sub(rf"\b(?<!/){theirs}\b", str(ours), text)
    text = text.replace("lake.example", "localhost")
    (folder / "both.pem").write_text(certificate.read_text() + key.read_text())
    for file, ours in {
        "lake.crt": certificate,
        "lake.key": key,
        "lake.pem": folder / "both.pem",
    }.items():
        text = re.sub(rf"\S+/{file}", str(ours), text)
    if name == "nginx":
        text = text.replace("listen ", f"listen {HOST}:")
        text = AROUND_NGINX.format(folder=folder, text=text)
        words = [program, "-p", folder, "-c", folder / "conf"]
    else:
        text = text.replace("bind :", f"bind {HOST}:")
        words = [program, "-db", "-f", folder / "conf"]
    (folder / "conf").write_text(text)
    with (folder / "output").open("w+") as output:
        process = subprocess.Popen(words, stdout=output, stderr=output, start_new_session=True)
        try:
            until = time.monotonic() + 20
            while not all(map(_listens, own)):
                assert process.poll() is None and time.monotonic() < until, _log(folder)
                time.sleep(0.05)
            yield own
        finally:
            process.terminate()
            process.wait(30)


def _listens(port: int) -> bool:
    with suppress(OSError), create_connection((HOST, port), timeout=1):
        return True
    return False


def _log(folder: Path) -> str:
    return "\n".join(file.read_text()[-2000:] for file in folder.iterdir() if file.is_file())
