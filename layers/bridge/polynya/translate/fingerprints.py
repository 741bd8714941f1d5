"""A short text that is the same exactly when the rows a virtual file comes from are the same.

It stands in the file's name, so that a name never changes its bytes: when DuckLake has rewritten
its history, the name asked for has another fingerprint than the one of today's rows, and the
answer is "no such key".
"""

import hashlib
import json
from typing import Any

LENGTH = 20


def fingerprint(*parts: Any) -> str:
    """20 hexadecimal digits (80 bits) of what JSON makes of the parts."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)
    return fingerprint_of_bytes(text.encode())


def fingerprint_of_bytes(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()[:LENGTH]
