"""Cold start of both functions: import and first answer, each in a new process.

If the output of `make build` is given, it is measured with its own Python and no other packages.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
from polynya_local.processes.serving import environment

from .report import Row, Table, ms
from .support.bridge import VIRTUAL_BUCKET, load_table_event, opened, settings
from .support.lakes import NAMESPACE, TABLE
from .support.workshop import Built, Workshop, say

HELP = "import and first answer of both functions, and modules that must not be imported"

ROOT = Path(__file__).parents[1]
EVENTS = ROOT / "events"
TIMES = 5

Run = tuple[list[tuple[float, float]], list[str], list[str]]
"""CPU and wall time at each step, and the modules after the import and after the answer."""
TIMES_WITHOUT_PYC = 2
PACKAGES = 8
OF_THE_RUNTIME = ("boto3", "botocore", "s3transfer", "urllib3", "jmespath", "dateutil", "six.py")

AT_IMPORT = ("numpy", "pandas", "pyarrow", "duckdb", "pyiceberg", "boto3", "botocore.client")
"""Modules that no function may import before it needs them."""

PROGRAM = """
import importlib, json, sys, time, types
module, function, event = sys.argv[1:]
context = types.SimpleNamespace(function_name=function, memory_limit_in_mb=1769,
    invoked_function_arn="arn:aws:lambda:eu-north-1:0:function:f", aws_request_id="0",
    get_remaining_time_in_millis=lambda: 29_000)
times = [(time.process_time(), time.perf_counter())]
app = importlib.import_module(module)
times.append((time.process_time(), time.perf_counter()))
imported = sorted(sys.modules)
answer = app.handler(json.loads(event), context)
times.append((time.process_time(), time.perf_counter()))
if answer["statusCode"] != 200:
    sys.exit(f"bench: {function} answered {answer}")
answered = sorted(sys.modules)
from polynya.storage.aws import Clients
Clients().object_lambda("")
times.append((time.process_time(), time.perf_counter()))
print(json.dumps([times, imported, answered]))
"""


@dataclass(frozen=True, slots=True)
class Function:
    name: str
    event: dict[str, Any]
    artefact: str
    """Its folder in the output of `make build`."""
    not_needed: tuple[str, ...]
    """Modules that its import path may not contain, in addition to AT_IMPORT."""

    def command(self, built: Built | None, *options: str) -> list[str]:
        """The Python command line, without the program."""
        if built is None:
            return [sys.executable, *options]
        return [built.python, "-S", *options]  # only the packages in PYTHONPATH

    def place(self, built: Built | None, runtime: Path) -> tuple[str, dict[str, str]]:
        """The module, and the environment that finds it.

        Args:
            runtime: a folder with the packages that Lambda's runtime provides.
        """
        if built is None:
            return f"functions.{self.name}.app", {}
        folders = [built.folder / self.artefact, built.folder / "BridgeLayer/python", runtime]
        path = os.pathsep.join(map(str, folders))
        return "app", {"PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def run(shop: Workshop) -> list[Table]:
    lake = shop.lake(shop.files[0])
    with opened(lake) as bridge:
        location = bridge.catalog.load_table((NAMESPACE,), TABLE).body["metadata-location"]
    functions = [
        Function("rest_catalog", load_table_event(), "RestCatalogFunction", ()),
        Function(
            "object_lambda",
            _head_event(location),
            "ObjectLambdaFunction",
            ("fastapi", "starlette", "pydantic"),
        ),
    ]
    env = environment({**settings(lake), "POWERTOOLS_LOG_LEVEL": "WARNING"})
    env["PYTHONDONTWRITEBYTECODE"] = ""  # empty is not set: the first run writes .pyc files
    runtime = _runtime(shop.folder / "runtime")
    rows, packages = [], []
    for function in functions:
        for pyc in (True, False):
            say(f"cold start: {function.name}, {'with' if pyc else 'without'} .pyc ...")
            rows.append(_row(function, env, None, runtime, pyc=pyc))
        if shop.built:
            say(f"cold start: {function.name}, as built ...")
            rows.append(_row(function, env, shop.built, runtime, pyc=True))
        packages += _packages(function, env)
    return [
        Table(
            f"Cold start (milliseconds; medians of {TIMES}, without .pyc of {TIMES_WITHOUT_PYC})",
            rows,
            (
                "first answer: loadTable; HEAD of the metadata document; connecting included",
                "boto3: its import and a client for S3, as the first GetObject needs it",
                f"unwanted: any of {', '.join(AT_IMPORT)}; in object_lambda also FastAPI's",
            ),
        ),
        Table(
            f"Where the import time goes (-X importtime, minimum of {TIMES})",
            packages,
            ("of the modules of the package, without their imports; with .pyc",),
        ),
    ]


def _row(
    function: Function, env: dict[str, str], built: Built | None, runtime: Path, *, pyc: bool
) -> Row:
    runs = []
    for _ in range((TIMES + 1) if pyc else TIMES_WITHOUT_PYC):
        with tempfile.TemporaryDirectory() as empty:
            extra = {} if pyc else {"PYTHONPYCACHEPREFIX": empty}
            runs.append(_process(function, env | extra, built, runtime))
    if pyc:
        runs.pop(0)  # this run wrote the missing .pyc files
    _, imported, answered = runs[0]
    unwanted = {*AT_IMPORT, *function.not_needed}
    return {
        "function": function.name,
        "of": f"the build, {Path(built.python).name}" if built else "the source",
        ".pyc": "yes" if pyc else "no",
        "import CPU": _median(runs, 0, 0),
        "import wall": _median(runs, 0, 1),
        "first answer CPU": _median(runs, 1, 0),
        "first answer wall": _median(runs, 1, 1),
        "both wall": ms(statistics.median(times[2][1] - times[0][1] for times, *_ in runs)),
        "boto3 CPU": _median(runs, 2, 0),
        "modules": len(imported),
        "unwanted at import": " ".join(sorted(unwanted.intersection(imported))) or "none",
        "at first answer": " ".join(sorted(unwanted.intersection(answered))) or "none",
    }


def _runtime(folder: Path) -> Path:
    """The packages that Lambda's runtime provides and that the artefact therefore lacks."""
    folder.mkdir()
    packages = Path(boto3.__file__).parents[1]
    for name in OF_THE_RUNTIME:
        (folder / name).symlink_to(packages / name)
    return folder


