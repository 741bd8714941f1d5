"""The operations that read, under their names in the Iceberg OpenAPI document."""

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import Query
from fastapi.responses import JSONResponse, Response

from ..catalog.events import events_after
from ..catalog.lakes import Lakes
from ..catalog.reader import Catalog
from ..catalog.scans import ScanPlanner
from ..catalog.warehouse import Warehouse
from ..rest.planning import FetchScanTasksRequest, PlanTableScanRequest, parse
from ..rest.reports import plan_fields
from ..runtime.budget import limited, seconds_left
from ..runtime.errors import READ_ONLY, BadRequest, Forbidden, ServiceUnavailable
from ..runtime.metrics import timed
from ..runtime.namespaces import parse_path
from .application import NAMESPACE, NAMESPACES, TABLE, VIEW, WRITES, Operations, Route
from .calls import Call, Namespace, refuse_path
from .conditions import is_commit, matches_etag

HEALTH_SECONDS = 8
"""How long the databases of all lakes together may take to answer. Not less, because a lake that
fails slowly twice is not asked for a while, and that must not happen to one that is only slow."""

PageToken = Annotated[str | None, Query(alias="pageToken")]
PageSize = Annotated[int | None, Query(alias="pageSize", ge=1)]


def catalog_of(call: Call) -> Catalog:
    """The catalog of the route's prefix, as the caller may see it.

    Raises:
        NoSuchWarehouse, BadRequest, Misconfigured, ServiceUnavailable: as `Lakes.visible`.
    """
    catalog: Catalog = call.lake(Warehouse.parse_prefix(call.prefix).name)
    return catalog.open_prefix(call.prefix, call.rights(catalog.settings.lake))


def get_config(call: Call, warehouse: str | None = None) -> JSONResponse:
    """Answer getConfig."""
    name = Warehouse.parse_name(warehouse).name if warehouse else None
    return JSONResponse(call.lake(name).get_config(warehouse))


def health(call: Call, warehouse: str | None = None) -> JSONResponse:
    """Answer that the catalog database of a lake can be read, with its newest snapshot; of each, if
    none is named and the settings have none of their own."""
    is_about_all = warehouse is None and not call.lakes.has_own
    answer = _health_of_all(call) if is_about_all else call.lake(warehouse).health()
    return JSONResponse(answer, headers={"Cache-Control": "no-store"})


def _health_of_all(call: Call) -> dict[str, Any]:
    """The status `ok`, or `degraded` if the databases of some lakes cannot be read.

    Raises:
        ServiceUnavailable: that of none can be read.
    """
    lakes = call.lakes
    names = lakes.names()
    with limited(min(HEALTH_SECONDS, seconds_left())):
        failures = lakes.failures(Catalog.health)
    if not failures:
        return {"status": "ok"}
    for name, error in failures.items():
        call.logger.error("a lake cannot be read", lake=name, reason=str(error))
    if len(failures) == len(names):
        raise ServiceUnavailable("the database of no lake answers")
    # The other lakes are served. The answer names only lakes with tables that the caller may see.
    shown = [name for name in failures if call.rights(lakes.config_name(name)).tables]
    return {"status": "degraded", "unavailable": shown}


def list_events(
    call: Call,
    since: Annotated[int | None, Query(ge=0)] = None,
    limit: Annotated[int | None, Query(ge=1)] = None,
) -> JSONResponse:
    """Answer the events since a snapshot: an operation that only Polynya has."""
    events = events_after(catalog_of(call), since, limit)
    return JSONResponse(events, headers={"Cache-Control": "no-store"})


def list_namespaces(
    call: Call,
    parent: str | None = None,
    page_token: PageToken = None,
    page_size: PageSize = None,
) -> JSONResponse:
    """Answer listNamespaces."""
    catalog = catalog_of(call)
    within = parse_path(parent) if parent else ()
    return JSONResponse(catalog.list_namespaces(within, page_token, page_size))


def load_namespace_metadata(call: Call, namespace: Namespace) -> JSONResponse:
    """Answer loadNamespaceMetadata."""
    return JSONResponse(catalog_of(call).load_namespace_metadata(namespace))


def namespace_exists(call: Call, namespace: Namespace) -> Response:
    """Answer namespaceExists."""
    catalog_of(call).load_namespace_metadata(namespace)
    return Response(status_code=204)


def list_tables(
    call: Call,
    namespace: Namespace,
    page_token: PageToken = None,
    page_size: PageSize = None,
) -> JSONResponse:
    """Answer listTables."""
    return JSONResponse(catalog_of(call).list_tables(namespace, page_token, page_size))


