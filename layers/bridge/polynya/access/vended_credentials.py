"""Credentials that read one table: AssumeRole with a session policy of this table's files.

A session has those rights of the role that its policy repeats. S3 Object Lambda has no permission
for a single key, so the name of the session holds the table's uuid, and the function behind the
access point checks it (`table_of_session`). Only the catalog can assume the role.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools import Logger
from pg8000.native import Connection

from ..config import Config
from ..ducklake.paths import table_location
from ..ducklake.queries import table_locations
from ..ducklake.rows.lake import Lake
from ..ducklake.rows.named_objects import Schema, Table
from ..errors import Refused
from ..iceberg import rest
from ..metrics import count
from ..storage import aws
from .table_scope import KEY, OtherTables, S3Scope, coarsen_until, parent_directory

logger = Logger(child=True)

POLICY_LIMIT = 2048
"""Characters of a session policy (AWS, AssumeRole, "Policy")."""

MAX_KEYS = 64
"""More do not fit into a policy, however short they are."""

SESSION = re.compile("polynya-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


@dataclass(frozen=True, slots=True)
class TableScope:
    """What a client has to be able to read to read one table."""

    table_uuid: str
    virtual_location: str
    """The location of its virtual files, without a slash at its end."""
    policy: str
    """The session policy; empty: none fits."""
    locations: tuple[str, ...] = ()
    """Where the table's own files are: objects and directories."""
    reason: str = ""
    """Why no policy fits."""


def table_of_session(session: str) -> str | None:
    """The uuid of the table that a session was vended for; None if it is another session."""
    match = SESSION.fullmatch(session)
    return match[1] if match else None


class CredentialVending:
    """Vends credentials that read one table, by assuming the role of the settings."""

    def __init__(self, config: Config) -> None:
        self._role = config.vending_role
        self._seconds = config.vending_seconds
        self._endpoint = config.object_lambda_endpoint
        self._materialized = config.storage.is_materialized

    def scope(
        self, con: Connection, lake: Lake, schema: Schema, table: Table, virtual_location: str
    ) -> TableScope:
        """The scope of a table, from its rows in the catalog.

        Args:
            virtual_location: where the table's virtual files are.
        """

        def fits(scopes: Iterable[S3Scope]) -> bool:
            return self._fits(scopes, virtual_location)

        try:
            scopes = table_scopes(con, lake, schema, table, virtual_location, fits)
        except Refused as reason:
            return TableScope(table.table_uuid, virtual_location, "", reason=str(reason))
        policy = self._policy(scopes, virtual_location)
        locations = tuple(scope.location for scope in scopes)
        return TableScope(table.table_uuid, virtual_location, policy, locations)

    def for_table(self, scope: TableScope, refresh: str) -> dict[str, Any]:
        """The fields `config` and `storage-credentials` of loadTable's answer.

        There are none for a table that no policy fits: the caller may have other credentials.

        Args:
            refresh: the path that gives new ones, below the catalog's address.

        Raises:
            ServiceUnavailable, Misconfigured: STS gives none.
        """
        try:
            config = self._credentials(scope)
        except Refused as reason:
            logger.warning(str(reason), table_uuid=scope.table_uuid)
            return {}
        config |= {"client.refresh-credentials-endpoint": refresh}
        # DuckDB expects the location of the metadata first, and takes the prefix of an entry as its
        # scope only if there are several. Other clients read `config`.
        prefixes = dict.fromkeys([f"{scope.virtual_location}/", *scope.locations])
        entries: list[rest.StorageCredential] = [
            {"prefix": prefix, "config": config} for prefix in prefixes
        ]
        return {"config": config, "storage-credentials": entries}

    def refresh_credentials(self, scope: TableScope) -> rest.LoadCredentialsResponse:
        """The answer to loadCredentials: one entry, because Java accepts no more.

        Raises:
            Refused: no session policy fits the table.
            ServiceUnavailable, Misconfigured: STS gives none.
        """
        config = self._credentials(scope)
        return {"storage-credentials": [{"prefix": "s3", "config": config}]}

    def _fits(self, scopes: Iterable[S3Scope], virtual_location: str) -> bool:
        return len(self._policy(scopes, virtual_location)) <= POLICY_LIMIT

    def _policy(self, scopes: Iterable[S3Scope], virtual_location: str) -> str:
        partition = self._role.split(":")[1] if self._role else "aws"
        virtual = [S3Scope(f"{virtual_location}/", True)] if self._materialized else []
        return session_policy([*virtual, *sorted(scopes)], partition, not self._materialized)

    def _credentials(self, scope: TableScope) -> dict[str, str]:
        """The client properties of new credentials."""
        if scope.reason:
            raise Refused(scope.reason)
        answer = aws.call("credentials for this table", lambda: self._assume_role(scope))
        count("CredentialsVended")
        credentials = answer["Credentials"]
        expires_at_ms = int(credentials["Expiration"].timestamp() * 1000)
        config = {
            "s3.access-key-id": credentials["AccessKeyId"],
            "s3.secret-access-key": credentials["SecretAccessKey"],
            "s3.session-token": credentials["SessionToken"],
            "s3.session-token-expires-at-ms": str(expires_at_ms),
            "s3.region": aws.client("sts").meta.region_name,
            "client.region": aws.client("sts").meta.region_name,
        }
        if self._endpoint:  # a stand-in on this machine
            config |= {"s3.endpoint": self._endpoint, "s3.path-style-access": "true"}
        return config

    def _assume_role(self, scope: TableScope) -> Any:
        sts = aws.client("sts")
        try:
            return sts.assume_role(
                RoleArn=self._role,
                RoleSessionName=f"polynya-{scope.table_uuid}",
                DurationSeconds=self._seconds,
                Policy=scope.policy,
            )
        except sts.exceptions.PackedPolicyTooLargeException:
            raise Refused(
                "no credentials for this table: its files are in too many places for AWS's packed "
                "form of a session policy"
            ) from None


