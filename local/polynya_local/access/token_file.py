"""The file of tokens that the owner of a server gives to people and programs.

    # name         the hash of its token
    ada            sha256:3b5d…
    nightly-job    sha256:91ab…

`polynya token NAME --file FILE` makes a token and adds its line. The file has hashes only: a token
has 256 random bits, so it cannot be found from a plain hash.
"""

import os
import re
import time
from hashlib import sha256
from pathlib import Path
from secrets import token_urlsafe
from threading import Lock

from polynya.runtime.errors import Misconfigured

LINE = re.compile(r"(?P<name>[^\s#=]+)\s+sha256:(?P<hash>[0-9a-f]{64})")

LOOK_SECONDS = 1
"""How long a change of the file may go unseen."""


class TokenFile:
    """The names of callers by their tokens; the file is read again when it has changed."""

    def __init__(self, path: Path) -> None:
        """Read the file.

        Raises:
            Misconfigured: it cannot be read, or a line of it is wrong.
        """
        self._path, self._lock = path, Lock()
        self._state = _state(path)
        self._names = _names(path)
        self._looked = time.monotonic()

    def name_of(self, token: str) -> str | None:
        """The name of the caller with this token; None: nobody. Raises: as `name_of_hash`."""
        return self.name_of_hash(hashed(token))

    def name_of_hash(self, hash_: str) -> str | None:
        """The name of the caller whose token hashes to this; None: the file has no such line.

        Raises:
            Misconfigured: the file has changed, and cannot be read or is wrong: nobody is known.
        """
        with self._lock:
            if time.monotonic() - self._looked > LOOK_SECONDS:
                self._look_again()
            return self._names.get(hash_)

    def _look_again(self) -> None:
        state = _state(self._path)
        if state != self._state:
            self._names = _names(self._path)
            self._state = state
        self._looked = time.monotonic()


def new_line(name: str) -> tuple[str, str]:
    """A new token, and the line for it.

    Raises:
        ValueError: no line can have this name.
    """
    token = token_urlsafe(32)
    line = f"{name} sha256:{hashed(token)}"
    if not LINE.fullmatch(line):
        raise ValueError(f"{name!r} is not a valid name: it must not have a space, # or =")
    return token, line


def hashed(token: str) -> str:
    """The hash of a token, as in its line."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def _state(path: Path) -> tuple[int, int, int]:
    try:
        status = os.stat(path)
    except OSError as error:
        raise Misconfigured(f"the file of tokens {path} cannot be read: {error.strerror}") from None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _names(path: Path) -> dict[str, str]:
    try:
        lines = path.read_text("utf-8").splitlines()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise Misconfigured(f"the file of tokens {path} cannot be read: {why}") from None
    names: dict[str, str] = {}
    for number, line in enumerate(lines, start=1):
        text = line.partition("#")[0].strip()
        if not text:
            continue
        match = LINE.fullmatch(text)
        # The message leaves out the line: somebody may have put a token itself there.
        if match is None:
            raise Misconfigured(
                f"line {number} of the file of tokens {path} is not `name sha256:…`; "
                "`polynya token NAME --file FILE` makes a token and adds its line"
            )
        if match["hash"] in names:
            raise Misconfigured(f"line {number} of the file of tokens {path} repeats a token")
        names[match["hash"]] = match["name"]
    return names
