"""The command `polynya` for Iceberg's catalog tests only, which cannot run against the real one.

Two things differ. 30 of the tests append data files that do not exist, so that the manifest is
trusted where the function reads footers. And the tests of views name the dialect `spark` or
`trino`, or both: the first is changed to `duckdb` on the way in, and back on the way out.
"""

import base64
import json
from collections.abc import Callable, Sequence
from typing import Any

from polynya.commits.plan.added_files import AppendedFiles, buckets
from polynya.commits.plan.partition_values import partition_values
from polynya.ducklake.writes.new_files import FileColumnStats, NewDataFile
from polynya.iceberg.avro.client_manifests import WrittenFile
from polynya_local.cli import app

from functions.commits import app as commits
from functions.rest_catalog import app as rest_catalog

Handler = Callable[[dict[str, Any], Any], Any]

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
    """A handler whose views have the dialects of the tests, and the first of them in DuckLake."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    def __call__(self, event: dict[str, Any], context: Any) -> Any:
        if "/views" not in event["requestContext"]["http"]["path"]:
            return self._handler(event, context)
        # Otherwise the answer is compressed.
        headers = {k: v for k, v in event["headers"].items() if k.lower() != "accept-encoding"}
        event = {**event, "headers": headers}
        if event.get("body"):
            text = event["body"]
            if event.get("isBase64Encoded"):
                text = base64.b64decode(text).decode()
            text = _changed(text, _to_duckdb)
            headers["content-length"] = str(len(text.encode()))
            event |= {"body": text, "isBase64Encoded": False}
        answer = self._handler(event, context)
        if answer.get("body"):
            body = _changed(answer["body"], _from_duckdb)
            length = {"content-length": str(len(body.encode()))}
            answer = {**answer, "body": body, "headers": {**answer["headers"], **length}}
        return answer


def _changed(text: str, change: Callable[[list[dict[str, str]]], None]) -> str:
    """JSON whose representations of views are changed."""

    def visit(value: Any) -> None:
        if isinstance(value, dict):
            if isinstance(value.get("representations"), list):
                change(value["representations"])
            for one in value.values():
                visit(one)
        if isinstance(value, list):
            for one in value:
                visit(one)

    document = json.loads(text)
    visit(document)
    return json.dumps(document)


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
    for module in (commits, rest_catalog):
        module.handler = OtherDialect(module.handler)  # type: ignore[attr-defined]
    app()
