"""Session policies: what vended credentials may do in S3, as the JSON that AssumeRole takes.

A session has those rights of its role that its policy repeats. S3 Object Lambda has no permission
for a single key: see `vended_credentials`.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

from .table_scope import S3Scope

POLICY_LIMIT = 2048
"""Characters of a session policy (AWS, AssumeRole, "Policy")."""

READS = "s3:GetObject"
WRITES = ["s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"]
"""Parts of an upload need PutObject too. Clients list no parts, and use DeleteObject only to clean
up: some of them after commits that have taken place."""

DELETE_FILES = ("*-deletes.parquet", "*-deletes.puffin")
"""The delete files of DuckDB, which it puts beside the data file: `<random UUID>-deletes.parquet`,
or `.puffin` with the deletion vectors of format version 3. No file of DuckLake (its own end in
`-delete.parquet` and `-delete.puffin`) and no virtual file has such a name."""

OBJECT_LAMBDA = ["s3-object-lambda:GetObject", "lambda:InvokeFunction"]

UPLOADS = ["s3-object-lambda:PutObject", "s3-object-lambda:AbortMultipartUpload"]
"""An Object Lambda access point passes them on to its supporting access point, where the right to
put the object is checked."""

SUPPORTING = "arn:{}:s3:*:*:accesspoint/*/object/"
"""An object behind an access point. The role's own policy names the access point."""


def session_policy(
    reads: Iterable[S3Scope],
    writes: Iterable[S3Scope],
    deletes: Iterable[S3Scope],
    partition: str,
    virtual_files: S3Scope | None,
) -> str:
    """The policy as JSON, as short as possible.

    The statement for Object Lambda needs no resource: the role's own policy names the access point.

    Args:
        reads: what may be read.
        writes: what may be written, and read.
        deletes: directories in which DuckDB may put its delete files, and nothing else.
        partition: of the ARNs, such as `aws`.
        virtual_files: the directory of those that are read through Object Lambda; None: they are
            real objects.
    """
    arn = f"arn:{partition}:s3:::"
    read, written = ([arn + _resource(scope) for scope in scopes] for scopes in (reads, writes))
    directories = [arn + _escaped(scope.location) for scope in deletes]
    through = OBJECT_LAMBDA
    if virtual_files and directories:
        key = _escaped(virtual_files.location).partition("/")[2]
        directories.append(SUPPORTING.format(partition) + key)
        through = [*OBJECT_LAMBDA, *UPLOADS]
    written += [one + names for one in directories for names in DELETE_FILES]
    # S3 takes `..` for a name like any other, but what a client makes of such a location may be
    # that of another table.
    statements = [
        *_statement("Allow", READS, read),
        *_statement("Allow", WRITES, written),
        *_statement("Deny", "s3:PutObject", f"{arn}*/../*" if written else []),
        *_statement("Allow", through, "*" if virtual_files else []),
    ]
    return json.dumps({"Version": "2012-10-17", "Statement": statements}, separators=(",", ":"))


def _statement(
    effect: str, actions: str | list[str], resources: str | list[str]
) -> list[dict[str, Any]]:
    """A statement, or none without resources."""
    return [{"Effect": effect, "Action": actions, "Resource": resources}] if resources else []


def _resource(scope: S3Scope) -> str:
    name = _escaped(scope.location)
    return f"{name}*" if scope.is_directory else name


def _escaped(location: str) -> str:
    """Bucket and key; `*`, `?` and `$` are wildcards unless they are written `${*}`."""
    name = location.partition("://")[2]
    return re.sub("[*?$]", lambda match: f"${{{match[0]}}}", name)
