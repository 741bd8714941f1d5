"""Parquet files as an attacker writes them, and as chance does, read in a process with limits.

`python -m tests.support.writes.hostile_parquet` reads those of HOSTILE, each a footer alone, with
`long` those of LONG; with FOLDER SEED INPUTS it reads INPUTS files that chance made of those in
FOLDER. A reader that takes too much memory, too long or a signal ends that process, not the tests.
"""

import json
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from polynya.iceberg.parquet.delete_files import TooManyPositions, client_positions
from polynya.iceberg.parquet.footer import NotParquet
from polynya.iceberg.parquet.metadata import Footer, footer_length, metadata
from polynya.iceberg.sandbox import Unreadable
from polynya.runtime import budget
from polynya.runtime.errors import OutOfTime, PolynyaError

READERS: dict[str, Callable[[bytes], object]] = {
    "data": lambda body: metadata([Footer(len(body), body[-footer_length(body) :])]),
    "deletes": lambda body: client_positions([body]),
}
MEMORY = 300
"""Megabytes that a file may take, beyond what Python and DuckDB take."""
ADDRESS_SPACE = 4 << 30
"""Enough for DuckDB's threads, and too little for a list of 2^24 row groups."""
SECONDS = 5.0
"""Of CPU time, for each file."""


def varint(value: int) -> bytes:
    out = b""
    while value > 0x7F:
        value, out = value >> 7, out + bytes([value & 0x7F | 0x80])
    return out + bytes([value])


def number(value: int) -> bytes:
    return varint((value << 1) ^ (value >> 63))


def text(value: bytes) -> bytes:
    return varint(len(value)) + value


def items(length: int, type_: int) -> bytes:
    """The beginning of a list."""
    return bytes([length << 4 | type_]) if length < 15 else bytes([0xF0 | type_]) + varint(length)


def element(name: bytes, children: int = 0) -> bytes:
    """A SchemaElement: an INT32, or a group."""
    if children:
        return b"\x35" + number(0) + b"\x18" + text(name) + b"\x15" + number(children) + b"\0"
    return b"\x15" + number(1) + b"\x25" + number(0) + b"\x18" + text(name) + b"\0"


def footer(schema: bytes, elements: int, rest: bytes) -> bytes:
    """A file of a footer alone.

    Args:
        rest: what comes after the schema; field 3 has to be next.
    """
    body = b"\x15\x02\x19" + items(elements, 12) + schema + rest
    return b"PAR1" + body + len(body).to_bytes(4, "little") + b"PAR1"


ONE = element(b"root", 1) + element(b"a")
NO_ROWS = b"\x16\0\x19\x0c\0"
METADATA = bytes.fromhex("15001905190815001600160016002600")
"""The fields of a ColumnMetaData, without the end."""


def one(rest: bytes) -> bytes:
    """A file with one column."""
    return footer(ONE, 2, rest)


def row_groups(*groups: bytes, more: int = 0) -> bytes:
    return b"\x16\0\x19" + items(len(groups) + more, 12) + b"".join(groups)


def row_group(chunks: int, body: bytes) -> bytes:
    return b"\x19" + items(chunks, 12) + body + b"\x16\0\x16\0\0"


def chunk(metadata: bytes) -> bytes:
    return b"\x26\0\x1c" + metadata + b"\0\0"


def deep(levels: int) -> bytes:
    schema = element(b"root", 1) + element(b"a", 1) * (levels - 1) + element(b"a")
    return footer(schema, levels + 1, NO_ROWS)


