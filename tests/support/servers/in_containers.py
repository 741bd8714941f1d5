"""A function in a container: `sam local invoke`, with the Docker engine of sam-local-docker.sh.

Containers reach this machine at the address of their bridge, so connections to it are relayed to
127.0.0.1 until the function stops.
"""

import json
import os
import re
import socket
import subprocess
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml
from polynya.runtime.settings import SETTINGS

from tests.aws.template import TemplateLoader
from tests.checks.emulator import BUILD, PARAMETERS, SAM, in_json

BRIDGE = "172.31.250.1"
FUNCTIONS = {
    "rest_catalog": "RestCatalogFunction",
    "object_lambda": "ObjectLambdaFunction",
    "commits": "CommitsFunction",
}
OURS = {setting.name for setting in SETTINGS} | {"AWS_ENDPOINT_URL_S3"}


class Containers:
    """A function that handles each event in a new container."""

    def __init__(self, function: str, timeout_s: int) -> None:
        self._name = FUNCTIONS[function]
        self._folder = tempfile.TemporaryDirectory()
        variables = {name: value for name, value in os.environ.items() if name in OURS}
        variables["DATABASE_URL"] += "?sslmode=disable"
        for port in _ports(json.dumps(variables)):
            if port not in RELAYS:  # both functions use the same relay
                RELAYS[port] = Relay(port)
        template = in_json(yaml.load((BUILD / "template.yaml").read_text(), Loader=TemplateLoader))
        given = json.loads(_bridged(json.dumps(variables)))
        template["Globals"]["Function"]["Environment"]["Variables"] = given
        for name in FUNCTIONS.values():
            template["Resources"][name]["Properties"]["Environment"]["Variables"] = given
        # Beside the built template, because it names folders relative to itself.
        self._template = BUILD / f"{function}.json"
        self._template.write_text(json.dumps(template))

    def invoke(self, event: dict[str, Any]) -> Any:
        path = Path(self._folder.name) / "event.json"
        path.write_text(_bridged(json.dumps(event)))
        given = PARAMETERS | {"DatabaseHost": "db", "DatabaseName": "d", "Vending": "no"}
        given["Writes"] = "yes" if self._name == FUNCTIONS["commits"] else "no"
        command = [SAM, "local", "invoke", self._name, "--event", path, "--skip-pull-image"]
        command += ["--template", self._template, "--parameter-overrides"]
        command += [f"{name}={value}" for name, value in given.items()]
        # SAM prefers a variable of its own environment to the template's.
        ours = [name for name in os.environ if name in OURS or name.startswith("AWS_")]
        environment = {k: v for k, v in os.environ.items() if k not in ours}
        environment |= {"AWS_EC2_METADATA_DISABLED": "true", "AWS_DEFAULT_REGION": "us-east-1"}
        run = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False, timeout=300
        )
        lines = run.stdout.strip().splitlines()
        if not lines:
            raise RuntimeError(run.stderr[-3000:])
        return json.loads(lines[-1])

    def stop(self) -> None:
        while RELAYS:
            RELAYS.popitem()[1].stop()
        self._folder.cleanup()


RELAYS: dict[int, "Relay"] = {}


def _ports(text: str) -> list[int]:
    return [int(port) for port in re.findall(r"127\.0\.0\.1:(\d+)", text)]


def _bridged(text: str) -> str:
    return text.replace("127.0.0.1", BRIDGE)


class Relay:
    """Relays connections to a port of the bridge to the same port of 127.0.0.1."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._socket = socket.create_server((BRIDGE, port))
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                outer, _ = self._socket.accept()
                inner = socket.create_connection(("127.0.0.1", self._port))
                for one, other in ((outer, inner), (inner, outer)):
                    threading.Thread(target=_pump, args=(one, other), daemon=True).start()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)
