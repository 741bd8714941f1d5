"""The command `python -m bench`."""

import json
import os
import time
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from polynya_local.processes.serving import environment

from . import (
    capacity,
    cold_start,
    commit,
    encoder,
    load_table,
    manifests,
    page,
    plan,
    publish,
    serve,
    server_plan,
    writes,
)
from .report import load, machine, text
from .support.workshop import Built, say, workshop

MEASUREMENTS = {
    "load-table": load_table,
    "manifests": manifests,
    "encoder": encoder,
    "commit": commit,
    "plan": plan,
    "serve": serve,
    "server-plan": server_plan,
    "publish": publish,
    "cold-start": cold_start,
    "writes": writes,
    "page": page,
    "capacity": capacity,
}
# mypy wants the names as literals.
Name = StrEnum(  # type: ignore[misc]
    "Name", [(name.upper().replace("-", "_"), name) for name in MEASUREMENTS]
)

NAMES = "; ".join(f"{name}: {module.HELP}" for name, module in MEASUREMENTS.items())

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@app.command()
def main(
    names: Annotated[
        list[Name] | None, typer.Argument(metavar="[NAME]...", help=f"Default: all. {NAMES}.")
    ] = None,
    files: Annotated[
        str, typer.Option(metavar="N,N", help="Numbers of data files in the tables.")
    ] = "1000,10000",
    built: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER", help="For cold-start: also measure this `make build` output."
        ),
    ] = None,
    python: Annotated[
        str, typer.Option(metavar="FILE", help="The Python interpreter for that build output.")
    ] = "python3.13",
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables.")] = False,
) -> None:
    """Measure what operations cost, as ratios to the same table as real Iceberg in the same run.

    Tables go to stdout, progress to stderr. CPU times are those of the process that does the work,
    so they are valid on a busy machine too; wall times are not.
    """
    numbers = _numbers(files)
    os.environ.update(environment({}) | {"POWERTOOLS_METRICS_DISABLED": "true"})
    started = time.monotonic()
    report = {**machine(), "tables": []}
    if not as_json:
        print("\n".join(f"{key}: {_words(report[key])}" for key in report if key != "tables"))
    artefact = Built(built.resolve(), python) if built else None
    with workshop(numbers, artefact) as shop:
        for name in names or Name:
            for table in MEASUREMENTS[name].run(shop):
                report["tables"].append(asdict(table))
                if not as_json:
                    print(f"\n{text(table)}", flush=True)
    report["load at the end"] = load()
    if as_json:
        print(json.dumps(report, indent=1))
    say(f"done in {time.monotonic() - started:.0f} s; load at the end {load()}")


def _numbers(files: str) -> list[int]:
    numbers = files.split(",")
    if not all(number.isdecimal() and int(number) >= 1000 for number in numbers):
        raise typer.BadParameter("whole numbers from 1000 on, with commas between")
    return sorted(map(int, numbers))


def _words(value: object) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {item}" for key, item in value.items())
    return str(value)


if __name__ == "__main__":
    app(prog_name="python -m bench")
