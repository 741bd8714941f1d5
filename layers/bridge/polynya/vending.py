"""Credentials that read one table: AssumeRole with a session policy of this table's prefixes.

A session has at most the rights of the role, and of these what its policy repeats. S3 Object Lambda
has no permission for a single key, so the name of the session holds the table, and the function
behind the access point looks at it (`table_of_session`); only the catalog can assume the role.
"""

import json
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from aws_lambda_powertools import Logger
from pg8000.native import Connection

from .config import Config
from .ducklake import queries
from .ducklake.paths import table_location
from .ducklake.rows import Lake, Schema, Table
from .errors import Refused
from .metrics import count
from .real_objects import answer_of, client

logger = Logger(child=True)

POLICY_LIMIT = 2048
"""Characters of a session policy: AssumeRole, "Policy"."""

DIRECTORY = re.compile("s3[an]?://[^/]+/.*[^/].*/$", re.DOTALL)
"""A prefix that ends in a slash, and is not a whole bucket: that is nobody's table."""

SESSION = re.compile("polynya-([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")


@dataclass(frozen=True, slots=True)
class Grant:
    """What a reader of one table has to be able to read."""

    table_uuid: str
    virtual_location: str
    """Of the virtual files, without a slash at its end."""
    directory: str
    """The table's own."""
    added: frozenset[str]
    """The directories of files that were added to it, wherever they are."""


def grant(con: Connection, lake: Lake, schema: Schema, table: Table, virtual: str) -> Grant:
    """What DuckLake's rows say of it; `virtual` is the location of the table's virtual files."""
    added = queries.added_directories(con, table.table_id)
    directory = table_location(lake, schema, table)
    return Grant(table.table_uuid, virtual, directory, frozenset(added))


def table_of_session(session: str) -> str | None:
    match = SESSION.fullmatch(session)
    return match[1] if match else None


class Vending:
    def __init__(self, config: Config) -> None:
        self._role = config.vending_role
        self._seconds = config.vending_seconds
        self._endpoint = config.object_lambda_endpoint
        self._materialized = config.delivery == "materialize"

    def for_table(self, grant: Grant, refresh: str) -> dict[str, Any]:
        """What loadTable answers besides; nothing for a table that no policy fits: whoever asks for
        credentials may have their own.

        Args:
            refresh: the path that gives new ones, below the catalog's address.

        Raises:
            ServiceUnavailable, Misconfigured: STS gives none.
        """
        try:
            policy, prefixes = self._policy(grant)
        except Refused as reason:
            logger.warning(str(reason), table_uuid=grant.table_uuid)
            return {}
        config = self._assumed(grant.table_uuid, policy)
        config |= {"client.refresh-credentials-endpoint": refresh}
        # DuckDB wants the place of the metadata first, and takes the prefix of an entry for its
        # scope only where there are several. Other clients read `config`.
        places = dict.fromkeys([f"{grant.virtual_location}/", *prefixes])
        entries = [{"prefix": place, "config": config} for place in places]
        return {"config": config, "storage-credentials": entries}

    def again(self, grant: Grant) -> dict[str, Any]:
        """The answer to loadCredentials: one entry, for Java takes no more, and all are equal.

        Raises:
            Refused: the table's files are in too many places for one policy.
            ServiceUnavailable, Misconfigured: STS gives none.
        """
        policy, _ = self._policy(grant)
        config = self._assumed(grant.table_uuid, policy)
        return {"storage-credentials": [{"prefix": "s3", "config": config}]}

    def _policy(self, grant: Grant) -> tuple[str, list[str]]:
        partition = self._role.split(":")[1]
        virtual = [f"{grant.virtual_location}/"] if self._materialized else []
        if not all(DIRECTORY.match(place) for place in (grant.directory, *grant.added)):
            raise Refused("no credentials for this table: it has files outside of any directory")
        added = without_covered(grant.added)
        while True:
            prefixes = sorted(without_covered({grant.directory, *added}))
            text = session_policy([*virtual, *prefixes], partition, not self._materialized)
            if len(text) <= POLICY_LIMIT:
                return text, prefixes
            added = wider(added)

    def _assumed(self, table_uuid: str, policy: str) -> dict[str, str]:
        answer = answer_of(
            "credentials for this table",
            lambda: client("sts").assume_role(
                RoleArn=self._role,
                RoleSessionName=f"polynya-{table_uuid}",
                DurationSeconds=self._seconds,
                Policy=policy,
            ),
        )
        count("CredentialsVended")
        given = answer["Credentials"]
        config = {
            "s3.access-key-id": given["AccessKeyId"],
            "s3.secret-access-key": given["SecretAccessKey"],
            "s3.session-token": given["SessionToken"],
            "s3.session-token-expires-at-ms": str(int(given["Expiration"].timestamp() * 1000)),
            "s3.region": client("sts").meta.region_name,
            "client.region": client("sts").meta.region_name,
        }
        if self._endpoint:  # a stand-in on this machine
            config |= {"s3.endpoint": self._endpoint, "s3.path-style-access": "true"}
        return config


def session_policy(prefixes: Iterable[str], partition: str, through_object_lambda: bool) -> str:
    """The policy, as short as it can be written.

    Object Lambda's part needs no resource: the role's own policy names the access point.
    """
    arns = [f"arn:{partition}:s3:::{_literal(prefix)}*" for prefix in prefixes]
    statements: list[dict[str, Any]] = []
    if arns:
        statements.append({"Effect": "Allow", "Action": "s3:GetObject", "Resource": arns})
    if through_object_lambda:
        actions = ["s3-object-lambda:GetObject", "lambda:InvokeFunction"]
        statements.append({"Effect": "Allow", "Action": actions, "Resource": "*"})
    policy = {"Version": "2012-10-17", "Statement": statements}
    return json.dumps(policy, separators=(",", ":"))


def _literal(location: str) -> str:
    """Bucket and key of a location, for a Resource, where `*`, `?` and `${` mean something."""
    name = location.partition("://")[2]
    return re.sub(r"[*?]|\$(?=\{)", lambda match: f"${{{match[0]}}}", name)


def without_covered(directories: Iterable[str]) -> set[str]:
    """Without those that lie within another one."""
    kept: list[str] = []
    for directory in sorted(directories):
        if not kept or not directory.startswith(kept[-1]):
            kept.append(directory)
    return set(kept)


def wider(prefixes: Iterable[str]) -> set[str]:
    """Prefixes with as little more as possible: where several lie in one directory, that one.

    Raises:
        Refused: nothing smaller than a bucket holds two of them.
    """
    prefixes = list(prefixes)
    below = Counter(above for prefix in prefixes for above in _above(prefix))
    shared = [above for above, count in below.items() if count > 1]
    if not shared:
        raise Refused("no credentials for this table: its files are in too many places")
    depth = max(above.count("/") for above in shared)
    deepest = {above for above in shared if above.count("/") == depth}
    merged = ({*_above(prefix)} & deepest or {prefix} for prefix in prefixes)
    return without_covered(one for (one,) in merged)


def _above(prefix: str) -> list[str]:
    """The directories that a directory is in."""
    ends = [match.end() for match in re.finditer("/", prefix)]
    return [prefix[:end] for end in ends[:-1] if DIRECTORY.match(prefix[:end])]
