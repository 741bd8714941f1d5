"""Booleans, integers, floats and decimals."""

import math
import re
import struct
from decimal import Decimal

from .records import DuckLakeType, IcebergType, Literal

BOOLEANS = {"0": False, "1": True, "false": False, "true": True}

# Decimal reads more: 1e999999999 would be an integer of a billion digits.
NUMBER = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{0,40})?|[+-]?\.[0-9]{1,40}")


def boolean(text: str) -> bool:
    """Parse a boolean, as statistics or as partition values spell it.

    Raises:
        ValueError: the text is not a boolean.
    """
    if text not in BOOLEANS:
        raise ValueError(f"not a boolean: {text!r}")
    return BOOLEANS[text]


LIMITS = {"int": 2**31, "long": 2**63}


def check_range(type_name: str, number: int) -> int:
    """Return the number if it fits the type.

    Raises:
        ValueError: it does not fit the Iceberg type `int` or `long`.
    """
    if not -LIMITS[type_name] <= number < LIMITS[type_name]:
        raise ValueError(f"{number} is no {type_name}")
    return number


def double(text: str) -> float:
    """Parse a number, infinities included.

    Raises:
        ValueError: the text is not a number.
    """
    number = float(text)
    if math.isnan(number):
        raise ValueError("NaN is not a bound")
    return number


def _finite(text: str) -> float:
    number = double(text)
    if not math.isfinite(number):
        raise ValueError("JSON has no infinity")
    return number


def hashed_as_long(number: int) -> bytes:
    """The bytes of an integer, a date or a time that Iceberg hashes."""
    return int(number).to_bytes(8, "little", signed=True)


MOST_DIGITS = 100


def whole_number(literal: Literal) -> int:
    """A literal that is an integer.

    Raises:
        TypeError: it is none.
    """
    if isinstance(literal, bool) or not isinstance(literal, int):
        raise TypeError(literal)
    return literal


def _boolean_text(literal: Literal) -> str:
    if not isinstance(literal, bool):
        raise TypeError(literal)
    return str(int(literal))


def _integer_text(literal: Literal) -> str:
    text = str(whole_number(literal))
    if len(text) > MOST_DIGITS:
        raise ValueError(text)
    return text


def _decimal_text(literal: Literal) -> str:
    if not isinstance(literal, str):
        return _integer_text(literal)
    if not NUMBER.fullmatch(literal):
        raise ValueError(literal)
    return literal


def _double_text(literal: Literal) -> str:
    if isinstance(literal, bool | str) or not math.isfinite(number := float(literal)):
        raise TypeError(literal)
    return repr(number)


def _float_text(literal: Literal) -> str:
    # The column has floats of 32 bits: a literal is compared as the nearest of them.
    [nearest] = struct.unpack("<f", struct.pack("<f", float(_double_text(literal))))
    return repr(nearest)


BOOLEAN = IcebergType(
    "boolean",
    ducklake="boolean",
    parse=boolean,
    layout="<?",
    avro="boolean",
    has_identity=True,
    form="boolean",
    literal=_boolean_text,
    sort_key=int,
)
INT = IcebergType(
    "int",
    ducklake="int32",
    parse=lambda text: check_range("int", int(text)),
    layout="<i",
    avro="int",
    has_identity=True,
    truncated=lambda number, width: check_range("int", number - number % width),
    hashed=hashed_as_long,
    form="integer",
    literal=_integer_text,
    sort_key=int,
    promoted="long",
)
LONG = IcebergType(
    "long",
    ducklake="int64",
    hive="bigint",
    parse=lambda text: check_range("long", int(text)),
    layout="<q",
    avro="long",
    has_identity=True,
    truncated=lambda number, width: check_range("long", number - number % width),
    hashed=hashed_as_long,
    form="integer",
    literal=_integer_text,
    sort_key=int,
)
FLOAT = IcebergType(
    "float",
    ducklake="float32",
    parse=double,
    layout="<f",
    default=_finite,
    avro="float",
    form="float",
    literal=_float_text,
    sort_key=float,
    promoted="double",
    is_float=True,
)
DOUBLE = IcebergType(
    "double",
    ducklake="float64",
    parse=double,
    layout="<d",
    default=_finite,
    avro="double",
    form="double",
    literal=_double_text,
    sort_key=float,
    is_float=True,
)
ICEBERG = (BOOLEAN, INT, LONG, FLOAT, DOUBLE)


