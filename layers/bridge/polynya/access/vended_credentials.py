"""Credentials that read one table: AssumeRole with a session policy of this table's files.

A session has at most the rights of the role, and of these what its policy repeats. S3 Object Lambda
has no permission for a single key, so the name of the session holds the table, and the function
behind the access point looks at it (`table_of_session`); only the catalog can assume the role.
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
from ..ducklake.rows import Lake, Schema, Table
from ..errors import Refused
from ..metrics import count
from ..storage import aws
from .table_scope import KEY, OtherTables, S3Scope, directory_of, fitting

logger = Logger(child=True)

POLICY_LIMIT = 2048
"""Characters of a session policy: AssumeRole, "Policy"."""

MOST_KEYS = 64
"""More do not fit into a policy, whatever they are called."""

SESSION = re.compile("polynya-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


@dataclass(frozen=True, slots=True)
class TableScope:
    """What a reader of one table has to be able to read."""

    table_uuid: str
    virtual_location: str
    """Of the virtual files, without a slash at its end."""
    policy: str
    """The session policy; empty: none is right."""
    places: tuple[str, ...] = ()
    """Where the table's own files are: keys, and directories."""
    reason: str = ""
    """Why no policy is right."""


def table_of_session(session: str) -> str | None:
    match = SESSION.fullmatch(session)
    return match[1] if match else None


