"""Credentials for one table: AssumeRole with a session policy of this table's files.

S3 Object Lambda has no permission for a single key, so the name of the session holds the table's
uuid, and the function behind the access point checks it (`table_of_session`). A session has those
rights of its role that its policy repeats. Only the catalog can assume the roles: one for readers,
one for writers.
"""

import hashlib
import json
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from aws_lambda_powertools import Logger
from pg8000.native import Connection

from ..ducklake.paths import table_location
from ..ducklake.rows.objects import Lake, Schema, Table
from ..mapping.properties import staging_root, upload_location
from ..rest import answers
from ..runtime.errors import HiddenFromCaller, PolynyaError, Refused
from ..runtime.metrics import count
from ..runtime.settings import Config
from ..storage.aws import Clients, call
from ..storage.s3_locations import is_below
from ..virtual_files.names import UUID
from .table_scope import (
    OtherTables,
    S3Scope,
    coarsen_until,
    other_tables,
    read_scopes,
    upload_scopes,
    virtual_root,
)

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
"""Objects behind any access point: the role's own policy names the access point."""


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
    written += [path + names for path in directories for names in DELETE_FILES]
    # S3 takes `..` for a name like any other, but clients may normalise such a location to one of
    # another table.
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


logger = Logger(child=True)

REFRESH = "client.refresh-credentials-endpoint"
"""The property with the path at which a client gets new credentials."""

SESSION = re.compile(f"polynya-({UUID})(?:-([0-9a-f]{{16}}))?")
"""The table, and a digest of the name of its lake if that is not the lake of the settings. The name
of a session has 64 characters at most."""


@dataclass(frozen=True, slots=True)
class TableScope:
    """The objects that a client must be able to read, and perhaps to write, for one table."""

    table_uuid: str
    virtual_location: str
    """The location of its virtual files, without a slash at its end."""
    role: str
    policy: str
    """The session policy; empty: none fits."""
    locations: tuple[str, ...] = ()
    """Where the table's own files are: objects and directories."""
    reason: str = ""
    """Why no policy fits."""
    otherwise: "TableScope | None" = None
    """The scope of a reader, which a writer gets instead if this one is refused."""


def session_name(table_uuid: str, lake: str) -> str:
    """The name of a session for a table.

    Args:
        lake: of the document LAKES; empty: that of the settings.
    """
    digest = f"-{hashlib.sha256(lake.encode()).hexdigest()[:16]}" if lake else ""
    return f"polynya-{table_uuid}{digest}"


def table_of_session(session: str, lake: str = "") -> str | None:
    """The uuid of the table of a lake that a session was vended for; None: it is another session.

    Args: as `session_name`.
    """
    match = SESSION.fullmatch(session)
    # Tables of two lakes may have the same uuid, if one lake is a copy of the other.
    return match[1] if match and session == session_name(match[1], lake) else None


def _is_within(location: str, scopes: Iterable[str]) -> bool:
    """Whether an object is one of these objects, or below one of these directories."""
    return any(
        location == path or (path.endswith("/") and location.startswith(path)) for path in scopes
    )


def s3_properties(endpoint: str, region: str) -> dict[str, str]:
    """The properties with the address and the region of S3, for clients.

    Args:
        endpoint: of a stand-in on this machine; empty: AWS.
    """
    properties = {"s3.region": region, "client.region": region}
    if endpoint:
        properties |= {"s3.endpoint": endpoint, "s3.path-style-access": "true"}
    return properties


