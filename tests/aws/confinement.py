"""Limits the threads of a function to the packages and S3 permissions that it has on AWS.

On AWS each function is a process with its layers and its role. Here both are threads of one
process, so `import` and boto3 check which thread calls them. Threads that a function starts have
its limits.

`importable` has the packages that a function can import: its own, its layers', and the runtime's.
`Role` has the S3 permissions that the policies in template.yaml give it.

Not checked: importlib.import_module, imports of packages by packages when they are first loaded,
and permissions in other services than S3. `make deployed` has real layers and processes.
"""

import ast
import builtins
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Any

from botocore.client import BaseClient
from botocore.exceptions import ClientError
from packaging.requirements import Requirement
from polynya.storage.direct_s3 import DirectS3

RUNTIME = {"boto3", "botocore", "jmespath", "s3transfer", "urllib3", "dateutil", "six"}
"""The packages of Lambda's Python runtime.
https://docs.aws.amazon.com/lambda/latest/dg/python-package.html"""

OURS = {"polynya", "functions"}


def importable(requirements: Iterable[Path]) -> frozenset[str]:
    """The top-level modules of the packages in these files, of the runtime and of ours."""
    return _importable(tuple(requirements))


@cache
def _importable(requirements: tuple[Path, ...]) -> frozenset[str]:
    waiting = [line for path in requirements for line in _lines(path)]
    seen_names: set[str] = set()
    names = OURS | RUNTIME | sys.stdlib_module_names | {"__main__"}
    while waiting:
        requirement = Requirement(waiting.pop())
        if requirement.marker and not requirement.marker.evaluate():
            continue
        if (name := re.sub("[-_.]+", "-", requirement.name).lower()) in seen_names:
            continue
        seen_names.add(name)
        try:
            package = distribution(name)
        except PackageNotFoundError:
            continue  # for another platform
        waiting += package.requires or []
        names |= {file.parts[0].partition(".")[0] for file in package.files or []}
    return frozenset(names)


def _lines(requirements: Path) -> Iterator[str]:
    """The requirements of a file, without hashes and comments."""
    for line in requirements.read_text().splitlines():
        if re.match(r"\w", line):
            yield line.removesuffix("\\")


@cache
def loaded_with(module: str) -> frozenset[str]:
    """The modules that a module of ours loads when it is imported, read from the sources.

    Imports within functions, or for type checkers, do not count. Modules of ours have their full
    name, others the name of their package.
    """
    modules: set[str] = set()
    waiting = [module]
    while waiting:
        name = waiting.pop()
        if name not in modules:
            modules.add(name)
            waiting += _imports(name)
    return frozenset(modules)


