"""The encoder of data manifests alone, beside three encoders that work record by record.

Each measurement runs in a process of its own, so that its peak of memory belongs to it alone. All
encode the same entries, which the other three have read from a manifest.
"""

import io
import json
import re
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import fastavro
from polynya.iceberg.avro import columnar, manifests
from polynya.iceberg.manifest import DataFile, FileContent, ManifestContent, ManifestEntry, Status
from pyiceberg.avro.codecs import AvroCompressionCodec
from pyiceberg.io.pyarrow import PyArrowFileIO
from pyiceberg.manifest import ManifestFile, write_manifest
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema

from .measure import once
from .report import Row, Table, ms, ratio
from .support.many_files import SCHEMA, SNAPSHOT_ID, SPEC, TYPES, data_files
from .support.workshop import Workshop, say

HELP = "the encoder of data manifests, beside fastavro and PyIceberg"

FILES = 100_000
OURS = "polynya, columns"
TIMES = 5
"""For our encoder, which takes half a second; the others take up to 30 seconds and run once."""
CODECS: tuple[AvroCompressionCodec, ...] = ("null", "deflate")

Encode = Callable[[AvroCompressionCodec], int]
"""A function from a codec to the size of the manifest."""


def columns(_: Path) -> Encode:
    files = data_files(FILES)
    return lambda codec: len(columnar.manifest_bytes(files, SCHEMA, SPEC, SNAPSHOT_ID, codec))


def records(manifest: Path) -> Encode:
    with manifest.open("rb") as file:
        entries = [_entry(record) for record in fastavro.reader(file)]
    data = ManifestContent.DATA
    return lambda codec: len(
        manifests.manifest_bytes(entries, data, SCHEMA, SPEC, SNAPSHOT_ID, codec)
    )


def dicts(manifest: Path) -> Encode:
    with manifest.open("rb") as file:
        entries = list(fastavro.reader(file))
    schema = fastavro.parse_schema(manifests.manifest_entry_schema(SPEC))

    def encode(codec: AvroCompressionCodec) -> int:
        out = io.BytesIO()
        fastavro.writer(out, schema, entries, codec)
        return out.tell()

    return encode


def pyiceberg(manifest: Path) -> Encode:
    io = PyArrowFileIO()
    listed = ManifestFile.from_args(
        manifest_path=str(manifest),
        manifest_length=manifest.stat().st_size,
        partition_spec_id=SPEC.spec_id,
        content=ManifestContent.DATA,
        sequence_number=SNAPSHOT_ID,
        added_snapshot_id=SNAPSHOT_ID,
    )
    entries = listed.fetch_manifest_entry(io, discard_deleted=False)
    spec, schema = PartitionSpec(**SPEC.json()), Schema.model_validate(SCHEMA.json())

    def encode(codec: AvroCompressionCodec) -> int:
        output = io.new_output(f"{manifest}.{codec}")
        with write_manifest(2, spec, schema, output, SNAPSHOT_ID, codec) as writer:
            for entry in entries:
                writer.add_entry(entry)
        return len(output)

    return encode


ENCODERS = {
    OURS: columns,
    "polynya, records": records,
    "fastavro, dicts": dicts,
    "PyIceberg": pyiceberg,
}


def run(shop: Workshop) -> list[Table]:
    manifest = shop.folder / "encoder.avro"
    files = data_files(FILES)
    manifest.write_bytes(columnar.manifest_bytes(files, SCHEMA, SPEC, SNAPSHOT_ID, "null"))
    return [_table(manifest, codec) for codec in CODECS]


def _table(manifest: Path, codec: str) -> Table:
    rows = []
    for name in ENCODERS:
        say(f"encoder: {FILES:,} files, {name}, {codec} ...")
        times = TIMES if name == OURS else 1
        rows.append(_row(name, [_process(name, codec, manifest) for _ in range(times)]))
    for row in rows:
        row["CPU ratio"] = ratio(row["CPU ms"], rows[0]["CPU ms"])
        row["peak ratio"] = ratio(row["peak MB"], rows[0]["peak MB"])
    notes = (
        f"{len(TYPES)} columns, each with size, counts and bounds; one partition field",
        f"CPU: from entries in memory, one thread; {OURS}: median of {TIMES} processes",
        "entries MB, peak MB: of the process, without its memory after the imports",
        "deflate: libdeflate at level 1 in Polynya, zlib at level 6 elsewhere",
    )
    return Table(f"Encoding {FILES:,} entries of a data manifest, codec {codec}", rows, notes)


def _row(name: str, runs: list[dict[str, float]]) -> Row:
    medians = {key: statistics.median(run[key] for run in runs) for key in runs[0]}
    return {
        "encoder": name,
        "CPU ms": ms(medians["cpu"]),
        "files/s": round(FILES / medians["cpu"]),
        "MB": round(medians["size"] / 1e6, 1),
        "entries MB": round(medians["entries"]),
        "peak MB": round(medians["peak"]),
    }


def _process(name: str, codec: str, manifest: Path) -> dict[str, float]:
    command = [sys.executable, "-m", __name__, name, codec, str(manifest)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"bench: {name} failed: {done.stderr[-2000:]}")
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def _measured(name: str, codec: AvroCompressionCodec, manifest: str) -> dict[str, float]:
    """One run, in this process."""
    sizes: list[int] = []
    imported = _peak()
    encode = ENCODERS[name](Path(manifest))
    entries = _peak()
    cost = once(lambda: sizes.append(encode(codec)))
    return {
        "cpu": cost.cpu,
        "size": sizes[0],
        "entries": entries - imported,
        "peak": _peak() - imported,
    }


def _peak() -> float:
    """The most memory that this process has had, in MB.

    getrusage is not usable: its maximum starts at that of the process that started this one.
    """
    status = Path("/proc/self/status").read_text()
    [kilobytes] = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(kilobytes) / 1000


def _entry(record: Any) -> ManifestEntry:
    """An entry from what fastavro reads."""
    file: dict[str, Any] = {
        name: {pair["key"]: pair["value"] for pair in value} if isinstance(value, list) else value
        for name, value in record["data_file"].items()
        if name != "file_format"
    }
    file["partition"] = tuple(file["partition"].values())
    file["content"] = FileContent(file["content"])
    record |= {"status": Status(record["status"]), "data_file": DataFile(**file)}
    return ManifestEntry(**record)


if __name__ == "__main__":
    _, name, codec, manifest = sys.argv
    print(json.dumps(_measured(name, "null" if codec == "null" else "deflate", manifest)))
