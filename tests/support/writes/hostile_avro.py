"""Avro files as an attacker writes them, and as chance does, read in a process with limits.

`python -m tests.support.writes.hostile_avro` reads those of HOSTILE; with FOLDER SEED INPUTS it
reads INPUTS files that chance made of those in FOLDER. A reader that takes too much memory, too
long or a signal ends that process, not the tests.
"""

import json
import resource
import subprocess
import sys
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from polynya.iceberg.avro.client_manifests import files_in, manifests_in
from polynya.iceberg.avro.untrusted_schema import Malformed
from polynya.runtime import budget
from polynya.runtime.errors import OutOfTime

READERS: dict[str, Callable[[bytes], object]] = {
    "manifest": lambda body: files_in(body, 3),
    "list": manifests_in,
}
SYNC = b"0123456789abcdef"
MEMORY = 1024 * 1024 * 1024
"""Of address space. The function has 1,769 MB, and Python with its modules 150 MB of them."""
SECONDS, LATE = 2.0, 2.0
"""The budget of one file, and how much later its reader may notice that it has ended."""


def long(value: int) -> bytes:
    """A number as Avro writes it."""
    rest, out = (value << 1) ^ (value >> 63), b""
    while rest > 0x7F:
        rest, out = rest >> 7, out + bytes([rest & 0x7F | 0x80])
    return out + bytes([rest])


def text(value: bytes) -> bytes:
    return long(len(value)) + value


def deflated(pieces: Iterator[bytes]) -> bytes:
    deflate = zlib.compressobj(9, wbits=-15)
    return b"".join(map(deflate.compress, pieces)) + deflate.flush()


def zeros(megabytes: int) -> Iterator[bytes]:
    return (bytes(2**20) for _ in range(megabytes))


def container(
    schema: object, *blocks: bytes, records: int = 1, codec: str = "null", **keys
) -> bytes:
    """A file of these blocks, which are compressed already."""
    schema = schema if isinstance(schema, bytes) else json.dumps(schema).encode()
    header = {"avro.codec": codec.encode(), "avro.schema": schema, **keys}
    pairs = b"".join(text(key.encode()) + text(value) for key, value in header.items())
    body = b"".join(long(records) + text(block) + SYNC for block in blocks)
    return b"Obj\x01" + long(len(header)) + pairs + b"\0" + SYNC + body


def record(name: str, *types: object, **more: object) -> dict[str, object]:
    fields = [{"name": f"f{number}", "type": type_} for number, type_ in enumerate(types)]
    return {"type": "record", "name": name, "fields": fields, **more}


def array(items: object) -> dict[str, object]:
    return {"type": "array", "items": items}


MAP = array({**record("kv"), "fields": [{"name": n, "type": "long"} for n in ("key", "value")]})


def entry(*fields: tuple[str, object]) -> dict[str, object]:
    """The schema of a manifest whose data files have these fields."""
    file = {**record("r2"), "fields": [{"name": name, "type": type_} for name, type_ in fields]}
    status = {"name": "status", "type": "int"}
    return {**record("manifest_entry"), "fields": [status, {"name": "data_file", "type": file}]}


# One type is complete in the namespace a, and the reader of names finds the other one.
RECURSIVE = record(
    "e", record("x", "int", namespace="a"), record("x", ["null", "x"], namespace="b")
)
EMPTY = record("e", record("x"), record("x", "int", namespace="a"), array("x"), namespace="b")
DECIMAL = {"type": "bytes", "logicalType": "decimal", "precision": 2**30, "scale": 2}
WIDE = record("w", *["null"] * 40_000, "int")
FIXED = {"type": "fixed", "name": "x", "size": 2**30}
ENDLESS = b"\xff" * 2**20