class CredentialVending:
    def __init__(self, config: Config) -> None:
        self._role = config.vending_role
        self._seconds = config.vending_seconds
        self._endpoint = config.object_lambda_endpoint
        self._materialized = config.delivery == "materialize"

    def scope(
        self, con: Connection, lake: Lake, schema: Schema, table: Table, virtual: str
    ) -> TableScope:
        """What DuckLake's rows say of a table; `virtual` is the location of its virtual files."""
        try:
            places = places_of(con, lake, schema, table, virtual, lambda p: self._fits(p, virtual))
        except Refused as reason:
            return TableScope(table.table_uuid, virtual, "", reason=str(reason))
        names = tuple(place.location for place in places)
        return TableScope(table.table_uuid, virtual, self._policy(places, virtual), names)

    def for_table(self, scope: TableScope, refresh: str) -> dict[str, Any]:
        """What loadTable answers besides; nothing for a table that no policy fits: whoever asks for
        credentials may have their own.

        Args:
            refresh: the path that gives new ones, below the catalog's address.

        Raises:
            ServiceUnavailable, Misconfigured: STS gives none.
        """
        try:
            config = self._assumed(scope)
        except Refused as reason:
            logger.warning(str(reason), table_uuid=scope.table_uuid)
            return {}
        config |= {"client.refresh-credentials-endpoint": refresh}
        # DuckDB wants the place of the metadata first, and takes the prefix of an entry for its
        # scope only where there are several. Other clients read `config`.
        places = dict.fromkeys([f"{scope.virtual_location}/", *scope.places])
        entries = [{"prefix": place, "config": config} for place in places]
        return {"config": config, "storage-credentials": entries}

    def refresh_credentials(self, scope: TableScope) -> dict[str, Any]:
        """The answer to loadCredentials: one entry, for Java takes no more, and all are equal.

        Raises:
            Refused: no session policy is right for the table.
            ServiceUnavailable, Misconfigured: STS gives none.
        """
        config = self._assumed(scope)
        return {"storage-credentials": [{"prefix": "s3", "config": config}]}

    def _fits(self, places: Iterable[S3Scope], virtual: str) -> bool:
        return len(self._policy(places, virtual)) <= POLICY_LIMIT

    def _policy(self, places: Iterable[S3Scope], virtual: str) -> str:
        partition = self._role.split(":")[1] if self._role else "aws"
        real = [S3Scope(f"{virtual}/", True)] if self._materialized else []
        return session_policy([*real, *sorted(places)], partition, not self._materialized)

    def _assumed(self, scope: TableScope) -> dict[str, str]:
        if scope.reason:
            raise Refused(scope.reason)
        answer = aws.call("credentials for this table", lambda: self._assume_role(scope))
        count("CredentialsVended")
        given = answer["Credentials"]
        config = {
            "s3.access-key-id": given["AccessKeyId"],
            "s3.secret-access-key": given["SecretAccessKey"],
            "s3.session-token": given["SessionToken"],
            "s3.session-token-expires-at-ms": str(int(given["Expiration"].timestamp() * 1000)),
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


def places_of(
    con: Connection,
    lake: Lake,
    schema: Schema,
    table: Table,
    virtual: str,
    fits: Callable[[set[S3Scope]], bool],
) -> list[S3Scope]:
    """Where the data files of a table are, and nothing of other tables is.

    Raises:
        Refused: that cannot be said in so many words as fit.
    """
    own = table_location(lake, schema, table)
    added = table_locations.own_directories(table.table_id, is_relative=False).run(con)
    around = other_tables(con, lake, table, virtual)
    if around.absent_from(own):
        places = {S3Scope(own, True)}
    else:
        within = table_locations.own_directories(table.table_id, is_relative=True).run(con)
        places = _places(con, table.table_id, within, own, around, is_relative=True)
    places |= _places(con, table.table_id, added, "", around, is_relative=False)
    if not all(KEY.fullmatch(place.location) for place in places):
        raise Refused("no credentials for this table: it has files outside of S3")
    if any(around.is_virtual(place.location) for place in places):
        raise Refused("no credentials for this table: it has files among the virtual ones")
    return fitting(places, around, fits)


def other_tables(con: Connection, lake: Lake, table: Table, virtual: str) -> OtherTables:
    others = table_locations.others(lake, table.table_id).run(con)
    files = table_locations.added_directories(others.table_ids).run(con)
    return OtherTables(others.directories, files, directory_of(virtual))


def _places(
    con: Connection,
    table_id: int,
    directories: Mapping[str, int],
    base: str,
    around: OtherTables,
    *,
    is_relative: bool,
) -> set[S3Scope]:
    """The files in these directories, each by its key as far as so many can be named."""
    by_key = {one for one in directories if not around.absent_from(base + one)}
    number = sum(directories[one] for one in by_key)
    if number > MOST_KEYS:
        raise Refused(
            f"no credentials for this table: {number:,} of its files are in directories that hold "
            "files of other tables too, and a session policy cannot name them all"
        )
    for one in sorted(directories.keys() - by_key, key=lambda one: (directories[one], one)):
        number += directories[one]
        if number > MOST_KEYS:
            break
        by_key.add(one)
    keys = table_locations.own_files(table_id, by_key, is_relative=is_relative).run(con)
    return {
        *(S3Scope(base + key, False) for key in keys),
        *(S3Scope(base + one, True) for one in directories if one not in by_key),
    }


def session_policy(places: Iterable[S3Scope], partition: str, through_object_lambda: bool) -> str:
    """The policy, as short as it can be written.

    Object Lambda's part needs no resource: the role's own policy names the access point.
    """
    arns = [f"arn:{partition}:s3:::{_resource(place)}" for place in places]
    statements: list[dict[str, Any]] = []
    if arns:
        statements.append({"Effect": "Allow", "Action": "s3:GetObject", "Resource": arns})
    if through_object_lambda:
        actions = ["s3-object-lambda:GetObject", "lambda:InvokeFunction"]
        statements.append({"Effect": "Allow", "Action": actions, "Resource": "*"})
    policy = {"Version": "2012-10-17", "Statement": statements}
    return json.dumps(policy, separators=(",", ":"))


def _resource(place: S3Scope) -> str:
    """Bucket and key, in which `*`, `?` and `$` mean something unless they are written `${*}`."""
    name = place.location.partition("://")[2]
    name = re.sub("[*?$]", lambda match: f"${{{match[0]}}}", name)
    return f"{name}*" if place.is_directory else name
