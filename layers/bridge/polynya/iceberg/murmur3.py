"""Murmur3, 32 bits (specification, Appendix B): the hash of bucket partitions.

In Python, because the REST catalog needs it for a few values, and not the package's layer.
https://github.com/aappleby/smhasher/blob/master/src/MurmurHash3.cpp
"""

C1, C2 = 0xCC9E2D51, 0x1B873593
MASK = 0xFFFFFFFF


def murmur3(data: bytes) -> int:
    """The hash of some bytes, with the seed 0, as an unsigned number."""
    whole = len(data) & ~3
    found = 0
    for start in range(0, whole, 4):
        found ^= _mixed(int.from_bytes(data[start : start + 4], "little"))
        found = (_rotated(found, 13) * 5 + 0xE6546B64) & MASK
    found ^= _mixed(int.from_bytes(data[whole:], "little")) ^ len(data)
    found = ((found ^ found >> 16) * 0x85EBCA6B) & MASK
    found = ((found ^ found >> 13) * 0xC2B2AE35) & MASK
    return found ^ found >> 16


def _mixed(block: int) -> int:
    return (_rotated((block * C1) & MASK, 15) * C2) & MASK


def _rotated(number: int, bits: int) -> int:
    return (number << bits | number >> (32 - bits)) & MASK
