"""Bodies of answers of the Iceberg REST catalog, under the names of its OpenAPI document.

https://github.com/apache/iceberg/blob/main/open-api/rest-catalog-open-api.yaml
"""

from typing import Any, NotRequired, TypedDict


class TableIdentifier(TypedDict):
    namespace: list[str]
    name: str


class CatalogConfig(TypedDict):
    """getConfig."""

    defaults: dict[str, str]
    overrides: dict[str, str]
    endpoints: list[str]


ListNamespacesResponse = TypedDict(
    "ListNamespacesResponse",
    {"namespaces": list[list[str]], "next-page-token": NotRequired[str]},
)


class GetNamespaceResponse(TypedDict):
    """loadNamespaceMetadata and createNamespace."""

    namespace: list[str]
    properties: dict[str, str]


class UpdateNamespacePropertiesResponse(TypedDict):
    """updateProperties."""

    updated: list[str]
    removed: list[str]
    missing: list[str]
    """The properties that were to be removed and did not exist."""


ListTablesResponse = TypedDict(
    "ListTablesResponse",
    {"identifiers": list[TableIdentifier], "next-page-token": NotRequired[str]},
)
"""listTables and listViews."""


class StorageCredential(TypedDict):
    """Credentials for the objects whose location begins with the prefix."""

    prefix: str
    config: dict[str, str]


LoadTableResult = TypedDict(
    "LoadTableResult",
    {
        "metadata-location": str,
        "metadata": dict[str, Any],
        "config": dict[str, str],
        "storage-credentials": NotRequired[list[StorageCredential]],
    },
)

CommitTableResponse = TypedDict(
    "CommitTableResponse", {"metadata-location": str, "metadata": dict[str, Any]}
)

LoadCredentialsResponse = TypedDict(
    "LoadCredentialsResponse", {"storage-credentials": list[StorageCredential]}
)

LoadViewResult = TypedDict(
    "LoadViewResult",
    {"metadata-location": str, "metadata": dict[str, Any], "config": dict[str, str]},
)

ScanTasks = TypedDict(
    "ScanTasks",
    {
        "file-scan-tasks": list[dict[str, Any]],
        "delete-files": NotRequired[list[dict[str, Any]]],
        "plan-tasks": NotRequired[list[str]],
    },
)
"""fetchScanTasks, and the part of planTableScan that it shares."""

PlanTableScanResult = TypedDict(
    "PlanTableScanResult",
    {
        "status": str,
        "plan-id": str,
        "file-scan-tasks": list[dict[str, Any]],
        "delete-files": NotRequired[list[dict[str, Any]]],
        "plan-tasks": NotRequired[list[str]],
        "storage-credentials": NotRequired[list[StorageCredential]],
    },
)

Rehearsal = TypedDict(
    "Rehearsal", {"data-files": int, "rows": int, "deleted-rows": int, "left-behind": str}
)
"""A dry run of registerTable, which the specification does not have."""
