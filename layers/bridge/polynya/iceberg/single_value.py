"""One value as bytes, for lower and upper bounds (specification, Appendix D, binary form).

https://iceberg.apache.org/spec/#binary-single-value-serialization
"""

import re
import struct
from decimal import Decimal
from typing import Any

LITTLE_ENDIAN = {
    "boolean": "<?",
    "int": "<i",
    "long": "<q",
    "float": "<f",
    "double": "<d",
    "date": "<i",
    "time": "<q",
    "timestamp": "<q",
    "timestamptz": "<q",
}

DECIMAL = re.compile(r"decimal\((\d+), (\d+)\)")


def to_bytes(type_name: str, value: Any) -> bytes:
    """Serialize `value`: temporal values are days or microseconds since 1970-01-01 (UTC).

    Raises:
        ValueError: the type has no single-value form here.
    """
    if type_name in LITTLE_ENDIAN:
        packed: bytes = struct.pack(LITTLE_ENDIAN[type_name], value)
        return packed
    if type_name == "string":
        return bytes(value, "utf-8")
    if type_name == "binary":
        return bytes(value)
    if match := DECIMAL.fullmatch(type_name):
        return _unscaled(value, scale=int(match[2]))
    raise ValueError(f"no single-value serialization of {type_name}")


def _unscaled(value: Decimal, scale: int) -> bytes:
    # "unscaled value as two's-complement big-endian binary, using the minimum number of bytes"
    # Not Decimal.scaleb: it rounds to the context's 28 digits.
    sign, digits, exponent = value.as_tuple()
    if scale + int(exponent) < 0:
        raise ValueError(f"{value} has more than {scale} fractional digits")
    unscaled = int("".join(map(str, digits))) * 10 ** (scale + int(exponent))
    unscaled = -unscaled if sign else unscaled
    magnitude = unscaled if unscaled >= 0 else ~unscaled
    return int.to_bytes(unscaled, magnitude.bit_length() // 8 + 1, "big", signed=True)
