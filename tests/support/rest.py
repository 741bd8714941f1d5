"""The catalog's answers as JSON, without an Iceberg client."""

from typing import Any
from urllib.parse import quote

import requests

SECONDS = 120


class Refused(Exception):
    """The catalog answered with an error."""

    def __init__(self, status: int, type: str, message: str) -> None:
        super().__init__(f"{status} {type}: {message}")
        self.status, self.type, self.message = status, type, message


class Rest:
    """Reads from an Iceberg REST catalog.

    Every method raises Refused if the catalog answers with an error.
    """

    def __init__(self, catalog_uri: str, warehouse: str) -> None:
        self._base = f"{catalog_uri.rstrip('/')}/v1"
        config = self._get("config", {"warehouse": warehouse})
        settings = {**config.get("defaults", {}), **config.get("overrides", {})}
        if prefix := settings.get("prefix"):
            self._base += "/" + quote(prefix, safe="")

    def tables(self) -> list[tuple[str, str]]:
        """The (namespace, table) pairs of the catalog; a namespace has one level."""
        namespaces = self._pages("namespaces", "namespaces")
        return [
            (namespace, identifier["name"])
            for (namespace,) in namespaces
            for identifier in self._pages(f"namespaces/{quoted(namespace)}/tables", "identifiers")
        ]

    def load_table(self, namespace: str, table: str) -> dict[str, Any]:
        """The table metadata, with all snapshots."""
        metadata: dict[str, Any] = self.load_table_result(namespace, table)["metadata"]
        return metadata

    def load_table_result(self, namespace: str, table: str) -> dict[str, Any]:
        """The answer to loadTable, without credentials."""
        path = f"namespaces/{quoted(namespace)}/tables/{quoted(table)}"
        return self._get(path, {"snapshots": "all"})

    def _pages(self, path: str, key: str) -> list[Any]:
        items: list[Any] = []
        token: str | None = ""
        while token is not None:
            page = self._get(path, {"pageToken": token})
            items += page[key]
            token = page.get("next-page-token")
        return items

    def _get(self, path: str, parameters: dict[str, str]) -> dict[str, Any]:
        answer = requests.get(f"{self._base}/{path}", params=parameters, timeout=SECONDS)
        if answer.ok:
            body: dict[str, Any] = answer.json()
            return body
        try:
            error = answer.json()["error"]
        except (ValueError, KeyError):
            error = {"type": "not an error of the spec", "message": answer.text[:500]}
        raise Refused(answer.status_code, error["type"], error["message"])


def quoted(name: str) -> str:
    """A name, percent-encoded for a path."""
    return quote(name, safe="")