HOSTILE: dict[str, Callable[[], bytes]] = {
    "a record in itself, under two namespaces": lambda: container(RECURSIVE, b"\2" * 100_000),
    "2^40 items of no bytes": lambda: container(EMPTY, b"\0" + long(2**40)),
    "a decimal of a megabyte": lambda: container(
        record("e", DECIMAL), deflated(iter([long(2**20), b"\x7f" * 2**20])), codec="deflate"
    ),
    "2^40 items after the end": lambda: container(record("e", array(FIXED)), long(2**40)),
    "a block of 2^62 bytes": lambda: container(record("e", array("int")), long(-1) + long(2**62)),
    "16 million items of a byte": lambda: container(
        record("e", array("boolean")),
        deflated(iter([long(16 * 2**20), *zeros(16), b"\0"])),
        codec="deflate",
    ),
    "16 million empty arrays": lambda: container(
        record("e", array(array("int"))),
        deflated(iter([long(16 * 2**20), *zeros(16), b"\0"])),
        codec="deflate",
    ),
    "8 million counts of NaN": lambda: container(
        entry(("nan_value_counts", MAP)),
        deflated(iter([b"\0" + long(8 * 2**20), *zeros(16), b"\0"])),
        codec="deflate",
    ),
    "a path of 16 MB": lambda: container(
        entry(("file_path", "string")),
        deflated(iter([b"\0" + long(16 * 2**20), *zeros(16)])),
        codec="deflate",
    ),
    "records of nothing": lambda: container(record("e", *["null"] * 50), b"", records=2**62),
    "a record of 40,000 nulls": lambda: container(
        WIDE, deflated(zeros(1)), records=100_000, codec="deflate"
    ),
    "2^62 records": lambda: container(record("e", "int"), b"\0", records=2**62),
    "200,000 records without a path": lambda: container(
        record("e", "int"), bytes(200_000), records=200_000
    ),
    "a number without an end": lambda: container(record("e", "long"), ENDLESS),
    "a skipped number without an end": lambda: container(
        record("e", array("long")), b"\2" + ENDLESS
    ),
    "a length below zero": lambda: container(record("e", "bytes"), long(-5)),
    "100,000 blocks": lambda: container(record("e", "int"), *[b""] * 100_000, records=0),
    "five million keys": lambda: (
        b"Obj\x01" + long(5_000_000) + (b"\0\0" * 5_000_000) + b"\0" + SYNC
    ),
    "160 MB of zeros": lambda: container(record("e", "int"), deflated(zeros(160)), codec="deflate"),
    "a schema of arrays in arrays": lambda: container(
        b'{"type":"array","items":' * 50_000 + b'"int"' + b"}" * 50_000, b"\0"
    ),
    "a schema in a schema": lambda: container(b'{"type":' * 900 + b'"int"' + b"}" * 900, b"\0"),
    "a schema of brackets": lambda: container(b"[" * 500_000, b"\0"),
    "a partition spec of brackets": lambda: container(
        entry(), b"\0", **{"partition-spec": b"[" + b"[]," * 5_000_000 + b"[]]"}
    ),
    "a field twice": lambda: container(entry(("file_path", "string"), ("file_path", "int")), b""),
}
"""Small files, mostly, that cost a careless reader gigabytes, minutes or its life."""


def mutants(bodies: list[bytes], seed: int, inputs: int) -> Iterator[bytes]:
    """Files with a few other bytes: in the file as it is, or in its inflated block."""
    random = Random(seed)
    for _ in range(inputs):
        body = bytearray(random.choice(bodies))
        for _ in range(random.choice([1, 1, 3, 30])):
            place = random.randrange(len(body))
            match random.randrange(4):
                case 0:
                    body[place] = random.choice([0, 1, 0x7F, 0x80, 0xFF])
                case 1:
                    body[place] = random.randrange(256)
                case 2:  # an enormous number
                    body[place : place + 1] = long(
                        random.choice([1, -1]) * 2 ** random.randrange(63)
                    )
                case 3:  # another piece of a file
                    piece = random.choice(bodies)
                    start = random.randrange(len(piece))
                    body[place : place + random.randrange(40)] = piece[start : start + 40]
        yield bytes(body)


def read(kind: str, body: bytes) -> str:
    """What becomes of a file: it is read, or refused. Raises: any other error."""
    started = time.monotonic()
    try:
        with budget.limited(SECONDS):
            READERS[kind](body)
        answer = "read"
    except (Malformed, OutOfTime) as error:
        answer = type(error).__name__
    seconds = time.monotonic() - started
    assert seconds < SECONDS + LATE, f"{seconds:.1f} s"
    return answer


def in_limits(*arguments: str, seconds: float = 60) -> dict[str, int]:
    """Run this module in a process of its own; what became of how many files.

    Raises:
        AssertionError: the process has failed, or was ended by a signal.
    """
    command = [sys.executable, "-m", __spec__.name, *arguments]
    done = subprocess.run(command, capture_output=True, timeout=seconds, check=False)
    assert done.returncode == 0, (done.returncode, done.stderr[-3000:])
    counts: dict[str, int] = json.loads(done.stdout)
    return counts


def main(arguments: list[str]) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    counts: Counter[str] = Counter()
    if not arguments:
        for name, body in HOSTILE.items():
            print(name, file=sys.stderr, flush=True)  # the last one is what ended the process
            counts[read("manifest", body())] += 1
    else:
        folder, seed, inputs = Path(arguments[0]), int(arguments[1]), int(arguments[2])
        for kind in READERS:
            bodies = [path.read_bytes() for path in sorted(folder.glob(f"{kind}-*.avro"))]
            counts.update(read(kind, body) for body in mutants(bodies, seed, inputs))
    print(json.dumps(counts))


if __name__ == "__main__":
    main(sys.argv[1:])
