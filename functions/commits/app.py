"""The Iceberg REST routes that write, behind API Gateway: one commit is one DuckLake snapshot.

Routes are the operations of the Iceberg OpenAPI document under its names. Deployed only with
`Writes=yes`, with a role and credentials of its own.
"""

import gc
from contextlib import ExitStack
from dataclasses import replace
from functools import cache
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.responses import JSONResponse, Response
from polynya.catalog import namespaces, rest_app, tables, views
from polynya.catalog.open_catalog import Lakes, catalog_of
from polynya.catalog.rest_app import NAMESPACE, NAMESPACES, TABLE, VIEW, Namespace, Route
from polynya.catalog.warehouse import Warehouse
from polynya.catalog.writer import WritableCatalog, reader_of_commits
from polynya.commits.committer import RequestKey
from polynya.commits.writing import DeleteFiles
from polynya.rest import requests
from polynya.rest.reports import commit_fields
from polynya.rest.requests import CommitViewRequest, CreateViewRequest
from polynya.rest.schemas import parse
from polynya.runtime.errors import READ_ONLY, BadRequest, Forbidden
from polynya.runtime.events import is_commit
from polynya.runtime.metrics import function_logger, timed
from polynya.runtime.settings import Config
from polynya.storage import aws
from polynya.storage.objects import (
    RangeReader,
    check_below,
    object_reader,
    write_object,
)

logger = function_logger("commits")
app = rest_app.new_app(logger)

# A commit of thousands of files makes millions of rows that are in no cycle. To look for cycles
# among them after each 700 new objects, Python's default, takes a fifth of the CPU time.
gc.set_threshold(50_000, 10, 10)


@cache
def lakes() -> Lakes[WritableCatalog]:
    """The lakes of the settings; no database is connected yet.

    Raises:
        Misconfigured: a setting is missing or not usable.
    """
    return Lakes(Config.from_env(), _open, commits=True)


def _open(config: Config, lakes: Lakes[Any]) -> WritableCatalog:
    # A commit reads the footer of each file that it adds: boto3 takes twice the CPU time for it
    # (decision 20).
    reader = replace(object_reader(), read_range=RangeReader().read_range)
    reader = reader_of_commits(reader, config)

    def write(location: str, body: bytes) -> None:
        check_below(location, config.data_path)
        write_object(location, body)

    delete_files = DeleteFiles(reader, write)
    return WritableCatalog(catalog_of(config, lakes, reader), reader, delete_files)


# `async def`: see catalog/rest_app.py.
async def catalog_at(request: Request, prefix: str) -> WritableCatalog:
    """The catalog of the route's prefix, as the caller may change it.

    Raises:
        Forbidden: clients may not write to this lake.
    """
    catalog = rest_app.visible_lake(lakes(), request, Warehouse.of_prefix(prefix).name)
    if not catalog.reader.settings.writes:
        raise Forbidden(READ_ONLY)
    rights = rest_app.rights_of(request, catalog.reader.settings.lake)
    principal = rest_app.caller_of(request) or None
    header = request.headers.get("idempotency-key")
    route = f"{request.method} {request.url.path}"
    return replace(
        catalog,
        reader=catalog.reader.at_prefix(prefix, rights),
        principal=principal,
        client=request.headers.get("x-client-version") or request.headers.get("user-agent", ""),
        request_key=RequestKey.of(header, principal, route, await request.body()),
    )


AtPrefix = Annotated[WritableCatalog, Depends(catalog_at)]


async def create_namespace(request: Request, catalog: AtPrefix) -> Response:
    """Answer createNamespace."""
    body = parse(requests.CreateNamespaceRequest, await request.body())
    return JSONResponse(namespaces.create(catalog, body))


async def drop_namespace(catalog: AtPrefix, namespace: Namespace) -> Response:
    """Answer dropNamespace."""
    namespaces.drop(catalog, namespace)
    return Response(status_code=204)


async def update_properties(request: Request, catalog: AtPrefix, namespace: Namespace) -> Response:
    """Answer updateProperties."""
    body = parse(requests.UpdateNamespacePropertiesRequest, await request.body())
    return JSONResponse(namespaces.update_properties(catalog, namespace, body))