class CredentialVending:
    """Vends credentials for one table, by assuming a role of the settings."""

    scopes_last: ClassVar[bool] = False
    """Whether a scope holds for as long as its own table is the same, whatever others do."""

    @property
    def hides_columns(self) -> bool:
        """Whether credentials can be for a table without some of its columns."""
        return False

    def without_columns(self, scope: TableScope, hidden_ids: tuple[int, ...]) -> TableScope:
        """The scope of a reader for whom some columns are hidden.

        Raises:
            HiddenFromCaller: these credentials reach the table's own files.
        """
        raise HiddenFromCaller("these credentials would reach columns that are hidden from you")

    def __init__(self, config: Config, aws: Clients | None = None) -> None:
        """Nothing is asked yet.

        Args:
            config: of a lake.
            aws: None: the clients of the environment.
        """
        self._aws = aws or Clients()
        self._reader = config.vending_role
        self._writer = config.writer_role if config.writes else ""
        self._staging = config.staging_location if config.writes else None
        self._seconds = config.vending_seconds
        self._endpoint = config.object_lambda_endpoint
        self._lake, self._data_path = config.lake, config.data_path
        self._materialized = config.storage.is_materialized

    def scope(
        self,
        con: Connection,
        lake: Lake,
        schema: Schema,
        table: Table,
        virtual_location: str,
        *,
        may_write: bool = False,
    ) -> TableScope:
        """The scope of a table, from its rows in the catalog.

        Args:
            table: for a writer it may be one that does not exist yet (stage-create).
            virtual_location: where the table's virtual files are.
            may_write: whether the caller may write the table.
        """
        staging = None if self._staging is None else staging_root(self._staging, lake.data_path)
        root = virtual_root(virtual_location, self._lake)
        other_locations = other_tables(con, lake, table.table_id, root, staging)
        blank = TableScope(table.table_uuid, virtual_location, self._reader, "")
        try:
            reads = read_scopes(con, lake, schema, table, other_locations)
        except Refused as reason:
            return replace(blank, reason=str(reason))
        reader = self._fitted(blank, reads, set(), set(), other_locations)
        if not (may_write and self._writer and staging):
            return reader
        blank = replace(blank, role=self._writer, otherwise=reader)
        own, beside = table_location(lake, schema, table), virtual_location
        if not self._materialized:
            beside = upload_location(virtual_location, lake.data_path)
        try:
            writes, deletes = upload_scopes(own, table.table_uuid, staging, beside, other_locations)
            self._check_below_data_path([own])
        except Refused as reason:
            return replace(blank, reason=str(reason))
        return self._fitted(blank, reads, writes, deletes, other_locations)

    def _check_below_data_path(self, locations: Iterable[str]) -> None:
        if not all(is_below(location, self._data_path) for location in locations):
            raise Refused(
                "no credentials for this table: it has files outside of the lake's data path"
            )

    def file_scope(self, scope: TableScope, locations: Collection[str]) -> TableScope | None:
        """The part of a reader's scope that is exactly these files.

        None if they do not fit into a policy, or the scope does not hold them all. The virtual
        files of the table are always in it, because there is no permission for one of them.

        Args:
            scope: that of the table.
            locations: of data files and virtual files.
        """
        own = {path for path in locations if not path.startswith(f"{scope.virtual_location}/")}
        if scope.reason or not all(_is_within(path, scope.locations) for path in own):
            return None
        keys = {S3Scope(path, False) for path in own}
        policy = self._policy(keys, (), (), scope.virtual_location)
        if len(policy) > POLICY_LIMIT:
            return None
        return replace(scope, policy=policy, locations=tuple(sorted(own)))

    def plan_credentials(
        self, scope: TableScope, refresh: str, holder: str = ""
    ) -> list[answers.StorageCredential]:
        """The field `storage-credentials` of a plan.

        It is empty if AWS's packed form of the policy is too long: the client has the table's
        credentials.

        Args:
            refresh: the path of new ones, which are for the whole table.
            holder: who gets them (`Caller.identity`), for credentials that name their holder.

        Raises:
            ServiceUnavailable, Misconfigured: STS gives none.
        """
        try:
            config = self._client_properties(scope, holder)
        except Refused as reason:
            logger.info(str(reason), table_uuid=scope.table_uuid)
            return []
        # One entry, and not a location: Java asks for credentials by the scheme.
        return [{"prefix": "s3", "config": config | {REFRESH: refresh}}]

    def table_credentials(
        self, scope: TableScope, refresh: str, holder: str = "", *, is_committed: bool = False
    ) -> dict[str, Any]:
        """The fields `config` and `storage-credentials` of loadTable's and createTable's answers.

        Both are left out for a table that no policy fits: the caller may have other credentials.

        Args:
            refresh: the path of new ones, below the catalog's address.
            holder: as `plan_credentials`.
            is_committed: the request has changed the lake, so an error would be the wrong answer.
                Without credentials the client loads the table again.

        Raises:
            ServiceUnavailable, Misconfigured: STS gives none.
        """
        try:
            scope, config = self._credentials(scope, holder)
        except PolynyaError as reason:
            if not (is_committed or isinstance(reason, Refused)):
                raise
            logger.warning(str(reason), table_uuid=scope.table_uuid)
            return {}
        config |= {REFRESH: refresh}
        # DuckDB expects the location of the metadata first, and takes the prefix of an entry as its
        # scope only if there are several. Other clients read `config`.
        prefixes = dict.fromkeys([f"{scope.virtual_location}/", *scope.locations])
        entries: list[answers.StorageCredential] = [
            {"prefix": prefix, "config": config} for prefix in prefixes
        ]
        return {"config": config, "storage-credentials": entries}

    def refresh_credentials(
        self, scope: TableScope, holder: str = ""
    ) -> answers.LoadCredentialsResponse:
        """The answer to loadCredentials; `holder`: as `plan_credentials`.

        Raises:
            Refused: no session policy fits the table.
            ServiceUnavailable, Misconfigured: STS gives none.
        """
        _, config = self._credentials(scope, holder)
        # One entry: Java accepts no more.
        return {"storage-credentials": [{"prefix": "s3", "config": config}]}

    def _fitted(
        self,
        blank: TableScope,
        reads: set[S3Scope],
        writes: set[S3Scope],
        deletes: set[S3Scope],
        other_locations: OtherTables,
    ) -> TableScope:
        """The scope with a policy that fits, or with the reason why none does."""

        def policy(some: Iterable[S3Scope]) -> str:
            return self._policy(some, writes, deletes, blank.virtual_location)

        try:
            scopes = coarsen_until(
                reads - writes, other_locations, lambda some: len(policy(some)) <= POLICY_LIMIT
            )
            self._check_below_data_path(scope.location for scope in scopes)
        except Refused as reason:
            return replace(blank, reason=str(reason))
        locations = tuple(scope.location for scope in (*scopes, *sorted(writes)))
        return replace(blank, policy=policy(scopes), locations=locations)

    def _policy(
        self,
        reads: Iterable[S3Scope],
        writes: Iterable[S3Scope],
        deletes: Iterable[S3Scope],
        virtual_location: str,
    ) -> str:
        partition = self._reader.split(":")[1] if self._reader else "aws"
        virtual = S3Scope(f"{virtual_location}/", True)
        readable = [*([virtual] if self._materialized else []), *sorted(reads)]
        return session_policy(
            readable,
            sorted(writes),
            sorted(deletes),
            partition,
            None if self._materialized else virtual,
        )

    def _credentials(self, scope: TableScope, holder: str) -> tuple[TableScope, dict[str, str]]:
        """The client properties of new credentials, and their scope: a reader's if a writer's is
        refused, because most of what writers do is to read."""
        try:
            return scope, self._client_properties(scope, holder)
        except Refused as reason:
            if scope.otherwise is None:
                raise
            logger.warning(f"a writer can only read: {reason}", table_uuid=scope.table_uuid)
            return scope.otherwise, self._client_properties(scope.otherwise, holder)

    def _client_properties(self, scope: TableScope, holder: str) -> dict[str, str]:
        if scope.reason:
            raise Refused(scope.reason)
        answer = call("credentials for this table", lambda: self._assume_role(scope))
        count("CredentialsVended")
        credentials = answer["Credentials"]
        expires_at_ms = int(credentials["Expiration"].timestamp() * 1000)
        config = {
            "s3.access-key-id": credentials["AccessKeyId"],
            "s3.secret-access-key": credentials["SecretAccessKey"],
            "s3.session-token": credentials["SessionToken"],
            # Snowflake refuses credentials without it, and DuckDB loads the table again when they
            # expire.
            "s3.session-token-expires-at-ms": str(expires_at_ms),
        }
        return config | s3_properties(self._endpoint, self._aws.region())

    def _assume_role(self, scope: TableScope) -> Any:
        sts = self._aws("sts")
        try:
            return sts.assume_role(
                RoleArn=scope.role,
                RoleSessionName=session_name(scope.table_uuid, self._lake),
                DurationSeconds=self._seconds,
                Policy=scope.policy,
            )
        except sts.exceptions.PackedPolicyTooLargeException:
            raise Refused(
                "no credentials for this table: its files are in too many places for AWS's packed "
                "form of a session policy"
            ) from None


def vending_of_settings(config: Config, aws: Clients) -> CredentialVending | None:
    """The vending of AWS credentials; None: the settings name no role."""
    return CredentialVending(config, aws) if config.vending_role else None
