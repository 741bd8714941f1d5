"""Results as aligned text: one table for each measurement, and the machine they are valid for."""

import os
import platform
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

PACKAGES = ("pyiceberg", "fastavro", "pg8000", "duckdb", "fastapi", "boto3")

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Table:
    title: str
    rows: list[Row]
    notes: tuple[str, ...] = ()


def ratio(ours: float, theirs: float) -> str:
    return f"{ours / theirs:.1f}x" if theirs else "-"


def ms(seconds: float) -> float:
    return round(seconds * 1000, 1)


def kb(size: int) -> float:
    return round(size / 1000, 1)


def text(table: Table) -> str:
    """The table with its title; numbers are aligned to the right."""
    names = list(dict.fromkeys(name for row in table.rows for name in row))
    cells = [[_cell(row.get(name, "")) for name in names] for row in table.rows]
    widths = [max(map(len, column)) for column in zip(names, *cells, strict=True)]
    right = [all(_is_number(row.get(name, 0)) for row in table.rows) for name in names]
    lines = [_line(names, widths, right), _line(["-" * width for width in widths], widths, right)]
    lines += [_line(row, widths, right) for row in cells]
    lines += [f"* {note}" for note in table.notes]
    return "\n".join([table.title, "", *lines])


def machine() -> dict[str, Any]:
    """What the figures depend on; the load shows whether other processes were running."""
    return {
        "machine": f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores, {_cpu()}",
        "python": platform.python_version(),
        "packages": {name: version(name) for name in PACKAGES},
        "load": load(),
    }


def load() -> str:
    return f"{os.getloadavg()[0]:.1f}"


def _cpu() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.1f}" if abs(value) >= 0.1 or value == 0 else f"{value:.3f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) or str(value).rstrip("x%").replace(".", "").isdigit()


def _line(cells: list[str], widths: list[int], right: list[bool]) -> str:
    padded = [
        cell.rjust(width) if to_right else cell.ljust(width)
        for cell, width, to_right in zip(cells, widths, right, strict=True)
    ]
    return "  ".join(padded).rstrip()
