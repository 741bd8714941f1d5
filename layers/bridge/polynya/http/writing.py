"""The operations that write, under their names in the Iceberg OpenAPI document: one commit is one
DuckLake snapshot."""

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace

from fastapi.responses import JSONResponse, Response

from ..catalog import namespaces, registrations, tables, views
from ..catalog.lakes import Lakes
from ..catalog.warehouse import Warehouse
from ..catalog.writer import WritableCatalog
from ..commits.attempts import RequestKey
from ..rest import requests
from ..rest.reports import commit_fields
from ..rest.requests import CommitViewRequest, CreateViewRequest
from ..rest.schemas import parse
from ..runtime.errors import READ_ONLY, BadRequest, Forbidden
from ..runtime.metrics import timed
from .application import NAMESPACE, NAMESPACES, TABLE, VIEW, WRITES, Operations, Route
from .calls import Call, Namespace, refuse_path
from .conditions import is_commit


def catalog_of(call: Call) -> WritableCatalog:
    """The catalog of the route's prefix, as the caller may change it.

    Raises:
        Forbidden: clients may not write to this lake.
        NoSuchWarehouse, BadRequest, Misconfigured, ServiceUnavailable: as `Lakes.visible`.
    """
    catalog: WritableCatalog = call.lake(Warehouse.parse_prefix(call.prefix).name)
    settings = catalog.reader.settings
    if not settings.writes:
        raise Forbidden(READ_ONLY)
    principal = call.caller.identity or None
    route = f"{call.request.method} {call.request.url.path}"
    return replace(
        catalog,
        reader=catalog.reader.open_prefix(call.prefix, call.rights(settings.lake)),
        principal=principal,
        client=call.headers.get("x-client-version") or call.headers.get("user-agent", ""),
        request_key=RequestKey.from_request(
            call.headers.get("idempotency-key"), principal, route, call.body
        ),
    )


def create_namespace(call: Call) -> Response:
    """Answer createNamespace."""
    catalog = catalog_of(call)
    body = parse(requests.CreateNamespaceRequest, call.body)
    return JSONResponse(namespaces.create(catalog, body))


def drop_namespace(call: Call, namespace: Namespace) -> Response:
    """Answer dropNamespace."""
    namespaces.drop(catalog_of(call), namespace)
    return Response(status_code=204)


def update_properties(call: Call, namespace: Namespace) -> Response:
    """Answer updateProperties."""
    catalog = catalog_of(call)
    body = parse(requests.UpdateNamespacePropertiesRequest, call.body)
    return JSONResponse(namespaces.update_properties(catalog, namespace, body))


def create_table(call: Call, namespace: Namespace) -> Response:
    """Answer createTable."""
    catalog = catalog_of(call)
    body = parse(requests.CreateTableRequest, call.body)
    created = tables.create(catalog, namespace, body, with_credentials=call.wants_credentials)
    # The answer may contain credentials.
    return JSONResponse(created, headers={"Cache-Control": "no-store"})


def update_table(call: Call, namespace: Namespace, table: str) -> Response:
    """Answer updateTable."""
    catalog = catalog_of(call)
    body = parse(requests.CommitTableRequest, call.body)
    with timed("Commit"), call.logged("commit", *namespace, table) as line:
        line.update(commit_fields(body))
        return JSONResponse(catalog.commit_table(namespace, table, body))


def report_metrics(call: Call, namespace: Namespace, table: str) -> Response:
    """Answer reportMetrics for a name with a slash, which has no route of its own in API Gateway;
    the report becomes a line of the log."""
    catalog = catalog_of(call)
    # API Gateway has decoded the path: a commit to the table `a/metrics` looks like a report about
    # the table `a`.
    if is_commit(call.body):
        return update_table(call, namespace, f"{table}/metrics")
    call.log_report((*namespace, table), catalog.reader.settings)
    return Response(status_code=204)


def drop_table(call: Call, namespace: Namespace, table: str) -> Response:
    """Answer dropTable."""
    # `purgeRequested` is ignored: DuckLake's older snapshots need the files.
    tables.drop(catalog_of(call), namespace, table)
    return Response(status_code=204)


def rename_table(call: Call) -> Response:
    """Answer renameTable."""
    catalog = catalog_of(call)
    body = parse(requests.RenameTableRequest, call.body)
    tables.rename(catalog, body)
    return Response(status_code=204)


def register_table(call: Call, namespace: Namespace) -> Response:
    """Answer registerTable."""
    catalog = catalog_of(call)
    body = parse(requests.RegisterTableRequest, call.body)
    if body.dry_run:
        return JSONResponse(registrations.rehearse(catalog, namespace, body))
    with timed("Commit"), call.logged("register", *namespace, body.name):
        return JSONResponse(registrations.register(catalog, namespace, body))


def refuse_register_view(call: Call, namespace: Namespace) -> Response:
    """Refuse registerView."""
    catalog_of(call)  # callers who may not write are refused first
    raise BadRequest(
        "a view cannot be registered from a metadata file, because DuckLake keeps views in its "
        "catalog, with one text each: create the view"
    )


def create_view(call: Call, namespace: Namespace) -> Response:
    """Answer createView."""
    catalog = catalog_of(call)
    body = parse(CreateViewRequest, call.body)
    return JSONResponse(views.create(catalog, namespace, body))


def replace_view(call: Call, namespace: Namespace, view: str) -> Response:
    """Answer replaceView."""
    catalog = catalog_of(call)
    body = parse(CommitViewRequest, call.body)
    return JSONResponse(views.replace(catalog, namespace, view, body))


def drop_view(call: Call, namespace: Namespace, view: str) -> Response:
    """Answer dropView."""
    views.drop(catalog_of(call), namespace, view)
    return Response(status_code=204)


def rename_view(call: Call) -> Response:
    """Answer renameView."""
    catalog = catalog_of(call)
    body = parse(requests.RenameTableRequest, call.body)
    views.rename(catalog, body)
    return Response(status_code=204)


def commit_transaction(call: Call) -> Response:
    """Answer commitTransaction."""
    catalog = catalog_of(call)
    body = parse(requests.CommitTransactionRequest, call.body)
    with timed("Commit"), ExitStack() as lines:
        for change in body.table_changes:
            identifier = change.identifier
            names = (*identifier.namespace, identifier.name) if identifier else ()
            line = lines.enter_context(call.logged("commit", *names))
            line.update(commit_fields(change))
        tables.commit_transaction(catalog, body)
    return Response(status_code=204)


ROUTES: tuple[Route, ...] = (
    ("POST", "/v1/{prefix}/transactions/commit", commit_transaction),
    ("POST", "/v1/{prefix}/tables/rename", rename_table),
    ("POST", NAMESPACE + "/tables", create_table),
    ("POST", TABLE + "/metrics", report_metrics),
    ("POST", TABLE, update_table),
    ("DELETE", TABLE, drop_table),
    ("POST", "/v1/{prefix}/views/rename", rename_view),
    ("POST", NAMESPACE + "/views", create_view),
    ("POST", VIEW, replace_view),
    ("DELETE", VIEW, drop_view),
    ("POST", NAMESPACE + "/register", register_table),
    ("POST", NAMESPACE + "/register-view", refuse_register_view),
    ("POST", NAMESPACE + "/properties", update_properties),
    ("POST", NAMESPACES, create_namespace),
    ("DELETE", NAMESPACE, drop_namespace),
)


def operations(lakes: Callable[[], Lakes[WritableCatalog]]) -> Operations:
    """These operations, on lakes that are opened when a request needs them."""
    return Operations(ROUTES, lakes, ((refuse_path, WRITES),))
