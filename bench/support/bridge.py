"""Polynya in this process: composed as in the Lambda functions, with empty caches, and the REST
function's handler, called for one table as API Gateway calls it.
"""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from polynya.catalog.reader import Catalog
from polynya.ducklake.connection.database import Database
from polynya.runtime.settings import Config
from polynya.storage.file_cache import FileCache, MemoryCache
from polynya.storage.objects import object_reader
from polynya.virtual_files.virtual_files import VirtualFiles
from polynya_local.clients.native import Lake

from tests.aws.functions import Functions

from .lakes import NAMESPACE, TABLE

VIRTUAL_BUCKET = "virtual"
RECENT_BYTES = 1_000_000_000

EVENT = Path(__file__).parents[2] / "events" / "rest_load_table.json"
CONTEXT = SimpleNamespace(
    function_name="rest_catalog",
    memory_limit_in_mb=1769,
    invoked_function_arn="arn:aws:lambda:eu-north-1:0:function:f",
    aws_request_id="0",
    get_remaining_time_in_millis=lambda: 29_000,
)

Answer = dict[str, Any]
Ask = Callable[..., Answer]
"""A function from a query string and headers to the answer that API Gateway receives."""


class Counting(FileCache):
    """Keeps files in the process, and counts what is put into it."""

    bytes_made = 0

    def put(self, key: str, body: bytes) -> bytes:
        self.bytes_made += len(body)
        return super().put(key, body)


@dataclass(frozen=True, slots=True)
class Bridge:
    catalog: Catalog
    virtual_files: VirtualFiles
    kept: Counting

    def document(self) -> dict[str, Any]:
        """The table metadata document."""
        document: dict[str, Any] = self.catalog.load_table((NAMESPACE,), TABLE).body["metadata"]
        return document

    def newest_list(self) -> str:
        """The location of the newest snapshot's manifest list, as a reader finds it."""
        document = self.catalog.load_table((NAMESPACE,), TABLE, "refs").body["metadata"]
        return str(document["snapshots"][-1]["manifest-list"])

    def read(self, location: str) -> bytes:
        return self.virtual_files.read(location.removeprefix(f"s3://{VIRTUAL_BUCKET}/"))


def settings(lake: Lake) -> dict[str, str]:
    """The environment of both Lambda functions, with no time limit for a first build."""
    return {
        "DATABASE_URL": lake.database.url,
        "VIRTUAL_BUCKET": VIRTUAL_BUCKET,
        "BUILD_SECONDS": "900",
    }


@contextmanager
def opened(lake: Lake) -> Iterator[Bridge]:
    config = Config.from_env(settings(lake))
    kept = Counting(None, MemoryCache(RECENT_BYTES))
    with closing(Database(config.database_url, config.metadata_schema)) as database:
        virtual_files = VirtualFiles(config, database, kept, object_reader())
        yield Bridge(Catalog(config, database, virtual_files), virtual_files, kept)


def load_table_event(query: str = "", headers: dict[str, str] | None = None) -> dict[str, Any]:
    event: dict[str, Any] = json.loads(EVENT.read_text())
    path = f"/v1/lake/namespaces/{NAMESPACE}/tables/{TABLE}"
    event["rawPath"] = event["requestContext"]["http"]["path"] = path
    event["rawQueryString"] = query
    event["headers"] |= headers or {}
    return event


@contextmanager
def handling(lake: Lake) -> Iterator[Ask]:
    """The handler, with nothing cached from another lake."""

    def ask(query: str = "", **headers: str) -> Answer:
        answer: Answer = functions.rest_catalog(load_table_event(query, headers), CONTEXT)
        return answer

    with patch.dict(os.environ, settings(lake)), closing(Functions()) as functions:
        yield ask