def table_scopes(
    con: Connection,
    lake: Lake,
    schema: Schema,
    table: Table,
    virtual_location: str,
    fits: Callable[[set[S3Scope]], bool],
) -> list[S3Scope]:
    """Objects and directories in S3 that hold all data files of a table and none of other tables.

    Args:
        virtual_location: where the table's virtual files are.
        fits: whether a session policy has room for these scopes.

    Raises:
        Refused: there are none that fit.
    """
    own = table_location(lake, schema, table)
    added = table_locations.own_directories(table.table_id, is_relative=False).run(con)
    others = other_tables(con, lake, table, virtual_location)
    if others.absent_from(own):
        scopes = {S3Scope(own, True)}
    else:
        within = table_locations.own_directories(table.table_id, is_relative=True).run(con)
        scopes = _scopes(con, table.table_id, within, own, others, is_relative=True)
    scopes |= _scopes(con, table.table_id, added, "", others, is_relative=False)
    if not all(KEY.fullmatch(scope.location) for scope in scopes):
        raise Refused("no credentials for this table: it has files outside of S3")
    if any(others.is_virtual(scope.location) for scope in scopes):
        raise Refused("no credentials for this table: it has files among the virtual ones")
    return coarsen_until(scopes, others, fits)


def other_tables(con: Connection, lake: Lake, table: Table, virtual_location: str) -> OtherTables:
    """Where all other tables of the lake are, and all virtual files."""
    others = table_locations.others(lake, table.table_id).run(con)
    files = table_locations.added_directories(others.table_ids).run(con)
    return OtherTables(others.directories, files, parent_directory(virtual_location))


def _scopes(
    con: Connection,
    table_id: int,
    directories: Mapping[str, int],
    base: str,
    others: OtherTables,
    *,
    is_relative: bool,
) -> set[S3Scope]:
    """The files in these directories: each by its key, as far as a policy has room for keys."""
    by_key = {one for one in directories if not others.absent_from(base + one)}
    number = sum(directories[one] for one in by_key)
    if number > MAX_KEYS:
        raise Refused(
            f"no credentials for this table: {number:,} of its files are in directories that hold "
            "files of other tables too, and a session policy cannot name them all"
        )
    for one in sorted(directories.keys() - by_key, key=lambda one: (directories[one], one)):
        number += directories[one]
        if number > MAX_KEYS:
            break
        by_key.add(one)
    keys = table_locations.own_files(table_id, by_key, is_relative=is_relative).run(con)
    return {
        *(S3Scope(base + key, False) for key in keys),
        *(S3Scope(base + one, True) for one in directories if one not in by_key),
    }


def session_policy(scopes: Iterable[S3Scope], partition: str, through_object_lambda: bool) -> str:
    """The policy as JSON, as short as possible.

    The statement for Object Lambda needs no resource: the role's own policy names the access point.

    Args:
        partition: of the ARNs, such as `aws`.
    """
    arns = [f"arn:{partition}:s3:::{_resource(scope)}" for scope in scopes]
    statements: list[dict[str, Any]] = []
    if arns:
        statements.append({"Effect": "Allow", "Action": "s3:GetObject", "Resource": arns})
    if through_object_lambda:
        actions = ["s3-object-lambda:GetObject", "lambda:InvokeFunction"]
        statements.append({"Effect": "Allow", "Action": actions, "Resource": "*"})
    policy = {"Version": "2012-10-17", "Statement": statements}
    return json.dumps(policy, separators=(",", ":"))


def _resource(scope: S3Scope) -> str:
    """Bucket and key; `*`, `?` and `$` are wildcards unless they are written `${*}`."""
    name = scope.location.partition("://")[2]
    name = re.sub("[*?$]", lambda match: f"${{{match[0]}}}", name)
    return f"{name}*" if scope.is_directory else name
