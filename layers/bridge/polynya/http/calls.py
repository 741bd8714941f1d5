"""One request: who sends it, its headers and body, and the lakes that it may be about."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Annotated, Any

from aws_lambda_powertools import Logger
from fastapi import Depends, Request
from starlette.datastructures import Headers

from ..access.caller import Caller
from ..access.policy import Rights
from ..catalog.lakes import Lakes
from ..catalog.warehouse import Warehouse
from ..rest.planning import parse
from ..rest.reports import report_fields
from ..runtime.errors import NoSuchRoute, PolynyaError
from ..runtime.namespaces import Namespace as Levels
from ..runtime.namespaces import dotted, parse_path
from ..runtime.settings import Config

CALLER = "polynya.caller"
"""The key of the caller in the scope of a request."""


async def named_namespace(namespace: str) -> Levels:
    """The namespace that a route names."""
    return parse_path(namespace)


Namespace = Annotated[Levels, Depends(named_namespace)]


@dataclass(frozen=True, slots=True)
class Call:
    """A request to the catalog, as far as it is not in the parameters of its route."""

    request: Request = field(repr=False)
    body: bytes = field(repr=False)
    open_lakes: Callable[[], Lakes[Any]] = field(repr=False)
    logger: Logger = field(repr=False)

    @property
    def lakes(self) -> Lakes[Any]:
        """The lakes of the application.

        Raises:
            Misconfigured: a setting is missing or not usable.
        """
        return self.open_lakes()

    @property
    def caller(self) -> Caller:
        """Who sends the request, as the host has verified it."""
        caller: Caller = self.request.scope[CALLER]
        return caller

    @property
    def headers(self) -> Headers:
        """The headers of the request."""
        return self.request.headers

    @property
    def prefix(self) -> str:
        """The prefix of the path: a lake, with or without its options."""
        prefix: str = self.request.path_params["prefix"]
        return prefix

    def lake(self, name: str | None) -> Any:
        """The lake of this name, opened for the caller. Args, Raises: as `Lakes.visible`."""
        return self.lakes.visible(name, self.caller)

    def rights(self, lake: str) -> Rights:
        """What the caller may read and write. Args, Raises: as `AccessResolver.catalog_rights`."""
        return self.lakes.access.catalog_rights(self.caller, lake)

    @property
    def wants_credentials(self) -> bool:
        """Whether the client asks for vended credentials."""
        access_delegation = self.headers.get("x-iceberg-access-delegation", "")
        return "vended-credentials" in map(str.strip, access_delegation.split(","))

    @contextmanager
    def logged(self, message: str, *table: str) -> Iterator[dict[str, Any]]:
        """Write a log line about the block: who, which table, how it ended, how long it took.

        Args:
            table: the levels of its namespace and its name.

        Returns:
            More keys and values of the line, which the block adds.
        """
        fields: dict[str, Any] = {}
        line: dict[str, Any] = {"principal": self.caller.identity, "table": dotted(*table)}
        line["outcome"] = "done"
        line |= self._lake_field()
        started = perf_counter()
        try:
            yield fields
        except PolynyaError as error:
            line["outcome"] = error.type
            raise
        except Exception:
            line["outcome"] = PolynyaError.type
            raise
        finally:
            milliseconds = round((perf_counter() - started) * 1000, 1)
            self.logger.info(message, **{**line, "milliseconds": milliseconds, **fields})

    def log_report(self, table: Levels, config: Config) -> None:
        """Write a log line about a client's report of a scan or a commit.

        Args:
            table: the levels of its namespace and its name.
            config: the settings of the lake.

        Raises:
            BadRequest: the report does not have the form of the specification.
        """
        fields = report_fields(parse(dict, self.body), with_values=config.log_values)
        if fields is None:
            return
        # To check whether the table exists would cost a query for each scan. A caller cannot write
        # lines about tables that are hidden from it.
        if self.rights(config.lake).may_read_table(table[:-1], table[-1]):
            principal = self.caller.identity
            fields = self._lake_field() | fields
            self.logger.info("report", principal=principal, table=dotted(*table), **fields)

    def _lake_field(self) -> dict[str, Any]:
        """The field of a log line that names the lake, if there are several."""
        if not self.lakes.are_several:
            return {}
        return {"lake": Warehouse.parse_prefix(self.prefix).name}


def refuse_path(call: Call, path: str) -> Any:
    """Answer a path that no operation has."""
    # The documentation of some clients has a URI that ends in /v1, to which others add theirs.
    hint = ": leave out the /v1 at the end of the catalog's URI" if path[:6] == "v1/v1/" else ""
    raise NoSuchRoute(f"no such route: /{path}{hint}")
