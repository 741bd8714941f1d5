"""Limits the threads of a function to the packages and S3 permissions that it has on AWS.

On AWS each function is a process with its layers and its role. Here both are threads of one
process, so `import` and boto3 check which thread calls them. Threads that a function starts have
its limits.

Not checked: importlib.import_module, imports of packages by packages when they are first loaded,
and permissions in other services than S3. `make deployed` has real layers and processes.
"""

import builtins
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from botocore.client import BaseClient
from botocore.exceptions import ClientError
from polynya.storage.objects import RangeReader

from .limits import OURS, Role, loaded_with

_of_thread = threading.local()


@dataclass(frozen=True)
class Confinement:
    """The packages and permissions of one function."""

    function: str
    packages: frozenset[str]
    role: Role

    def enter(self) -> None:
        """Limit this thread, and all threads that it starts."""
        _install()
        _of_thread.confinement = self

    def check_module(self, module: str) -> None:
        """Check that the function has a module, and all modules that it loads, on AWS.

        Raises:
            ModuleNotFoundError: it does not, so that the import fails as on AWS.
        """
        for name in sorted(loaded_with(module)):
            package = name.partition(".")[0]
            if package not in self.packages:
                raise ModuleNotFoundError(
                    f"No module named {package!r} in the layers of {self.function}", name=package
                )


def current() -> Confinement | None:
    """The limits of this thread; None: it has none."""
    return getattr(_of_thread, "confinement", None)


@cache
def _install() -> None:
    builtins.__import__ = _importing(builtins.__import__)
    BaseClient._make_api_call = _calling(BaseClient._make_api_call)
    RangeReader.fetch = _fetching(RangeReader.fetch)  # type: ignore[method-assign]
    threading.Thread.start = _starting(threading.Thread.start)  # type: ignore[method-assign, assignment]


def _importing(original: Callable[..., Any]) -> Callable[..., Any]:
    def import_(
        name: str,
        globals: dict[str, Any] | None = None,
        locals: dict[str, Any] | None = None,
        fromlist: tuple[str, ...] | None = (),
        level: int = 0,
    ) -> Any:
        confinement = current()
        importer = (globals or {}).get("__name__", "")
        # Imports by pytest and the stand-in in a thread of a function are not limited.
        if confinement is None or importer.partition(".")[0] not in confinement.packages:
            return original(name, globals, locals, fromlist, level)
        if importer.partition(".")[0] in OURS:
            for module in _candidates(name, globals or {}, fromlist or (), level):
                confinement.check_module(module)
        elif not level and name.partition(".")[0] not in confinement.packages:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return original(name, globals, locals, fromlist, level)

    return import_


def _candidates(
    name: str, globals_: dict[str, Any], fromlist: tuple[str, ...], level: int
) -> list[str]:
    """The full names of the modules that an import statement may load."""
    if level:
        above = globals_["__package__"].rsplit(".", level - 1)[0]
        name = f"{above}.{name}" if name else above
    return [name, *(f"{name}.{child}" for child in fromlist if name.partition(".")[0] in OURS)]


def _calling(original: Callable[..., Any]) -> Callable[..., Any]:
    def make_api_call(client: Any, operation: str, parameters: dict[str, Any]) -> Any:
        confinement = current()
        if confinement is None or client.meta.service_model.service_name != "s3":
            return original(client, operation, parameters)
        if not confinement.role.may(operation, parameters):
            raise _access_denied(operation)
        try:
            return original(client, operation, parameters)
        except ClientError as error:
            is_missing = error.response["ResponseMetadata"]["HTTPStatusCode"] == 404
            if is_missing and not confinement.role.may_list(parameters["Bucket"]):
                raise _access_denied(operation) from None
            raise

    return make_api_call


def _fetching(original: Callable[..., bytes | None]) -> Callable[..., bytes | None]:
    """Requests that boto3 does not send; what is refused is asked again through boto3."""

    def fetch(reader: RangeReader, bucket: str, key: str, *span: int) -> bytes | None:
        confinement = current()
        is_refused = confinement is not None and not confinement.role.may(
            "GetObject", {"Bucket": bucket, "Key": key}
        )
        return None if is_refused else original(reader, bucket, key, *span)

    return fetch


def _access_denied(operation: str) -> ClientError:
    error = {"Code": "AccessDenied", "Message": "Access Denied"}
    return ClientError({"Error": error, "ResponseMetadata": {"HTTPStatusCode": 403}}, operation)


def _starting(original: Callable[[threading.Thread], None]) -> Callable[[threading.Thread], None]:
    def start(thread: threading.Thread) -> None:
        if (confinement := current()) is not None:
            run = thread.run

            def confined() -> None:
                _of_thread.confinement = confinement
                run()

            thread.run = confined  # type: ignore[method-assign]
        original(thread)

    return start
