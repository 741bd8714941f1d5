"""What limits a function on AWS.

`importable` has the packages that it can import: its own, its layers', and the runtime's. `Role`
has the S3 permissions that the policies in template.yaml give it.
"""

import ast
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.machinery import ModuleSpec
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement

RUNTIME = {"boto3", "botocore", "jmespath", "s3transfer", "urllib3", "dateutil", "six"}
"""The packages of Lambda's Python runtime.
https://docs.aws.amazon.com/lambda/latest/dg/python-package.html"""

OURS = {"polynya", "polynya_functions"}


def importable(requirements: Iterable[Path]) -> frozenset[str]:
    """The top-level modules of the packages in these files, of the runtime and of ours."""
    return _importable(tuple(requirements))


@cache
def _importable(requirements: tuple[Path, ...]) -> frozenset[str]:
    waiting = [line for path in requirements for line in _lines(path)]
    done: set[str] = set()
    names = OURS | RUNTIME | sys.stdlib_module_names | {"__main__"}
    while waiting:
        requirement = Requirement(waiting.pop())
        if requirement.marker and not requirement.marker.evaluate():
            continue
        if (name := re.sub("[-_.]+", "-", requirement.name).lower()) in done:
            continue
        done.add(name)
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
    return (
        action in _list(statement["Action"])
        # WriteGetObjectResponse names no resource; the access point is in the route.
        and (resource is None or any(_is_like(resource, r) for r in _list(statement["Resource"])))
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
