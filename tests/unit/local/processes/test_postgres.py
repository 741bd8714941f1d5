import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from polynya_local.processes.postgres import GIVEN, Database, database_of

URLS = [
    ("postgresql://u@h:5433/d", Database("h", 5433, "u", "d")),
    ("postgresql://u:p%40ss@h:5433/d", Database("h", 5433, "u", "d", "p@ss")),
    ("postgresql://u@h:5433/my%20lake", Database("h", 5433, "u", "my lake")),
]


@pytest.mark.parametrize("url, database", URLS)
def test_a_url_names_a_database(url, database):
    assert database_of(url) == database
    assert database.url == url


def test_parts_that_a_url_omits_have_postgresqls_defaults():
    assert database_of("postgresql://h") == Database("h", 5432, "postgres", "postgres")


def test_another_scheme_is_an_error():
    with pytest.raises(ValueError, match="mysql:"):
        database_of("mysql://u@h/d")


def test_libpq_values_are_quoted_if_necessary():
    database = Database("h", 5432, "u", "it's a \\", "p w")
    assert database.libpq == r"dbname='it\'s a \\' host=h port=5432 user=u password='p w'"


START = """
import json, sys, time
from polynya_local.processes.postgres import postgres
with postgres() as server:
    [[data]] = server.maintenance.run("SHOW data_directory")
    print(json.dumps(data), flush=True)
    time.sleep(60)
"""


def test_a_server_ends_with_the_process_that_started_it():
    """Also if that is killed, so that it can do nothing more itself."""
    environ = {name: value for name, value in os.environ.items() if name != GIVEN}
    words = [sys.executable, "-c", START]
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environ) as process:
        try:
            data = Path(json.loads(process.stdout.readline()))
            pid = int((data / "postmaster.pid").read_text().split()[0])
        finally:
            process.kill()
    deadline = time.monotonic() + 20
    while (is_alive(pid) or data.parent.exists()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(pid)
    assert not data.parent.exists()


def is_alive(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False
