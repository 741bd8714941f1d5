"""A manifest list and its manifests: Polynya's are from PostgreSQL, PyIceberg's from records."""

from dataclasses import replace
from functools import partial

from polynya.iceberg.avro import columnar
from polynya.mapping import data_files
from polynya.virtual_files import manifest_lists
from polynya_local.clients.native import Lake
from pyiceberg.io.pyarrow import PyArrowFileIO

from .measure import SQL, Runs, cost
from .report import Row, Table, ms, ratio
from .support.bridge import Bridge, opened
from .support.iceberg import original, write_manifests
from .support.workshop import Workshop, say

HELP = "a manifest list with its manifest, generated and cached, beside PyIceberg's writers"

TIMES = 3
PARTS = {
    "SQL": SQL,
    "translate": ((data_files, "data_files"),),
    "encode": ((columnar, "manifest_bytes"), (manifest_lists, "manifest_list_bytes")),
}


def run(shop: Workshop) -> list[Table]:
    costs, parts = [], []
    for files in shop.files:
        lake = shop.lake(files)
        say(f"manifests: {files:,} files ...")
        cold = _cold(lake)
        with opened(lake) as bridge:
            costs.append(_costs(shop, bridge, files, cold))
        parts.append(_parts(files, cold))
    return [
        Table(
            f"A manifest list and its manifest (milliseconds; cold: medians of {TIMES})",
            costs,
            (
                "cold: nothing cached, connection open; warm: cached in process, no DynamoDB or S3",
                "files/s: of CPU, cold; kB: statistics repeat every 8 files and compress well",
                "iceberg: ManifestWriter and ManifestListWriter on the same entries, prepared;",
                "  encode ratio: the CPU of Polynya's encoding alone, divided by that",
            ),
        ),
        Table(
            "Where the time of the cold build goes (milliseconds)",
            parts,
            ("SQL CPU: pg8000 in this process; SQL wall: with PostgreSQL's own work",),
        ),
    ]


def _cold(lake: Lake) -> Runs:
    """The first build, several times, each with an empty store and an open connection."""
    runs = Runs(**PARTS)
    for _ in range(TIMES):
        with opened(lake) as bridge:
            location = _newest(bridge)
            runs.add(partial(bridge.read, location))
    return runs


def _newest(bridge: Bridge) -> str:
    return str(bridge.document()["snapshots"][-1]["manifest-list"])


def _costs(shop: Workshop, bridge: Bridge, files: int, cold: Runs) -> Row:
    io = PyArrowFileIO()
    folder = shop.folder / f"manifests-{files}"
    folder.mkdir()
    table = original(bridge, io, folder)
    table = replace(table, manifests=list(table.manifests))
    warm = cost(lambda: [bridge.read(location) for location in table.locations])
    size = sum(path.stat().st_size for path in folder.iterdir())
    written = write_manifests(table, io, str(folder))
    theirs = cost(lambda: write_manifests(table, io, str(folder)), TIMES)
    return {
        "files": files,
        "cold CPU": ms(cold.cost.cpu),
        "cold wall": ms(cold.cost.wall),
        "files/s": round(files / cold.cost.cpu),
        "kB": round(size / 1000),
        "warm wall": round(warm.wall * 1000, 3),
        "iceberg CPU": ms(theirs.cpu),
        "iceberg wall": ms(theirs.wall),
        "iceberg kB": round(sum(len(io.new_input(path)) for path in written) / 1000),
        "CPU ratio": ratio(cold.cost.cpu, theirs.cpu),
        "wall ratio": ratio(cold.cost.wall, theirs.wall),
        "encode ratio": ratio(cold.cpu("encode"), theirs.cpu),
    }


def _parts(files: int, cold: Runs) -> Row:
    rest = cold.cost.cpu - sum(map(cold.cpu, PARTS))
    return {
        "files": files,
        "statements": cold.calls("SQL"),
        "SQL wall": ms(cold.wall("SQL")),
        **{f"{part} CPU": ms(cold.cpu(part)) for part in PARTS},
        "rest CPU": ms(max(rest, 0.0)),
        "all CPU": ms(cold.cost.cpu),
    }
