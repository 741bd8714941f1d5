"""Names and messages as a terminal and a log may show them.

Others choose the names of tables and columns, and the catalog permits every character in them. An
escape sequence would change what the reader of a terminal sees, or what the terminal does; a
newline would look like another line.
"""

import json
import re
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

Value = TypeVar("Value")

BEYOND_ASCII = "\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
"""Control characters, those that change the direction of text, and code points that UTF-8 lacks."""
CONTROL = re.compile(f"[\x00-\x1f{BEYOND_ASCII}]")
CONTROL_IN_LINES = re.compile(f"[\x00-\x09\x0b-\x1f{BEYOND_ASCII}]")
CONTROL_IN_JSON = re.compile(f"[{BEYOND_ASCII}]")


def printable(text: str) -> str:
    r"""A text in one line: a control character is written as Python writes it, such as `\x1b`."""
    return CONTROL.sub(_escaped, text)


def printable_lines(text: str) -> str:
    """A printable text of several lines, whose line ends are Polynya's own."""
    return CONTROL_IN_LINES.sub(_escaped, text)


def _escaped(character: re.Match[str]) -> str:
    return character[0].encode("unicode_escape").decode("ascii")


def printable_report(value: Value) -> Value:
    """A report in which every text is printable: records, lists and dicts at any level."""
    result: Any = value
    if isinstance(value, str):
        result = printable(value)
    elif is_dataclass(value) and not isinstance(value, type):
        texts = {f.name: printable_report(getattr(value, f.name)) for f in fields(value) if f.init}
        result = replace(value, **texts)
    elif isinstance(value, dict):
        result = {printable_report(k): printable_report(item) for k, item in value.items()}
    elif isinstance(value, list):
        result = [printable_report(item) for item in value]
    elif isinstance(value, tuple) and not hasattr(value, "_fields"):
        result = tuple(printable_report(item) for item in value)
    return result  # type: ignore[no-any-return]


def printable_json(document: Any, **options: Any) -> str:
    """Printable JSON of the same meaning, in which letters of all scripts stay."""
    text = json.dumps(document, ensure_ascii=False, **options)
    # json.dumps has escaped the control characters of ASCII.
    return CONTROL_IN_JSON.sub(lambda character: f"\\u{ord(character[0]):04x}", text)