async def create_table(request: Request, catalog: AtPrefix, namespace: Namespace) -> Response:
    """Answer createTable."""
    body = parse(requests.CreateTableRequest, await request.body())
    created = tables.create(
        catalog, namespace, body, with_credentials=rest_app.wants_credentials(request)
    )
    # It may contain credentials.
    return JSONResponse(created, headers={"Cache-Control": "no-store"})


async def update_table(
    request: Request, catalog: AtPrefix, namespace: Namespace, table: str
) -> Response:
    """Answer updateTable."""
    body = parse(requests.CommitTableRequest, await request.body())
    with timed("Commit"), rest_app.logged(logger, "commit", request, *namespace, table) as line:
        line.update(commit_fields(body))
        return JSONResponse(catalog.commit_table(namespace, table, body))


async def report_metrics(
    request: Request, catalog: AtPrefix, namespace: Namespace, table: str
) -> Response:
    """Answer reportMetrics for a name with a slash, which has no route of its own in API Gateway;
    the report becomes a line of the log."""
    body = await request.body()
    # API Gateway has decoded the path: a commit to the table `a/metrics` looks like a report about
    # the table `a`.
    if is_commit(body):
        return await update_table(request, catalog, namespace, f"{table}/metrics")
    settings = catalog.reader.settings
    rest_app.log_report(logger, request, (*namespace, table), body, settings)
    return Response(status_code=204)


async def drop_table(catalog: AtPrefix, namespace: Namespace, table: str) -> Response:
    """Answer dropTable."""
    # `purgeRequested` is ignored: DuckLake's older snapshots need the files.
    tables.drop(catalog, namespace, table)
    return Response(status_code=204)


async def rename_table(request: Request, catalog: AtPrefix) -> Response:
    """Answer renameTable."""
    body = parse(requests.RenameTableRequest, await request.body())
    tables.rename(catalog, body)
    return Response(status_code=204)


async def refuse_register(catalog: AtPrefix, namespace: Namespace) -> Response:
    """Refuse registerTable and registerView."""
    raise BadRequest(
        "DuckLake's metadata is in its catalog, not in files, so that no metadata file can be "
        "registered; create the table and copy its rows, or add its files with "
        "ducklake_add_data_files in DuckDB"
    )


async def create_view(request: Request, catalog: AtPrefix, namespace: Namespace) -> Response:
    """Answer createView."""
    body = parse(CreateViewRequest, await request.body())
    return JSONResponse(views.create(catalog, namespace, body))


async def replace_view(
    request: Request, catalog: AtPrefix, namespace: Namespace, view: str
) -> Response:
    """Answer replaceView."""
    body = parse(CommitViewRequest, await request.body())
    return JSONResponse(views.replace(catalog, namespace, view, body))


async def drop_view(catalog: AtPrefix, namespace: Namespace, view: str) -> Response:
    """Answer dropView."""
    views.drop(catalog, namespace, view)
    return Response(status_code=204)


async def rename_view(request: Request, catalog: AtPrefix) -> Response:
    """Answer renameView."""
    body = parse(requests.RenameTableRequest, await request.body())
    views.rename(catalog, body)
    return Response(status_code=204)


async def commit_transaction(request: Request, catalog: AtPrefix) -> Response:
    """Answer commitTransaction."""
    body = parse(requests.CommitTransactionRequest, await request.body())
    with timed("Commit"), ExitStack() as lines:
        for change in body.table_changes:
            identifier = change.identifier
            names = (*identifier.namespace, identifier.name) if identifier else ()
            line = lines.enter_context(rest_app.logged(logger, "commit", request, *names))
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
    ("POST", NAMESPACE + "/register", refuse_register),
    ("POST", NAMESPACE + "/register-view", refuse_register),
    ("POST", NAMESPACE + "/properties", update_properties),
    ("POST", NAMESPACES, create_namespace),
    ("DELETE", NAMESPACE, drop_namespace),
)

rest_app.add_routes(app, ROUTES)
app.add_api_route("/{path:path}", rest_app.refuse_path, methods=["POST", "PUT", "PATCH", "DELETE"])

aws.prepare_snapshots(lambda: lakes().prepare(), rest_app.access_resolver)
handler = rest_app.lambda_handler(app, logger)
