"""The Iceberg REST catalog behind API Gateway: routes, status codes and headers.

Routes are the operations of the Iceberg OpenAPI document under its names. Without `Writes=yes` this
function gets the requests that write, too, and refuses each; otherwise functions/commits gets them.
"""

from functools import cache
from typing import Annotated

from fastapi import Depends, Query, Request
from fastapi.responses import JSONResponse, Response
from polynya.catalog import rest_app
from polynya.catalog.events import events_after
from polynya.catalog.open_catalog import Lakes, catalogs
from polynya.catalog.reader import Catalog
from polynya.catalog.rest_app import NAMESPACE, NAMESPACES, TABLE, VIEW, Namespace, Route
from polynya.catalog.scans import ScanPlanner
from polynya.catalog.warehouse import Warehouse
from polynya.rest.planning import FetchScanTasksRequest, PlanTableScanRequest, parse
from polynya.rest.reports import plan_fields
from polynya.runtime.errors import READ_ONLY, BadRequest, Forbidden
from polynya.runtime.events import is_commit, matches_etag
from polynya.runtime.metrics import function_logger, timed
from polynya.runtime.namespaces import of_path
from polynya.runtime.settings import Config
from polynya.storage import aws

logger = function_logger("rest-catalog")
app = rest_app.new_app(logger)


@cache
def lakes() -> Lakes[Catalog]:
    """The lakes of the settings; no database is connected yet.

    Raises:
        Misconfigured: a setting is missing or not usable.
    """
    return catalogs(Config.from_env())


# `async def`: see catalog/rest_app.py.
async def catalog_at(request: Request, prefix: str) -> Catalog:
    """The catalog of the route's prefix, as the caller may see it."""
    catalog = rest_app.visible_lake(lakes(), request, Warehouse.of_prefix(prefix).name)
    return catalog.at_prefix(prefix, rest_app.rights_of(request, catalog.settings.lake))


AtPrefix = Annotated[Catalog, Depends(catalog_at)]
PageToken = Annotated[str | None, Query(alias="pageToken")]
PageSize = Annotated[int | None, Query(alias="pageSize", ge=1)]


async def get_config(request: Request, warehouse: str | None = None) -> JSONResponse:
    """Answer getConfig."""
    name = Warehouse.of_name(warehouse).name if warehouse else None
    return JSONResponse(rest_app.visible_lake(lakes(), request, name).get_config(warehouse))


async def health(request: Request, warehouse: str | None = None) -> JSONResponse:
    """Answer that the catalog database of a lake can be read, with its newest snapshot; of none, if
    the settings have no lake."""
    if warehouse is None and not lakes().has_own:
        return JSONResponse({"status": "ok"}, headers={"Cache-Control": "no-store"})
    catalog = rest_app.visible_lake(lakes(), request, warehouse)
    return JSONResponse(catalog.health(), headers={"Cache-Control": "no-store"})


async def list_events(
    catalog: AtPrefix,
    since: Annotated[int | None, Query(ge=0)] = None,
    limit: Annotated[int | None, Query(ge=1)] = None,
) -> JSONResponse:
    """Answer what happened since a snapshot: an operation of our own."""
    events = events_after(catalog, since, limit)
    return JSONResponse(events, headers={"Cache-Control": "no-store"})


async def list_namespaces(
    catalog: AtPrefix,
    parent: str | None = None,
    page_token: PageToken = None,
    page_size: PageSize = None,
) -> JSONResponse:
    """Answer listNamespaces."""
    within = of_path(parent) if parent else ()
    return JSONResponse(catalog.list_namespaces(within, page_token, page_size))


async def load_namespace_metadata(catalog: AtPrefix, namespace: Namespace) -> JSONResponse:
    """Answer loadNamespaceMetadata."""
    return JSONResponse(catalog.load_namespace_metadata(namespace))


async def namespace_exists(catalog: AtPrefix, namespace: Namespace) -> Response:
    """Answer namespaceExists."""
    catalog.load_namespace_metadata(namespace)
    return Response(status_code=204)


async def list_tables(
    catalog: AtPrefix,
    namespace: Namespace,
    page_token: PageToken = None,
    page_size: PageSize = None,
) -> JSONResponse:
    """Answer listTables."""
    return JSONResponse(catalog.list_tables(namespace, page_token, page_size))


