"""Keys for the S3 endpoint of the server: vended for one table, and valid for a while.

The session token says what they are for, and the server signs it; the other two parts are derived
from it. So the server stores no keys, and several servers with the same secret accept each other's.
"""

import base64
import hmac
import json
import time
from dataclasses import dataclass, field, replace
from hashlib import sha256

from pg8000.native import Connection
from polynya.access.caller import VendedTable
from polynya.access.vended_credentials import CredentialVending, TableScope, s3_properties
from polynya.ducklake.paths import table_location
from polynya.ducklake.queries import named_objects
from polynya.ducklake.rows.objects import Lake, Schema, Table
from polynya.mapping.properties import staging_root
from polynya.runtime.metrics import count
from polynya.runtime.settings import Config
from polynya.storage.aws import Clients

from .signatures import is_same

MOST_LOCATIONS = 50
"""How many directories besides a table's own an answer names."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What keys are for."""

    caller: str
    """Who got them (`Caller.identity`)."""
    table: VendedTable
    directory: str
    """The location of the table, which may not exist yet; empty: the caller only reads."""
    expires_at: int
    """Seconds since 1970."""

    @property
    def may_write(self) -> bool:
        """Whether the caller may write the table."""
        return bool(self.directory)


@dataclass(frozen=True, slots=True)
class Keys:
    """The three parts of credentials for S3."""

    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class KeyScope(TableScope):
    """What keys for a table are for."""

    directory: str = ""
    """As in `Grant`."""
    hidden_ids: tuple[int, ...] = ()
    """As in `VendedTable`."""


class UnknownKeys(Exception):
    """The server has not made these keys."""


class TableKeys:
    """Makes keys, and tells what its own keys are for."""

    def __init__(self, secret: bytes) -> None:
        """`secret`: of at least 32 bytes, the same in all processes and servers of a deployment."""
        self._secret = secret

    def keys(self, grant: Grant) -> Keys:
        """The keys for a grant: the same each time."""
        lake, table_uuid, hidden_ids = grant.table
        parts: list[object] = [grant.caller, lake, table_uuid, grant.directory, grant.expires_at]
        # A server of an earlier version does not know hidden columns, and refuses such keys.
        parts += [hidden_ids] if hidden_ids else []
        return self._derive_keys(json.dumps(parts, separators=(",", ":")))

    def grant(self, access_key_id: str, session_token: str) -> tuple[Grant, str]:
        """The grant of keys, and their secret access key; they may have expired.

        Raises:
            UnknownKeys: this server has not made them.
        """
        try:
            text = base64.urlsafe_b64decode(session_token.partition(".")[0]).decode()
        except ValueError:
            raise UnknownKeys from None
        keys = self._derive_keys(text)
        is_own = is_same(keys.session_token, session_token)
        if not (is_own and is_same(keys.access_key_id, access_key_id)):
            raise UnknownKeys
        caller, lake, table_uuid, directory, expires_at, *hidden = json.loads(text)
        hidden_ids = tuple(id_ for ids in hidden for id_ in ids)
        grant = Grant(caller, VendedTable(lake, table_uuid, hidden_ids), directory, expires_at)
        return grant, keys.secret_access_key

    def _derive_keys(self, text: str) -> Keys:
        body = base64.urlsafe_b64encode(text.encode()).decode()
        id_, secret, seal = (
            hmac.digest(self._secret, f"{part}:{text}".encode(), sha256)
            for part in ("id", "secret", "seal")
        )
        return Keys(
            "POLYNYA" + base64.b32encode(id_).decode()[:13],
            base64.urlsafe_b64encode(secret).decode(),
            f"{body}.{base64.urlsafe_b64encode(seal).decode()}",
        )


class KeyVending(CredentialVending):
    """Vends keys for the server's own S3 endpoint, which decides what they permit."""

    scopes_last = True

    @property
    def hides_columns(self) -> bool:
        """True, unless clients read virtual files in a bucket."""
        return not self._materialized

    def without_columns(self, scope: TableScope, hidden_ids: tuple[int, ...]) -> TableScope:
        """The scope without the table's own files."""
        assert isinstance(scope, KeyScope)
        return replace(scope, locations=(), directory="", hidden_ids=hidden_ids)

    def __init__(self, config: Config, aws: Clients, keys: TableKeys) -> None:
        """Args: as `CredentialVending`."""
        super().__init__(config, aws)
        self._keys = keys

    def scope(
        self,
        con: Connection,
        lake: Lake,
        schema: Schema,
        table: Table,
        virtual_location: str,
        *,
        may_write: bool = False,
    ) -> KeyScope:
        """What keys for a table are for. Args: as `CredentialVending.scope`."""
        own, uuid = table_location(lake, schema, table), table.table_uuid
        elsewhere = named_objects.own_directories(table.table_id, is_relative=False).run(con)
        staged = f"{staging_root(self._staging or '', lake.data_path)}{uuid}/"
        # DuckDB uses keys below the prefixes in the answer, and ignores a prefix that is alone.
        # Readers read what is staged for branches.
        locations = own, staged, *sorted(elsewhere)[:MOST_LOCATIONS]
        directory = own if may_write else ""
        return KeyScope(uuid, virtual_location, "", "", locations, directory=directory)

    def file_scope(self, scope: TableScope, locations: object) -> None:
        """None: the keys of the table are for all its files."""

    def _client_properties(self, scope: TableScope, holder: str) -> dict[str, str]:
        assert isinstance(scope, KeyScope)
        count("CredentialsVended")
        expires_at = int(time.time()) + self._seconds
        table = VendedTable(self._lake, scope.table_uuid, scope.hidden_ids)
        keys = self._keys.keys(Grant(holder, table, scope.directory, expires_at))
        return {
            "s3.access-key-id": keys.access_key_id,
            "s3.secret-access-key": keys.secret_access_key,
            "s3.session-token": keys.session_token,
            "s3.session-token-expires-at-ms": str(expires_at * 1000),
        } | s3_properties(self._endpoint, self._aws.region())