class _NaN(float):
    """NaN as DuckDB orders it: above every number, infinity included."""

    def __lt__(self, other: float) -> bool:
        return False

    def __gt__(self, other: float) -> bool:
        return not isinstance(other, _NaN)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _NaN)

    __hash__ = float.__hash__


NAN = _NaN("nan")


def _float64(text: str) -> float:
    return NAN if text in {"nan", "-nan"} else double(text)


def _float32(text: str) -> float:
    """The nearest number of 32 bits: Parquet's 0.10000000149 is written 0.1."""
    number = _float64(text)
    if number is NAN:
        return number
    try:
        nearest: float = struct.unpack("<f", struct.pack("<f", number))[0]
    except OverflowError:
        return math.copysign(math.inf, number)
    return nearest


def _text_of_float32(number: float) -> str:
    import numpy as np  # Python has no shortest text of 32 bits

    return str(np.float32(number)) if not math.isnan(number) else "nan"


SPARK_INTEGERS = ("tinyint", "smallint", "int", "bigint")
SMALL_IN_FILES = frozenset({"TINYINT", "SMALLINT", "INTEGER"})
IN_FILES = SMALL_IN_FILES | {"BIGINT"}


def _integer(
    name: str, iceberg: IcebergType, duckdb: str, postgres: str, limit: int, spark: str
) -> DuckLakeType:
    is_signed = not name.startswith("u")
    return DuckLakeType(
        name,
        iceberg,
        duckdb=duckdb,
        postgres=postgres,
        order=LONG.parse,
        limit=limit,
        in_files=SMALL_IN_FILES if iceberg is INT else IN_FILES,
        # DuckLake hashes unsigned numbers differently from Iceberg.
        has_same_buckets=is_signed,
        spark=spark if is_signed else "",
        read_as="" if is_signed else spark,
        accepts=SPARK_INTEGERS[: SPARK_INTEGERS.index(spark)] if is_signed else SPARK_INTEGERS,
        arrow=(name,),
    )


DUCKLAKE = (
    DuckLakeType(
        "boolean",
        BOOLEAN,
        duckdb="BOOLEAN",
        postgres="boolean",
        order=boolean,
        text=lambda value: "true" if value else "false",
        in_files=frozenset({"BOOLEAN"}),
        spark="boolean",
        arrow=("bool_",),
    ),
    _integer("int8", INT, "TINYINT", "smallint", 2**7, "tinyint"),
    _integer("int16", INT, "SMALLINT", "smallint", 2**15, "smallint"),
    _integer("int32", INT, "INTEGER", "integer", 2**31, "int"),
    _integer("int64", LONG, "BIGINT", "bigint", 2**63, "bigint"),
    _integer("uint8", INT, "UTINYINT", "integer", 2**8, "smallint"),
    _integer("uint16", INT, "USMALLINT", "integer", 2**16, "int"),
    _integer("uint32", LONG, "UINTEGER", "bigint", 2**32, "bigint"),
    DuckLakeType(
        "uint64",
        reason="values from 2^63 up do not fit Iceberg's long",
        duckdb="UBIGINT",
        order=LONG.parse,
        read_as="decimal(20,0)",
        accepts=(*SPARK_INTEGERS, "decimal"),
        arrow=("uint64",),
    ),
    DuckLakeType("int128", reason="DuckLake stores it as a rounded double", duckdb="HUGEINT"),
    DuckLakeType("uint128", reason="DuckLake stores it as a rounded double", duckdb="UHUGEINT"),
    DuckLakeType(
        "float32",
        FLOAT,
        duckdb="FLOAT",
        postgres="real",
        order=_float32,
        text=_text_of_float32,
        in_files=frozenset({"FLOAT"}),
        spark="float",
        arrow=("float32",),
    ),
    DuckLakeType(
        "float64",
        DOUBLE,
        duckdb="DOUBLE",
        postgres="double precision",
        order=_float64,
        in_files=frozenset({"FLOAT", "DOUBLE"}),
        spark="double",
        accepts=("float",),
        arrow=("float64",),
    ),
)