async def load_table(
    request: Request,
    catalog: AtPrefix,
    namespace: Namespace,
    table: str,
    snapshots: str | None = None,
) -> Response:
    """Answer loadTable; 304 if the caller has the current metadata."""
    is_vending = rest_app.wants_credentials(request)
    with timed("LoadTable"):
        loaded = catalog.load_table(namespace, table, snapshots, with_credentials=is_vending)
    # It contains credentials.
    if loaded.etag is None:
        return JSONResponse(loaded.body, headers={"Cache-Control": "no-store"})
    headers = {"ETag": loaded.etag}
    if matches_etag(request.headers.get("if-none-match", ""), loaded.etag):
        return Response(status_code=304, headers=headers)
    return JSONResponse(loaded.body, headers=headers)


async def load_credentials(catalog: AtPrefix, namespace: Namespace, table: str) -> JSONResponse:
    """Answer loadCredentials."""
    credentials = catalog.load_credentials(namespace, table)
    return JSONResponse(credentials, headers={"Cache-Control": "no-store"})


async def table_exists(catalog: AtPrefix, namespace: Namespace, table: str) -> Response:
    """Answer tableExists."""
    catalog.check_table_exists(namespace, table)
    return Response(status_code=204)


async def report_metrics(
    request: Request, catalog: AtPrefix, namespace: Namespace, table: str
) -> Response:
    """Answer reportMetrics; the report becomes a line of the log."""
    body = await request.body()
    # API Gateway has decoded the path: see `is_commit`.
    if is_commit(body):
        raise BadRequest(f"clients cannot write a table whose name is {table}/metrics: rename it")
    rest_app.log_report(logger, request, (*namespace, table), body, catalog.settings)
    return Response(status_code=204)


async def plan_table_scan(
    request: Request, catalog: AtPrefix, namespace: Namespace, table: str
) -> JSONResponse:
    """Answer planTableScan."""
    body = parse(PlanTableScanRequest, await request.body())
    planner = ScanPlanner(catalog, rest_app.caller_of(request))
    is_vending = rest_app.wants_credentials(request)
    with (
        timed("PlanTableScan"),
        rest_app.logged(logger, "plan", request, *namespace, table) as line,
    ):
        answer = planner.plan_table_scan(namespace, table, body, with_credentials=is_vending)
        line.update(plan_fields(body, answer, with_values=catalog.settings.log_values))
    return JSONResponse(answer, headers={"Cache-Control": "no-store"})


async def fetch_scan_tasks(
    request: Request, catalog: AtPrefix, namespace: Namespace, table: str
) -> JSONResponse:
    """Answer fetchScanTasks."""
    body = parse(FetchScanTasksRequest, await request.body())
    planner = ScanPlanner(catalog, rest_app.caller_of(request))
    with timed("PlanTableScan"):
        return JSONResponse(planner.fetch_scan_tasks(namespace, table, body))


async def list_views(
    catalog: AtPrefix,
    namespace: Namespace,
    page_token: PageToken = None,
    page_size: PageSize = None,
) -> JSONResponse:
    """Answer listViews."""
    return JSONResponse(catalog.list_views(namespace, page_token, page_size))


async def load_view(catalog: AtPrefix, namespace: Namespace, view: str) -> JSONResponse:
    """Answer loadView."""
    return JSONResponse(catalog.load_view(namespace, view))


async def view_exists(catalog: AtPrefix, namespace: Namespace, view: str) -> Response:
    """Answer viewExists."""
    catalog.load_view(namespace, view)
    return Response(status_code=204)


async def refuse_write(path: str) -> Response:
    """Refuse every write that functions/commits does not get."""
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

rest_app.add_routes(app, ROUTES)
app.add_api_route("/{path:path}", refuse_write, methods=["POST", "PUT", "PATCH", "DELETE"])
app.add_api_route("/{path:path}", rest_app.refuse_path, methods=["GET", "HEAD"])

aws.prepare_snapshots(lambda: lakes().prepare(), rest_app.access_resolver)
handler = rest_app.lambda_handler(app, logger)
