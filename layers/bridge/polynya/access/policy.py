"""The authorization policy: rules that permit principals to read and write tables.

docs/security.md has the form of the document, and what each key means. Beyond that: `*` in a name
matches any text, and `["*"]` are also the tables of every namespace below, unlike other patterns. A
rule without `lakes` is about the lake of the settings, so that a policy never permits anything in a
lake that is added later. A rule without `issuers` is about tokens of the first issuer, because two
may give the same name to different people.

The principals of a caller are what the host has verified, in the spelling of the document.

A rule may name columns of a table that its callers do not see. Unlike all else this forbids: it
holds whatever other rules permit.
"""

import re
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..runtime.errors import Misconfigured
from ..runtime.namespaces import Namespace
from ..runtime.settings import Config
from ..storage.aws import Clients
from ..storage.operator_documents import OperatorDocument, json_of
from .caller import Caller, session_name
from .vended_credentials import table_of_session

PRINCIPAL = re.compile(r"\*|arn:.+|[^*=]+=.+", re.DOTALL)
"""A claim has no wildcard, because callers choose the values of some claims."""

Patterns = tuple[tuple[Namespace, str], ...]
"""Patterns of namespace, one for each level, and table."""

ALL = "*"
"""The pattern of all tables of a namespace, and of all namespaces below it."""

HIDDEN_COLUMNS = "hidden_columns"
"""The key of the columns of a table that the callers of a rule do not see."""


@dataclass(frozen=True, slots=True)
class HiddenColumns:
    """Columns of one table that callers do not see."""

    namespace: Namespace
    """A pattern for each level."""
    table: str
    """Its name: no pattern."""
    columns: frozenset[str]
    """Their names."""

    def are_of(self, namespace: Namespace, name: str) -> bool:
        """Whether a table has this name. DuckLake compares names without letter case."""
        reaches_below = self.namespace[-1] == ALL and len(self.namespace) < len(namespace)
        return (
            (len(self.namespace) == len(namespace) or reaches_below)
            and all(map(_matches, map(str.casefold, self.namespace), map(str.casefold, namespace)))
            and self.table.casefold() == name.casefold()
        )


TableName = tuple[Namespace, str]
"""Namespace and table."""


@dataclass(frozen=True, slots=True)
class Rights:
    """The tables that one caller may read, and those that it may write."""

    tables: Patterns
    writable: Patterns = ()
    """Those of `tables` that these match too may be written."""
    file_directories: tuple[str, ...] = ()
    """The directories of S3 from which files may be added to them; each ends with a slash."""
    table_uuid: str | None = None
    """The one table that the caller's credentials were vended for; None: no such limit."""
    hidden: tuple[HiddenColumns, ...] = ()
    """Columns that the caller does not see."""
    hidden_ids: tuple[int, ...] = ()
    """The columns of the table that the vended credentials do not reach, by column_id."""
    holder: str = field(default="", compare=False)
    """Who has them (`Caller.identity`), for logs."""

    @property
    def all_tables(self) -> bool:
        """Whether the caller may read every table of every namespace, and all columns of it."""
        return ((ALL,), ALL) in self.tables and not self.hidden

    def hidden_columns(self, names: Collection[TableName]) -> frozenset[str]:
        """The names of the columns that the caller does not see in a table.

        Args:
            names: all that the table has had: under another name it has the same columns.
        """
        of_table = (h.columns for h in self.hidden if any(h.are_of(*name) for name in names))
        return frozenset().union(*of_table)

    def may_read_namespace(self, namespace: Namespace) -> bool:
        """Whether the caller may read every table of a namespace, even if it has none."""
        return _have_namespace(self.tables, namespace)

    def may_read_table(self, namespace: Namespace, name: str) -> bool:
        """Whether the caller may read a table, or a view."""
        return _have_table(self.tables, namespace, name)

    def may_write_namespace(self, namespace: Namespace) -> bool:
        """Whether the caller may create, change and drop a namespace, with all tables in it."""
        return (
            self.table_uuid is None
            and self.may_read_namespace(namespace)
            and _have_namespace(self.writable, namespace)
        )

    def may_write_table(self, namespace: Namespace, name: str) -> bool:
        """Whether the caller may create, change and drop a table, or a view.

        Vended credentials write files only, never the catalog. Who does not see a column writes no
        rows of the table; `AuthorizedLake.check_may_write` knows its earlier names too.
        """
        return (
            self.table_uuid is None
            and not self.hidden_columns([(namespace, name)])
            and self.may_read_table(namespace, name)
            and _have_table(self.writable, namespace, name)
        )


EVERYTHING = Rights((((ALL,), ALL),))
"""The rights without a policy: whoever may write has to be named."""