def load_table(
    call: Call,
    namespace: Namespace,
    table: str,
    snapshots: str | None = None,
) -> Response:
    """Answer loadTable; 304 if the caller has the current metadata."""
    catalog, is_vending = catalog_of(call), call.wants_credentials
    with timed("LoadTable"):
        loaded = catalog.load_table(namespace, table, snapshots, with_credentials=is_vending)
    # An answer without an entity tag contains credentials.
    headers = {"ETag": loaded.etag} if loaded.etag else {"Cache-Control": "no-store"}
    if loaded.etag and matches_etag(call.headers.get("if-none-match", ""), loaded.etag):
        return Response(status_code=304, headers=headers)
    if "gzip" not in call.headers.get("accept-encoding", ""):
        return Response(loaded.plain, media_type="application/json", headers=headers)
    headers |= {"Content-Encoding": "gzip", "Vary": "Accept-Encoding"}
    return Response(loaded.zipped, media_type="application/json", headers=headers)


def load_credentials(call: Call, namespace: Namespace, table: str) -> JSONResponse:
    """Answer loadCredentials."""
    credentials = catalog_of(call).load_credentials(namespace, table)
    return JSONResponse(credentials, headers={"Cache-Control": "no-store"})


def table_exists(call: Call, namespace: Namespace, table: str) -> Response:
    """Answer tableExists."""
    catalog_of(call).check_table_exists(namespace, table)
    return Response(status_code=204)


def report_metrics(call: Call, namespace: Namespace, table: str) -> Response:
    """Answer reportMetrics; the report becomes a line of the log."""
    catalog = catalog_of(call)
    # API Gateway has decoded the path: see `is_commit`.
    if is_commit(call.body):
        raise BadRequest(f"clients cannot write a table whose name is {table}/metrics: rename it")
    call.log_report((*namespace, table), catalog.settings)
    return Response(status_code=204)


def plan_table_scan(call: Call, namespace: Namespace, table: str) -> JSONResponse:
    """Answer planTableScan."""
    planner = ScanPlanner(catalog_of(call), call.caller.identity)
    body = parse(PlanTableScanRequest, call.body)
    is_vending = call.wants_credentials
    with (
        timed("PlanTableScan"),
        call.logged("plan", *namespace, table) as line,
    ):
        answer = planner.plan_table_scan(namespace, table, body, with_credentials=is_vending)
        line.update(plan_fields(body, answer, with_values=planner.catalog.settings.log_values))
    return JSONResponse(answer, headers={"Cache-Control": "no-store"})


def fetch_scan_tasks(call: Call, namespace: Namespace, table: str) -> JSONResponse:
    """Answer fetchScanTasks."""
    planner = ScanPlanner(catalog_of(call), call.caller.identity)
    body = parse(FetchScanTasksRequest, call.body)
    with timed("PlanTableScan"):
        return JSONResponse(planner.fetch_scan_tasks(namespace, table, body))


def list_views(
    call: Call,
    namespace: Namespace,
    page_token: PageToken = None,
    page_size: PageSize = None,
) -> JSONResponse:
    """Answer listViews."""
    return JSONResponse(catalog_of(call).list_views(namespace, page_token, page_size))


def load_view(call: Call, namespace: Namespace, view: str) -> JSONResponse:
    """Answer loadView."""
    return JSONResponse(catalog_of(call).load_view(namespace, view))


def view_exists(call: Call, namespace: Namespace, view: str) -> Response:
    """Answer viewExists."""
    catalog_of(call).load_view(namespace, view)
    return Response(status_code=204)


def refuse_write(call: Call, path: str) -> Response:
    """Refuse every write."""
    # 403, because Spark removes the files that it has uploaded only then.
    raise Forbidden(READ_ONLY)


ROUTES: tuple[Route, ...] = (
    ("GET", "/health", health),
    ("GET", "/v1/config", get_config),
    ("GET", "/v1/{prefix}/events", list_events),
    ("GET", NAMESPACES, list_namespaces),
    ("POST", TABLE + "/metrics", report_metrics),
    ("POST", TABLE + "/plan", plan_table_scan),
    ("POST", TABLE + "/tasks", fetch_scan_tasks),
    ("GET", TABLE + "/credentials", load_credentials),
    ("GET", TABLE, load_table),
    ("HEAD", TABLE, table_exists),
    ("GET", NAMESPACE + "/tables", list_tables),
    ("GET", VIEW, load_view),
    ("HEAD", VIEW, view_exists),
    ("GET", NAMESPACE + "/views", list_views),
    ("GET", NAMESPACE, load_namespace_metadata),
    ("HEAD", NAMESPACE, namespace_exists),
)


def operations(lakes: Callable[[], Lakes[Catalog]]) -> Operations:
    """These operations, on lakes that are opened when a request needs them."""
    return Operations(ROUTES, lakes, ((refuse_write, WRITES), (refuse_path, ("GET", "HEAD"))))