MEGA = 1_000_000
HOSTILE: dict[str, Callable[[], bytes]] = {
    "2^24 row groups in 28 bytes": lambda: one(row_groups(more=2**24)),
    "2^31 - 1 columns": lambda: footer(ONE, 2**31 - 1, b""),
    "2^32 + 2 columns, which 32 bits cut to 2": lambda: footer(ONE, 2**32 + 2, NO_ROWS),
    "20,000 levels": lambda: deep(20_000),
    "5,000 levels": lambda: deep(5_000),
    "201 levels": lambda: deep(201),
    "a million columns": lambda: footer(element(b"root", MEGA) + element(b"") * MEGA, MEGA, b""),
    "a group in itself": lambda: footer(
        element(b"root", 1) + element(b"a", 2**30) + element(b"b"), 3, NO_ROWS
    ),
    "more members than columns": lambda: footer(element(b"root", 5) + element(b"a"), 2, NO_ROWS),
    "fewer members than none": lambda: footer(element(b"root", 1) + element(b"a", -1), 2, NO_ROWS),
    "a second schema, which is deep": lambda: footer(ONE, 2, b"\x09\x04" + deep(5_000)[7:-8]),
    "a second schema, by a field number of 17 bits": lambda: footer(
        ONE, 2, b"\x09" + number(65536 + 2) + deep(5_000)[7:-8]
    ),
    "a schema that says it has bytes": lambda: footer(
        ONE, 2, b"\x09\x04" + items(MEGA, 3) + bytes(MEGA)
    ),
    "row groups that say they are bytes": lambda: one(b"\x16\0\x19" + items(MEGA, 3) + bytes(MEGA)),
    "names that say they are bytes": lambda: one(
        row_groups(row_group(1, chunk(METADATA[:4] + b"\x19\x53" + text(b"abcd") + METADATA[6:])))
    ),
    "a million row groups of nothing": lambda: one(
        b"\x16\0\x19" + items(MEGA, 12) + b"\x19\x0c\x16\0\x16\0\0" * MEGA + b"\0"
    ),
    "a million columns of nothing": lambda: one(
        row_groups(row_group(MEGA, b"\x26\0\0" * MEGA)) + b"\0"
    ),
    "a million plain columns": lambda: one(
        row_groups(row_group(MEGA, chunk(METADATA) * MEGA)) + b"\0"
    ),
    "a column order for each of 15 million": lambda: one(
        b"\x16\0\x19\x0c\x39" + items(15 * MEGA, 12) + bytes(15 * MEGA) + b"\0"
    ),
    "5 million pairs of nothing": lambda: one(
        b"\x16\0\x19\x0c\x19" + items(5 * MEGA, 12) + b"\x18\0\0" * (5 * MEGA) + b"\0"
    ),
    "a path of 15 million names": lambda: one(
        row_groups(
            row_group(
                1,
                chunk(
                    METADATA[:4] + b"\x19" + items(15 * MEGA, 8) + bytes(15 * MEGA) + METADATA[6:]
                ),
            )
        )
    ),
    "a text of 2^31 bytes": lambda: one(b"\x16\0\x19\x0c\x28" + varint(2**31 - 1)),
    "an unknown list of 2^30 bytes": lambda: one(b"\x16\0\x19\x0c\xf9" + items(2**30, 3)),
    "lists in lists": lambda: one(b"\x16\0\x19\x0c\xf9" + b"\x19" * MEGA),
    "structs in structs": lambda: one(b"\x16\0\x19\x0c\xfc" + b"\x1c" * MEGA),
    "a map of 2^30 pairs": lambda: one(b"\x16\0\x19\x0c\xfb" + varint(2**30) + b"\x33"),
    "a number without an end": lambda: one(b"\x16" + b"\xff" * MEGA),
    "a field number below zero": lambda: one(b"\x06" + number(-3) + NO_ROWS),
    "a stop that is no zero": lambda: one(b"\x10" + row_groups(more=2**24)),
    "nothing": lambda: b"PAR1\0\0\0\0PAR1",
}
"""Small files, mostly, that cost a careless reader gigabytes, minutes or its life."""

LONG: dict[str, Callable[[], bytes]] = {
    "15 million booleans": lambda: one((b"\x11" * 15 + b"\x01\x20") * MEGA + b"\0"),
    "15 million numbers": lambda: one(
        b"\x16\0\x19\x0c\xf9" + items(15 * MEGA, 5) + bytes(15 * MEGA) + b"\0"
    ),
}
"""Files with as many values as fit into the longest footer: their readers take seconds."""


def mutants(bodies: list[bytes], seed: int, inputs: int) -> Iterator[bytes]:
    """Files with a few other bytes in their footers, or with another end."""
    random = Random(seed)
    for _ in range(inputs):
        body = random.choice(bodies)
        start = len(body) - footer_length(body)
        said = bytearray(body[start:-8])
        for _ in range(random.choice([1, 1, 3, 30])):
            place = random.randrange(len(said))
            match random.randrange(5):
                case 0:
                    said[place] = random.choice([0, 1, 0x7F, 0x80, 0xFF])
                case 1:
                    said[place] = random.randrange(256)
                case 2:  # an enormous number
                    said[place : place + 1] = number(
                        random.choice([1, -1]) * 2 ** random.randrange(63)
                    )
                case 3:  # another piece of a footer
                    piece = random.choice(bodies)
                    first = random.randrange(len(piece) - footer_length(piece), len(piece))
                    said[place : place + random.randrange(40)] = piece[first : first + 40]
                case _ if random.random() < 0.1 and place:
                    del said[place:]
        yield body[:start] + said + len(said).to_bytes(4, "little") + b"PAR1"


def read(kind: str, body: bytes) -> str:
    """What becomes of a file: it is read, or refused. Raises: any other error."""
    started, before = time.process_time(), _megabytes()
    try:
        with budget.limited(10 * SECONDS):
            READERS[kind](body)
        answer = "read"
    except (NotParquet, Unreadable, TooManyPositions, OutOfTime) as error:
        answer = type(error).__name__
    except PolynyaError as error:
        assert "more memory than it may have" in str(error), error
        answer = "memory"
    seconds, megabytes = time.process_time() - started, _megabytes() - before
    assert seconds < SECONDS, f"{seconds:.1f} s"
    assert megabytes < MEMORY, f"{megabytes} MB"
    return answer


def _megabytes() -> int:
    """The most memory that the process has had."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def in_limits(*arguments: str, seconds: float = 120) -> dict[str, int]:
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
    resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE, ADDRESS_SPACE))
    counts: Counter[str] = Counter()
    assert read("data", one(NO_ROWS)) == "read"  # DuckDB has begun
    if len(arguments) < 2:
        for name, body in (LONG if arguments else HOSTILE).items():
            print(name, file=sys.stderr, flush=True)  # the last one is what ended the process
            counts[read("data", body())] += 1
    else:
        folder, seed, inputs = Path(arguments[0]), int(arguments[1]), int(arguments[2])
        for kind in READERS:
            bodies = [path.read_bytes() for path in sorted(folder.glob(f"{kind}-*.parquet"))]
            for number_, body in enumerate(mutants(bodies, seed, inputs)):
                (folder / "last.parquet").write_bytes(body)  # what ended the process
                print(kind, number_, file=sys.stderr, flush=True)
                counts[read(kind, body)] += 1
    print(json.dumps(counts))


if __name__ == "__main__":
    main(sys.argv[1:])
