"""Blocks are compressed to the same bytes everywhere, and names tell by what."""

import hashlib
import zlib

import deflate
import pytest
from polynya.iceberg.avro.container import CODECS, COMPRESSOR


def like_entries(count: int) -> bytes:
    """Bytes like those of a manifest: paths, small numbers, and bounds that do not compress."""
    return b"".join(
        b"\x02\x02%d\x00\x90s3://b/lake/main/t/day=%d/ducklake-%s.parquet\x0ePARQUET%s"
        % (number, number // 100, digest.hex().encode(), digest)
        for number in range(count)
        for digest in [hashlib.sha256(b"%d" % number).digest()]
    )


BLOCKS = {
    "empty": b"",
    "one byte": b"a",
    "text": b"the same again " * 1000,
    "one entry": like_entries(1),
    "entries": like_entries(500),
    "more than one window of 32 kB": like_entries(5000),
    "zeros": bytes(1_000_000),
}


@pytest.mark.parametrize("block", BLOCKS.values(), ids=BLOCKS)
def test_zlib_reads_what_was_compressed(block):
    assert zlib.decompress(CODECS["deflate"](block), wbits=-15) == block
    assert zlib.decompress(CODECS["deflate"](memoryview(block)), wbits=-15) == block


def test_names_tell_the_release_and_the_level():
    assert f"deflate {deflate.__version__}, level 1" == COMPRESSOR


# The wheels of deflate 0.9.0 gave these under qemu for Nehalem (without AVX), Haswell and
# Skylake-Server, for a Cortex-A53, a Neoverse-N1 and QEMU's "max" for arm64, and without qemu on a
# Xeon with AVX-512.
ON_OTHER_PROCESSORS = {
    "entries": "9e1a360823a834960ae9ff30a245e798676108890109c3dfa3841877c98e3019",
    "more than one window of 32 kB": (
        "92a1d71e352aba17de4bc05d433c78ff8577d9ed425d87aa07fe6dd37d794fca"
    ),
}


@pytest.mark.parametrize("name", ON_OTHER_PROCESSORS)
def test_bytes_are_those_of_other_processors(name):
    digest = hashlib.sha256(CODECS["deflate"](BLOCKS[name])).hexdigest()
    assert digest == ON_OTHER_PROCESSORS[name]
