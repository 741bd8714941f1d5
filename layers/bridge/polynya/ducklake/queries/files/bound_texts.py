"""SQL for the values of bounds, which DuckLake keeps as texts.

A statement reads the texts of every file. So they are checked without regular expressions where
that is possible: one takes PostgreSQL ten times as long as comparing the characters that are left
without the digits.
"""

WITHOUT_DIGITS = "translate(@, '0123456789', '')"

# A sign only at the beginning, and at least one digit. No text that these conditions accept is out
# of range: PostgreSQL would refuse the whole statement.
NUMBER = f"""length(@) <= 80 AND {WITHOUT_DIGITS} IN ('', '-', '.', '-.')
  AND strpos(substr(@, 2), '-') = 0 AND ltrim(@, '-.') <> ''"""

DATE = f"@ LIKE '____-__-__' AND {WITHOUT_DIGITS} = '--'"
TIME = f"""(@ LIKE '__:__:__' OR @ LIKE '__:__:__.%') AND {WITHOUT_DIGITS} IN ('::', '::.')"""
TIMESTAMP = f"""(@ LIKE '____-__-__ __:__:__' OR @ LIKE '____-__-__ __:__:__.%')
  AND {WITHOUT_DIGITS} IN ('-- ::', '-- ::.')"""
# Texts of another zone than UTC have another order.
TIMESTAMPTZ = (
    "@ ~ '^[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2}(\\.[0-9]{1,9})?\\+00(:00)?$'"
)
REAL = "@ ~ '^-?([0-9]{1,20}(\\.[0-9]{1,20})?|[0-9](\\.[0-9]{1,20})?e[+-]?[0-2]?[0-9])$'"
DOUBLE = REAL.replace("[0-2]?[0-9])", "[0-2]?[0-9]{1,2})")
BINARY = "@ ~ '^([0-9A-Fa-f]{2})*$'"

# Without the zeros at the end of a fraction, texts have the order of the times.
TRIMMED = "CASE WHEN @ LIKE '%.%' THEN rtrim(rtrim(@, '0'), '.') ELSE @ END"


def _guarded(condition: str, value: str) -> str:
    return f"CASE WHEN {condition} THEN {value} END"


READ = {
    "boolean": "CASE WHEN @ IN ('0', 'false') THEN 0 WHEN @ IN ('1', 'true') THEN 1 END",
    "integer": _guarded(NUMBER, "CAST(@ AS numeric)"),
    "decimal": _guarded(NUMBER, "CAST(@ AS numeric)"),
    "float": _guarded(REAL, "CAST(@ AS real)"),
    "double": _guarded(DOUBLE, "CAST(@ AS double precision)"),
    "string": "@",
    "binary": _guarded(BINARY, "upper(@)"),
    "date": _guarded(DATE, "@"),
    "time": _guarded(TIME, TRIMMED),
    "timestamp": _guarded(TIMESTAMP, TRIMMED),
    "timestamptz": _guarded(TIMESTAMPTZ, TRIMMED.replace("@", "split_part(@, '+', 1)")),
}
"""SQL for the value of a bound from its text `@`, by form; NULL if it is not certain."""

SQL_TYPES = {
    "boolean": "integer",
    "integer": "numeric",
    "decimal": "numeric",
    "float": "real",
    "double": "double precision",
}
"""The other forms are texts, in the order of their bytes."""
