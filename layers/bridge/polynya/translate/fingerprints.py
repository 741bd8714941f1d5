"""A fingerprint: a short text that is equal if and only if the rows a virtual file comes from are.

It is part of the file's name, so that a name never changes its bytes: when DuckLake has rewritten
its history, today's rows have another fingerprint than the requested name, and the answer is
"no such key".
"""

import hashlib
import json
from typing import Any

LENGTH = 20


def fingerprint(*parts: Any) -> str:
    """20 hexadecimal digits (80 bits) of a hash of the parts as JSON."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)
    return fingerprint_of_bytes(text.encode())


def fingerprint_of_bytes(body: bytes) -> str:
    """20 hexadecimal digits (80 bits) of a hash of the bytes."""
    return hashlib.sha256(body).hexdigest()[:LENGTH]