@cache
def _imports(module: str) -> frozenset[str]:
    top = module.partition(".")[0]
    if top not in OURS:
        return frozenset()
    spec = _spec(module)
    if spec is None or spec.origin is None:
        return frozenset()
    names: set[str] = set()
    for node in _at_load_time(ast.parse(Path(spec.origin).read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        else:
            package = "." * node.level + (node.module or "")
            base = resolve_name(package, spec.parent) if node.level else package
            names |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return frozenset(name for name in map(_module_or_package, names) if name)


def _at_load_time(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Import | ast.ImportFrom):
            yield child
        is_later = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) or (
            isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING"
        )
        if not is_later:
            yield from _at_load_time(child)


def _module_or_package(name: str) -> str | None:
    """The full name of a module of ours, or the package of another; None: it is no module."""
    top = name.partition(".")[0]
    if top not in OURS:
        return top
    return name if _spec(name) else None


def _spec(module: str) -> ModuleSpec | None:
    """The spec of a module; None: there is none, for example because it is a name in a module."""
    try:
        return find_spec(module)
    except ModuleNotFoundError:
        return None


PERMISSIONS = {
    "GetObject": "s3:GetObject",
    "HeadObject": "s3:GetObject",
    "PutObject": "s3:PutObject",
    "CreateMultipartUpload": "s3:PutObject",
    "UploadPart": "s3:PutObject",
    "UploadPartCopy": "s3:PutObject",
    "CompleteMultipartUpload": "s3:PutObject",
    "AbortMultipartUpload": "s3:AbortMultipartUpload",
    "DeleteObject": "s3:DeleteObject",
    "DeleteObjects": "s3:DeleteObject",
    "ListObjectsV2": "s3:ListBucket",
    "ListObjects": "s3:ListBucket",
    "HeadBucket": "s3:ListBucket",
    "WriteGetObjectResponse": "s3-object-lambda:WriteGetObjectResponse",
}
"""The action that an operation of S3 needs; other operations are always refused.
https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html"""


@dataclass(frozen=True)
class Role:
    """The policy statements of a role."""

    statements: Iterable[Mapping[str, Any]]

    def may(self, operation: str, parameters: Mapping[str, Any]) -> bool:
        """Whether the role may call an operation of S3 with these parameters."""
        effects = {
            statement["Effect"]
            for statement in self.statements
            if _is_about(statement, PERMISSIONS.get(operation), parameters)
        }
        return effects == {"Allow"}  # a Deny wins

    def may_list(self, bucket: str) -> bool:
        """Whether S3 answers a request for a missing object with 404, not 403.

        A request for an object does not fulfil a condition on s3:prefix.
        """
        return self.may("HeadBucket", {"Bucket": bucket})


def _is_about(
    statement: Mapping[str, Any], action: str | None, parameters: Mapping[str, Any]
) -> bool:
    resource = _resource(parameters)
    is_not = "NotResource" in statement
    patterns = _list(statement["NotResource" if is_not else "Resource"])
    return (
        action in _list(statement["Action"])
        # WriteGetObjectResponse names no resource; the access point is in the route.
        and (resource is None or any(_is_like(resource, p) for p in patterns) != is_not)
        and _holds(statement.get("Condition", {}), parameters)
    )


def _resource(parameters: Mapping[str, Any]) -> str | None:
    if "Bucket" not in parameters:
        return None
    key = f"/{parameters['Key']}" if "Key" in parameters else ""
    return f"arn:aws:s3:::{parameters['Bucket']}{key}"


def _holds(condition: Mapping[str, Any], parameters: Mapping[str, Any]) -> bool:
    for operator, keys in condition.items():
        if operator != "StringLike" or set(keys) != {"s3:prefix"}:
            raise ValueError(f"the stand-in does not know the condition {condition}")
        prefix = parameters.get("Prefix")
        if prefix is None or not any(
            _is_like(prefix, pattern) for pattern in _list(keys["s3:prefix"])
        ):
            return False
    return True


def _is_like(text: str, pattern: str) -> bool:
    """Whether a text matches IAM's wildcards: `*` for any text, `?` for one character."""
    parts = (re.escape(part).replace(r"\?", ".") for part in pattern.split("*"))
    return re.fullmatch(".*".join(parts), text, re.DOTALL) is not None


def _list(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


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
    # Its requests do not go through a client of boto3.
    DirectS3.send = _sending(DirectS3.send)  # type: ignore[method-assign]
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
            # Without s3:ListBucket S3 does not say that an object is missing.
            is_missing = error.response["ResponseMetadata"]["HTTPStatusCode"] == 404
            if is_missing and not confinement.role.may_list(parameters["Bucket"]):
                raise _access_denied(operation) from None
            raise

    return make_api_call


def _sending(original: Callable[..., bytes | None]) -> Callable[..., bytes | None]:
    """Requests that boto3 does not send; what is refused is asked again through boto3."""

    def send(direct: DirectS3, operation: str, bucket: str, key: str, **parts: Any) -> bytes | None:
        confinement = current()
        name = "Prefix" if operation == "ListObjectsV2" else "Key"
        is_refused = confinement is not None and not confinement.role.may(
            operation, {"Bucket": bucket, name: key}
        )
        return None if is_refused else original(direct, operation, bucket, key, **parts)

    return send


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