@dataclass(frozen=True, slots=True)
class Rule:
    """Principals, and the tables that they may read and write."""

    principals: tuple[str, ...]
    tables: Patterns
    writable: Patterns = ()
    file_directories: tuple[str, ...] = ()
    lakes: tuple[str, ...] | None = None
    """Patterns of names; None: the lake of the settings."""
    issuers: tuple[str, ...] | None = None
    """The issuers of tokens; None: the first one."""
    hidden: tuple[HiddenColumns, ...] = ()

    def holds_in(self, lake: str, *, is_of_settings: bool) -> bool:
        """Whether the rule is about a lake of this name."""
        if self.lakes is None:
            return is_of_settings
        return any(_matches(pattern, lake) for pattern in self.lakes)

    def names(self, names: list[str], *, is_of_other_issuer: bool) -> bool:
        """Whether the rule is about a caller with these names. Args: as `Policy.rights`."""
        if self.issuers is not None:
            if not any(f"iss={issuer}" in names for issuer in self.issuers):
                return False
        elif is_of_other_issuer:
            return "*" in self.principals
        return any(_is_principal(principal, names) for principal in self.principals)


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of the document."""

    rules: tuple[Rule, ...]
    list_claims: frozenset[str] = frozenset()
    """The claims that are lists (see `Caller.principals`)."""

    @classmethod
    def parse(cls, document: str) -> "Policy":
        """Read the document.

        Raises:
            Misconfigured: the form is not that of docs/security.md. No part of it is used then.
        """
        parsed = json_of(document, _wrong)
        rules, claims = _values(parsed, "the document", ["rules"], {"list_claims": []})
        for claim in _list(claims, "list_claims"):
            if not isinstance(claim, str):
                raise _wrong("the name of a claim must be a text")
        try:
            return cls(tuple(_rule(rule) for rule in _list(rules, "rules")), frozenset(claims))
        except RecursionError:
            raise _wrong("its namespaces are nested too deeply") from None

    def rights(
        self,
        names: Iterable[str],
        lake: str = "",
        *,
        is_of_settings: bool = True,
        is_of_other_issuer: bool = False,
    ) -> Rights:
        """The rights of a caller with these names (`Caller.principals`) in a lake."""
        names = list(names)
        rules = [
            rule
            for rule in self.rules
            if rule.holds_in(lake, is_of_settings=is_of_settings)
            and rule.names(names, is_of_other_issuer=is_of_other_issuer)
        ]
        directories = dict.fromkeys(path for rule in rules for path in rule.file_directories)
        hidden = tuple(dict.fromkeys(of_rule for rule in rules for of_rule in rule.hidden))
        return Rights(
            _union(rule.tables for rule in rules),
            _union(rule.writable for rule in rules),
            # A file with a hidden column could be added to another table.
            () if hidden else tuple(directories),
            hidden=hidden,
        )

    @property
    def hides_columns(self) -> bool:
        """Whether a rule names columns that callers do not see."""
        return any(rule.hidden for rule in self.rules)


def _union(patterns: Iterable[Patterns]) -> Patterns:
    return tuple(dict.fromkeys(pair for pairs in patterns for pair in pairs))


def _have_namespace(patterns: Patterns, namespace: Namespace) -> bool:
    return any(table == ALL and _is_below(levels, namespace) for levels, table in patterns)


def _have_table(patterns: Patterns, namespace: Namespace, name: str) -> bool:
    return _have_namespace(patterns, namespace) or any(
        len(levels) == len(namespace) and _is_below(levels, namespace) and _matches(table, name)
        for levels, table in patterns
    )


def _is_below(levels: Namespace, namespace: Namespace) -> bool:
    """Whether a namespace matches patterns of levels, or is below one that does."""
    return len(levels) <= len(namespace) and all(map(_matches, levels, namespace))


def _is_principal(principal: str, names: list[str]) -> bool:
    return principal == "*" or any(_matches(principal, name) for name in names)


def _matches(pattern: str, name: str) -> bool:
    if "*" not in pattern:
        return pattern == name
    # Not by fnmatch, in whose patterns ? and [ are special too.
    parts = map(re.escape, pattern.split("*"))
    return re.fullmatch(".*".join(parts), name, re.DOTALL) is not None


def _rule(rule: Any) -> Rule:
    optional: dict[str, object] = {"write": {}, "add_files": [], "lakes": None, "issuers": None}
    principals, tables, write, directories, lakes, issuers = _values(
        rule, "a rule", ["principals", "tables"], optional
    )
    for principal in _list(principals, "principals"):
        if not isinstance(principal, str) or not PRINCIPAL.fullmatch(principal):
            raise _wrong(f"{principal!r} is neither an ARN nor claim=value nor *")
    for directory in _list(directories, "add_files"):
        if not isinstance(directory, str) or not is_directory(directory):
            raise _wrong(
                f"{directory!r} under add_files is not a directory in S3, such as s3://bucket/exports/"
            )
    for what, texts in (("lake", lakes), ("issuer", issuers)):
        for text in [] if texts is None else _list(texts, f"{what}s"):
            if not isinstance(text, str):
                raise _wrong(f"the name of a {what} must be a text")
    hidden: list[HiddenColumns] = []
    return Rule(
        tuple(principals),
        _patterns(tables, "tables", hidden),
        _patterns(write, "write", None),
        tuple(directories),
        None if lakes is None else tuple(lakes),
        None if issuers is None else tuple(issuers),
        tuple(hidden),
    )


def is_directory(location: str) -> bool:
    """Whether a location is a directory of S3 as the policy names it: one spelling for each."""
    parts = location.removeprefix("s3://").removesuffix("/").split("/")
    is_plain = not {"", ".", ".."} & set(parts)
    return location.startswith("s3://") and location.endswith("/") and is_plain


def _patterns(
    thing: Any, what: str, hidden: list[HiddenColumns] | None, above: Namespace = ()
) -> Patterns:
    """The patterns of tables; `hidden` gets the hidden columns, and None permits none."""
    if not isinstance(thing, dict):
        raise _wrong(f"{what} must be an object: namespace to a list of tables")
    pairs: list[tuple[Namespace, str]] = []
    for key, names in thing.items():
        namespace = (*above, key)
        if above and hidden is not None and isinstance(names, dict):
            hidden.append(_hidden_columns(above, key, names))
            pairs.append((above, key))
            continue
        for name in _list(names, f"the tables of a namespace under {what}"):
            if isinstance(name, dict):
                pairs += _patterns(name, what, hidden, namespace)
            elif isinstance(name, str):
                pairs.append((namespace, name))
            else:
                raise _wrong(
                    f"the name of a table under {what} must be a text, and the namespaces in one "
                    "an object"
                )
    return tuple(pairs)


def _hidden_columns(namespace: Namespace, table: str, thing: Any) -> HiddenColumns:
    [columns] = _values(thing, f"what is said of the table {table}", [HIDDEN_COLUMNS], {})
    if not _list(columns, HIDDEN_COLUMNS) or not all(c and isinstance(c, str) for c in columns):
        raise _wrong(f"{HIDDEN_COLUMNS} of the table {table} must be the names of columns")
    if "*" in table or any("*" in column for column in columns):
        raise _wrong(f"{HIDDEN_COLUMNS} must name one table and its columns, without an asterisk")
    return HiddenColumns(namespace, table, frozenset(columns))


def _values(
    thing: Any, what: str, keys: Sequence[str], optional: Mapping[str, object]
) -> list[Any]:
    """The values of these keys, then those of the optional ones, or their defaults."""
    required, allowed = set(keys), {*keys, *optional}
    if not isinstance(thing, dict) or not required <= thing.keys() <= allowed:
        raise _wrong(
            f"{what} must be an object with the keys {', '.join(keys)}, with or without "
            f"{', '.join(optional)}, and with no other"
        )
    return [*(thing[key] for key in keys), *(thing.get(key, optional[key]) for key in optional)]


def _list(thing: Any, what: str) -> list[Any]:
    if not isinstance(thing, list):
        raise _wrong(f"{what} must be a list")
    return thing


def _wrong(reason: str) -> Misconfigured:
    return Misconfigured(f"nothing is served, because the authorization policy is wrong: {reason}")


class AccessResolver:
    """Reads the policy, again every minute, and looks up callers in it."""

    def __init__(
        self,
        config: Config,
        aws: Clients | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """The policy is read when it is needed. Args: as `OperatorDocument`."""
        what, source = "the authorization policy", config.authorization
        self._policy = OperatorDocument(what, source, Policy.parse, aws, clock) if source else None
        self._vended_roles = [role for role in (config.vending_role, config.writer_role) if role]
        self._warehouse = config.warehouse

    def catalog_rights(self, caller: Caller, lake: str = "") -> Rights:
        """The rights of a caller of the REST catalog.

        Args:
            lake: of the document LAKES; empty: that of the settings.

        Raises:
            Misconfigured: the policy is missing or wrong.
            ServiceUnavailable: the policy cannot be read now.
        """
        if self._policy is None:
            return replace(EVERYTHING, holder=caller.identity)
        policy = self._policy.current()
        rights = policy.rights(
            caller.principals(policy.list_claims),
            lake or self._warehouse,
            is_of_settings=not lake,
            is_of_other_issuer=caller.is_of_other_issuer,
        )
        return replace(rights, holder=caller.identity)

    def file_rights(self, caller: Caller, lake: str = "") -> Rights:
        """The rights of a caller to virtual files. Args, Raises: as `catalog_rights`."""
        if (vended_for := caller.vended_for) is not None:
            is_of_lake = vended_for.lake == lake
            rights = _vended_rights(vended_for.table_uuid if is_of_lake else None)
            return replace(rights, hidden_ids=vended_for.hidden_ids)
        for role in self._vended_roles:
            session = session_name(caller.arn, role)
            if session is not None:
                return _vended_rights(table_of_session(session, lake))
        return self.catalog_rights(caller, lake)


def _vended_rights(table_uuid: str | None) -> Rights:
    """The rights of vended credentials, also of a writer's: to read one table, which the catalog
    checked when it vended; None: it is in another lake."""
    return replace(EVERYTHING, table_uuid=table_uuid) if table_uuid else Rights(())
