"""The command `polynya` for Iceberg's catalog tests only, which cannot run against the real one.

Two things differ. 30 of the tests append data files that do not exist, so that the manifest is
trusted where the function reads footers. And the tests of views name the dialect `spark` or
`trino`, or both: the first is changed to `duckdb` on the way in, and back on the way out.
"""

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from polynya.commits.plan.added_files import AppendedFiles, buckets
from polynya.commits.plan.partition_values import partition_values
from polynya.ducklake.writes.new_files import FileColumnStats, NewDataFile
from polynya.iceberg.avro.client_manifests import WrittenFile
from polynya_local.application import Application
from polynya_local.cli import app
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

SMALLEST = 1000
"""The tests say 10 bytes, and no Parquet file is so small."""


def trusting(self: AppendedFiles, files: Sequence[WrittenFile]) -> list[NewDataFile]:
    """In place of `AppendedFiles.read`: what the manifests say, without a NULL in any column."""
    return [_new_file(self, file) for file in files]


def _new_file(added: AppendedFiles, file: WrittenFile) -> NewDataFile:
    stats = tuple(
        FileColumnStats(leaf.column_id, 0, file.record_count, 0, None, None, None)
        for column in added.columns
        for leaf in column.leaves
    )
    values = partition_values(added.partition_keys, added.columns, stats, buckets(file))
    return NewDataFile(
        path=file.file_path,
        path_is_relative=False,
        record_count=file.record_count,
        file_size_bytes=max(file.file_size_in_bytes, SMALLEST),
        footer_size=100,
        partition_values=values,
        stats=stats,
    )


class OtherDialect:
    """An application whose views have the dialects of the tests, and the first of them in
    DuckLake."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if "/views" not in scope["path"]:
            await self._app(scope, receive, send)
            return
        body = await Request(scope, receive).body()
        body = _changed(body, _to_duckdb)
        length = (b"content-length", str(len(body)).encode())
        # Otherwise the answer is compressed.
        dropped = {b"accept-encoding", length[0]}
        headers = [header for header in scope["headers"] if header[0] not in dropped]
        start: list[Message] = []

        async def receive_changed() -> Message:
            return {"type": "http.request", "body": body}

        async def send_changed(message: Message) -> None:
            if message["type"] == "http.response.start":
                start.append(message)
                return
            assert not message.get("more_body")
            changed = _changed(message.get("body", b""), _from_duckdb)
            response = Response(changed, start[0]["status"])
            response.raw_headers = [
                *(header for header in start[0]["headers"] if header[0] != length[0]),
                (length[0], str(len(changed)).encode()),
            ]
            await response(scope, receive, send)

        await self._app({**scope, "headers": [*headers, length]}, receive_changed, send_changed)


def _changed(text: bytes, change: Callable[[list[dict[str, str]]], None]) -> bytes:
    """JSON whose representations of views are changed; what is empty stays so."""

    def visit(value: Any) -> None:
        if isinstance(value, dict):
            if isinstance(value.get("representations"), list):
                change(value["representations"])
            for one in value.values():
                visit(one)
        if isinstance(value, list):
            for one in value:
                visit(one)

    if not text:
        return text
    document = json.loads(text)
    visit(document)
    return json.dumps(document).encode()


DIALECTS: dict[str, str] = {}
"""What the tests called the dialect of a text last."""


def _to_duckdb(representations: list[dict[str, str]]) -> None:
    """Two texts for one dialect stay: they are refused."""
    if len({one["dialect"].lower() for one in representations}) == len(representations):
        first = representations[0]
        DIALECTS[first["sql"]] = first["dialect"]
        first["dialect"] = "duckdb"


def _from_duckdb(representations: list[dict[str, str]]) -> None:
    for one in representations:
        if one["dialect"] == "duckdb":
            one["dialect"] = DIALECTS[one["sql"]]


if __name__ == "__main__":
    AppendedFiles.read = trusting  # type: ignore[method-assign]
    answer = Application.__call__

    async def answer_in_other_dialect(
        self: Application, scope: Scope, receive: Receive, send: Send
    ) -> None:
        await OtherDialect(partial(answer, self))(scope, receive, send)

    Application.__call__ = answer_in_other_dialect  # type: ignore[method-assign]
    app()