def _median(runs: list[Run], step: int, clock: int) -> float:
    return ms(statistics.median(t[step + 1][clock] - t[step][clock] for t, *_ in runs))


def _process(function: Function, env: dict[str, str], built: Built | None, runtime: Path) -> Run:
    module, place = function.place(built, runtime)
    command = [*function.command(built), "-c", PROGRAM, module, function.name]
    command.append(json.dumps(function.event))
    cwd = built.folder if built else ROOT
    done = subprocess.run(
        command, cwd=cwd, env=env | place, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"bench: {function.name} failed: {done.stderr[-2000:]}")
    times, imported, answered = json.loads(done.stdout)
    return times, imported, answered


def _packages(function: Function, env: dict[str, str]) -> list[Row]:
    """The packages with most time of their own: the minimum of several runs, as it is wall time."""
    runs = [_own_times(function, env) for _ in range(TIMES)]
    own = Counter({name: min(run[name] for run in runs) for name in runs[0]})
    return [
        {"function": function.name, "package": name, "share": f"{microseconds / own.total():.0%}"}
        for name, microseconds in own.most_common(PACKAGES)
    ]


def _own_times(function: Function, env: dict[str, str]) -> Counter[str]:
    """Microseconds of the import of one function, by package."""
    code = f"import functions.{function.name}.app"
    command = [sys.executable, "-X", "importtime", "-c", code]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    own: Counter[str] = Counter()
    for line in done.stderr.splitlines():
        # import time: self [us] | cumulative | imported package
        microseconds, _, name = line.removeprefix("import time:").split("|")
        if microseconds.strip().isdecimal():
            own[_package(name.strip())] += int(microseconds)
    return own


def _package(module: str) -> str:
    name = module.partition(".")[0]
    return "(standard library)" if name in sys.stdlib_module_names else name


def _head_event(location: str) -> dict[str, Any]:
    event: dict[str, Any] = json.loads((EVENTS / "object_head.json").read_text())
    key = location.removeprefix(f"s3://{VIRTUAL_BUCKET}/")
    host = urlsplit(event["userRequest"]["url"]).netloc
    event["userRequest"]["url"] = f"https://{host}/{key}"
    return event
