"""The keys of a bucket that is a folder.

https://docs.aws.amazon.com/AmazonS3/latest/API/API_ListObjectsV2.html
"""

import os
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from xml.sax.saxutils import escape

from ..http_message import Response

MOST_KEYS = 1000


def listing(bucket: str, folder: Path, parameters: Mapping[str, str]) -> Response:
    """The answer to ListObjectsV2: keys by their UTF-8 bytes, or common prefixes."""
    prefix, delimiter = parameters.get("prefix", ""), parameters.get("delimiter", "")
    after = parameters.get("continuation-token") or parameters.get("start-after", "")
    wanted = parameters.get("max-keys", "")
    most = min(MOST_KEYS, int(wanted)) if wanted.isdecimal() else MOST_KEYS
    found = _entries(folder, prefix, delimiter)
    rest = [entry for entry in sorted(found, key=str.encode) if entry.encode() > after.encode()]
    shown = rest[:most]
    is_truncated = len(rest) > len(shown) and bool(shown)
    last = escape(shown[-1]) if is_truncated else ""
    token = f"<NextContinuationToken>{last}</NextContinuationToken>" if is_truncated else ""
    body = (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        '<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">'
        f"<Name>{escape(bucket)}</Name><Prefix>{escape(prefix)}</Prefix>"
        f"<KeyCount>{len(shown)}</KeyCount><MaxKeys>{most}</MaxKeys>"
        f"<IsTruncated>{str(is_truncated).lower()}</IsTruncated>{token}"
        f"{''.join(_element(key, found[key]) for key in shown)}</ListBucketResult>"
    )
    return Response(200, (("Content-Type", "application/xml"),), body.encode())


def _entries(folder: Path, prefix: str, delimiter: str) -> dict[str, os.stat_result | None]:
    """The keys with a prefix; None is a common prefix."""
    found: dict[str, os.stat_result | None] = {}
    for key, state in _files(folder, prefix):
        inner, separator, _ = key[len(prefix) :].partition(delimiter or "\x00")
        if delimiter and separator:
            found[prefix + inner + delimiter] = None
        else:
            found[key] = state
    return found


def _files(folder: Path, prefix: str) -> Iterator[tuple[str, os.stat_result]]:
    """The regular files below the folder, without those that are behind a symbolic link."""
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            key = os.path.relpath(path, folder)
            if key.startswith(prefix) and not os.path.islink(path) and os.path.isfile(path):
                yield key, os.stat(path)


def _element(key: str, state: os.stat_result | None) -> str:
    if state is None:
        return f"<CommonPrefixes><Prefix>{escape(key)}</Prefix></CommonPrefixes>"
    changed = datetime.fromtimestamp(state.st_mtime, UTC).isoformat(timespec="seconds")
    return (
        f"<Contents><Key>{escape(key)}</Key><LastModified>{changed}</LastModified>"
        f'<ETag>"{state.st_mtime_ns:x}-{state.st_size:x}"</ETag><Size>{state.st_size}</Size>'
        "<StorageClass>STANDARD</StorageClass></Contents>"
    )
