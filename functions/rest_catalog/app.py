"""The Iceberg REST catalog behind API Gateway: read the request, name the answer.

Routes are the operations of the Iceberg OpenAPI document under its names. Everything that would
change something is refused with 403, because Spark removes what it uploaded only then.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache
from typing import Annotated, Any
from urllib.parse import quote

from aws_lambda_powertools import Logger
from fastapi import Depends, FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.responses import JSONResponse, Response
from mangum import Mangum
from polynya.access.resolver import AccessResolver
from polynya.budget import budgeted
from polynya.catalog import Catalog
from polynya.config import Config
from polynya.database import open_database
from polynya.errors import BadRequest, Forbidden, NoSuchRoute, PolynyaError, log_fields
from polynya.files.virtual_files import VirtualFiles
from polynya.metrics import count_refusal, published, timed
from polynya.storage.configured import file_cache
from polynya.storage.object_reader import object_reader
from polynya.tracing import traced
from starlette.types import Receive, Scope, Send

COMPRESSED_FROM = 2000
"""Bytes of an answer."""

GZIP_LEVEL = 4
"""At which a thousand snapshots take a few milliseconds, and 5 % more bytes than at 9."""

RESERVE_SECONDS = 3
"""Of those that Lambda gives a request, to answer 503 before API Gateway does."""

logger = Logger(service="rest-catalog")
app = FastAPI(title="Polynya", openapi_url=None, redirect_slashes=False)
# An HTTP API does not compress, and Lambda may answer 6 MB.
app.add_middleware(GZipMiddleware, minimum_size=COMPRESSED_FROM, compresslevel=GZIP_LEVEL)


@cache
def readers() -> AccessResolver:
    return AccessResolver(Config.from_env())


@cache
def open_catalog() -> Catalog:
    config = Config.from_env()
    database = open_database(config)
    virtual_files = VirtualFiles(config, database, file_cache(config), object_reader())
    return Catalog(config, database, virtual_files)


# `async def` although nothing awaits: under Mangum a `def` route or dependency is given a new
# thread on every invocation, and the one PostgreSQL connection must not change threads.
async def catalog_at(request: Request, prefix: str) -> Catalog:
    caller = request.scope["aws.event"]["requestContext"]
    return open_catalog().at_prefix(prefix, readers().of_api(caller))


async def namespace_name(namespace: str) -> str:
    return name_of(namespace)


def name_of(namespace: str) -> str:
    """DuckDB splits a name at its dots and sends the parts with the unit separator between."""
    return namespace.replace("\x1f", ".")


AtPrefix = Annotated[Catalog, Depends(catalog_at)]
Namespace = Annotated[str, Depends(namespace_name)]
PageToken = Annotated[str | None, Query(alias="pageToken")]
PageSize = Annotated[int | None, Query(alias="pageSize", ge=1)]


async def get_config(warehouse: str | None = None) -> JSONResponse:
    return JSONResponse(open_catalog().get_config(warehouse))


async def health() -> JSONResponse:
    return JSONResponse(open_catalog().health(), headers={"Cache-Control": "no-store"})


async def list_namespaces(
    catalog: AtPrefix,
    parent: str | None = None,
    page_token: PageToken = None,
    page_size: PageSize = None,
) -> JSONResponse:
    within = name_of(parent) if parent else None
    return JSONResponse(catalog.list_namespaces(within, page_token, page_size))


async def load_namespace_metadata(catalog: AtPrefix, namespace: Namespace) -> JSONResponse:
    return JSONResponse(catalog.load_namespace_metadata(namespace))


async def namespace_exists(catalog: AtPrefix, namespace: Namespace) -> Response:
    catalog.load_namespace_metadata(namespace)
    return Response(status_code=204)


async def list_tables(
    catalog: AtPrefix,
    namespace: Namespace,
    page_token: PageToken = None,
    page_size: PageSize = None,
) -> JSONResponse:
    return JSONResponse(catalog.list_tables(namespace, page_token, page_size))


async def load_table(
    request: Request,
    catalog: AtPrefix,
    namespace: Namespace,
    table: str,
    snapshots: str | None = None,
) -> Response:
    asked = request.headers.get("x-iceberg-access-delegation", "").split(",")
    delegates = "vended-credentials" in map(str.strip, asked)
    with timed("LoadTable"):
        loaded = catalog.load_table(namespace, table, snapshots, with_credentials=delegates)
    if loaded.etag is None:
        return JSONResponse(loaded.body, headers={"Cache-Control": "no-store"})
    headers = {"ETag": loaded.etag}
    if loaded.etag in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return JSONResponse(loaded.body, headers=headers)


async def load_credentials(catalog: AtPrefix, namespace: Namespace, table: str) -> JSONResponse:
    answer = catalog.load_credentials(namespace, table)
    return JSONResponse(answer, headers={"Cache-Control": "no-store"})


async def table_exists(catalog: AtPrefix, namespace: Namespace, table: str) -> Response:
    catalog.check_table_exists(namespace, table)
    return Response(status_code=204)


async def report_metrics(catalog: AtPrefix, namespace: Namespace, table: str) -> Response:
    return Response(status_code=204)


async def list_views(
    catalog: AtPrefix,
    namespace: Namespace,
    page_token: PageToken = None,
    page_size: PageSize = None,
) -> JSONResponse:
    return JSONResponse(catalog.list_views(namespace, page_token, page_size))


async def load_view(catalog: AtPrefix, namespace: Namespace, view: str) -> JSONResponse:
    return JSONResponse(catalog.load_view(namespace, view))


async def view_exists(catalog: AtPrefix, namespace: Namespace, view: str) -> Response:
    catalog.load_view(namespace, view)
    return Response(status_code=204)


async def refuse_write(path: str) -> Response:
    raise Forbidden("this catalog is read-only")


async def refuse_path(path: str) -> Response:
    raise NoSuchRoute(f"no such route: /{path}")


NAMESPACES = "/v1/{prefix}/namespaces"
NAMESPACE = NAMESPACES + "/{namespace}"
TABLE = NAMESPACE + "/tables/{table}"
VIEW = NAMESPACE + "/views/{view}"

ROUTES: tuple[tuple[str, str, Callable[..., Awaitable[Response]]], ...] = (
    ("GET", "/health", health),
    ("GET", "/v1/config", get_config),
    ("GET", NAMESPACES, list_namespaces),
    ("POST", TABLE + "/metrics", report_metrics),
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

# API Gateway decodes the path, so that a `/` in a name looks like any other. Names without one
# come first; then `:path` takes the others.
for names in ("{namespace} {table} {view}", "{namespace:path} {table:path} {view:path}"):
    namespace, table, view = names.split()
    for method, path, answer in ROUTES:
        path = path.replace("{namespace}", namespace).replace("{table}", table)
        app.add_api_route(path.replace("{view}", view), answer, methods=[method])
app.add_api_route("/{path:path}", refuse_write, methods=["POST", "PUT", "PATCH", "DELETE"])
app.add_api_route("/{path:path}", refuse_path, methods=["GET", "HEAD"])


@app.exception_handler(PolynyaError)
async def error_response(request: Request, error: PolynyaError) -> JSONResponse:
    count_refusal(error.type)
    if error.status >= 500:
        logger.error("refused", reason=str(error), path=request.url.path)
    body = {"message": str(error), "type": error.type, "code": error.status}
    headers = {"Retry-After": str(error.retry_after)} if error.retry_after else None
    return JSONResponse({"error": body}, status_code=error.status, headers=headers)


@app.exception_handler(RequestValidationError)
async def invalid_request(request: Request, error: RequestValidationError) -> JSONResponse:
    wrong = "; ".join(f"{problem['loc'][-1]}: {problem['msg']}" for problem in error.errors())
    return await error_response(request, BadRequest(wrong))


@app.exception_handler(Exception)
async def unexpected(request: Request, error: Exception) -> JSONResponse:
    logger.error("unexpected error", path=request.url.path, **log_fields(error))
    return await error_response(request, PolynyaError("an unexpected error; see the log"))


async def answered(scope: Scope, receive: Receive, send: Send) -> None:
    """The application, which has sent its answer when it raises: `unexpected` has made it."""
    with suppress(Exception):  # Mangum would log the message
        await app(scope, receive, send)


asgi = Mangum(answered, lifespan="off")


@traced
@published
@budgeted(RESERVE_SECONDS)
@logger.inject_lambda_context(correlation_id_path="requestContext.requestId")
def handler(event: dict[str, Any], context: Any) -> dict[str, Any]:
    """Answer one event of API Gateway's payload 2.0."""
    http = event["requestContext"]["http"]
    if ".lambda-url." not in event["requestContext"].get("domainName", ""):
        # An HTTP API has decoded the path, a Function URL has not, and Mangum decodes it always.
        event = event | {
            "requestContext": event["requestContext"]
            | {"http": http | {"path": quote(http["path"])}}
        }
    return asgi(event, context)