DECIMAL = re.compile(r"decimal\(([1-9][0-9]?), ?(0|[1-9][0-9]?)\)")
"""DuckLake's and Spark's name has no space, Iceberg's has one."""

MAX_PRECISION = 38
"""The largest precision of a decimal, in DuckLake and in Iceberg."""


def precision_and_scale(name: str) -> tuple[int, int] | None:
    """The precision and the scale in the name of a decimal; None if it is no decimal."""
    match = DECIMAL.fullmatch(name)
    precision, scale = map(int, match.groups()) if match else (0, 0)
    return (precision, scale) if match and scale <= precision <= MAX_PRECISION else None


def iceberg_decimal(precision: int, scale: int) -> IcebergType:
    """The decimal of Iceberg with this precision and scale."""

    def parse(text: str) -> Decimal:
        # Not abs, which rounds to 28 digits.
        if not NUMBER.fullmatch(text) or Decimal(text).copy_abs() >= 10 ** (precision - scale):
            raise ValueError(f"not a decimal({precision}, {scale}): {text!r}")
        return Decimal(text)

    def default(text: str) -> str:
        # Clients refuse a default of another scale.
        value = parse(text)
        if Decimal(spelled := f"{value:.{scale}f}") != value:
            raise ValueError(f"{text!r} has more than {scale} decimal places")
        return spelled

    def truncated(value: Decimal, width: int) -> Decimal:
        unscaled = _whole(value, scale)
        return parse(f"{Decimal(f'{unscaled - unscaled % width}e-{scale}'):f}")

    return IcebergType(
        f"decimal({precision}, {scale})",
        ducklake=f"decimal({precision},{scale})",
        parse=parse,
        to_bytes=lambda value: _unscaled(value, scale),
        default=default,
        avro={
            "type": "fixed",
            "name": f"decimal_{precision}_{scale}",
            # The fewest bytes for the precision and a sign (specification, Appendix A).
            "size": ((10**precision).bit_length() + 8) // 8,
            "logicalType": "decimal",
            "precision": precision,
            "scale": scale,
        },
        has_identity=True,
        truncated=truncated,
        hashed=lambda value: _unscaled(value, scale),
        form="decimal",
        literal=_decimal_text,
        sort_key=Decimal,
    )


def ducklake_decimal(precision: int, scale: int) -> DuckLakeType:
    """The decimal of DuckLake with this precision and scale."""
    iceberg = iceberg_decimal(precision, scale)
    return DuckLakeType(
        f"decimal({precision},{scale})",
        iceberg,
        duckdb=f"DECIMAL({precision},{scale})",
        postgres=f"numeric({precision},{scale})",
        order=iceberg.parse,
        text=lambda value: f"{value:f}",
        spark=f"decimal({precision},{scale})",
    )


def _whole(value: Decimal, scale: int) -> int:
    """The unscaled value of a decimal."""
    # Not Decimal.scaleb: it rounds to the context's 28 digits.
    sign, digits, exponent = value.as_tuple()
    if scale + int(exponent) < 0:
        raise ValueError(f"{value} has more than {scale} fractional digits")
    unscaled: int = int("".join(map(str, digits))) * 10 ** (scale + int(exponent))
    return -unscaled if sign else unscaled


def _unscaled(value: Decimal, scale: int) -> bytes:
    # "unscaled value as two's-complement big-endian binary, using the minimum number of bytes"
    unscaled = _whole(value, scale)
    magnitude = unscaled if unscaled >= 0 else ~unscaled
    return int.to_bytes(unscaled, magnitude.bit_length() // 8 + 1, "big", signed=True)
