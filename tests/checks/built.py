"""Check the result of `make build`: sizes, .pyc files, and the versions used by the tests."""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LIMITS = {  # megabytes, unzipped; Lambda allows 250 for a function with its layers
    ("BridgeLayer",): 40,
    ("BridgeLayer", "ColumnarLayer"): 180,
    ("BridgeLayer", "ColumnarLayer", "RestCatalogFunction"): 220,
    ("BridgeLayer", "ColumnarLayer", "TracingLayer", "RestCatalogFunction"): 240,
    ("BridgeLayer", "ColumnarLayer", "TracingLayer", "CommitsFunction"): 240,
}
# The name of the metadata folder of an installed package, with its version.
DIST_INFO = re.compile(r"(?P<name>.+)-(?P<version>[^-]+)\.dist-info")


def megabytes(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 1e6


def without_pyc(folder: Path) -> list[Path]:
    return [
        path
        for path in folder.rglob("*.py")
        if not list((path.parent / "__pycache__").glob(f"{path.stem}.cpython-*.pyc"))
    ]


def normal(name: str) -> str:
    return re.sub("[-_.]+", "-", name).lower()


def locked() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    pairs = (line.split("==") for line in lines if "==" in line)
    return {normal(name): version for name, version in pairs}


def problems(build: Path) -> list[str]:
    found = []
    for folders, limit in LIMITS.items():
        size = sum(megabytes(build / folder) for folder in folders)
        print(f"{' + '.join(folders)}: {size:.0f} MB of {limit}")
        if size > limit:
            found.append(f"{' + '.join(folders)} is over {limit} MB")
    sources = [path for path in without_pyc(build) if path.stat().st_size]
    found += [f"no .pyc for {path}" for path in sources]
    versions = locked()
    for path in build.rglob("*.dist-info"):
        name, version = DIST_INFO.fullmatch(path.name).groups()
        if versions.get(normal(name)) != version:
            found.append(f"{name} {version}, but the tests ran {versions.get(normal(name))}")
    return found


if __name__ == "__main__":
    sys.exit("\n".join(problems(Path(sys.argv[1]))) or None)
