"""Who may read which tables: a document of rules, which name callers by their principals.

    {"list_claims": ["cognito:groups"],
     "rules": [
      {"principals": ["arn:aws:iam::111122223333:role/Analyst"],
       "tables": {"main": ["orders", "customers"], "sales": ["*"]}},
      {"principals": ["client_id=1example23456789", "cognito:groups=finance"],
       "tables": {"*": ["*"]}}
    ]}

A principal is the ARN of a role or user, or `claim=value` of a token, or `*` for everybody. `*` in
a name matches any text. There are only permissions: a table that no rule names does not exist for
the caller. `list_claims` may be left out: it names the claims that are lists, of which each value
matches.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..errors import Misconfigured

PRINCIPAL = re.compile(r"\*|arn:.+|[^*=]+=.+", re.DOTALL)
"""A claim has no wildcard, because callers choose the values of some claims."""


@dataclass(frozen=True, slots=True)
class Rights:
    """The tables that one caller may read."""

    tables: tuple[tuple[str, str], ...]
    """Patterns of namespace and table."""
    table_uuid: str | None = None
    """The one table that the caller's credentials were vended for; None: no such limit."""

    @property
    def all_tables(self) -> bool:
        """Whether the caller may read every table of every namespace."""
        return ("*", "*") in self.tables

    def may_read_namespace(self, name: str) -> bool:
        """Whether the caller may read every table of a namespace, even if it has none."""
        return any(_matches(namespace, name) and table == "*" for namespace, table in self.tables)

    def may_read_table(self, namespace: str, name: str) -> bool:
        """Whether the caller may read a table, or a view."""
        return any(
            _matches(in_namespace, namespace) and _matches(table, name)
            for in_namespace, table in self.tables
        )


EVERYTHING = Rights((("*", "*"),))


@dataclass(frozen=True, slots=True)
class Rule:
    """Principals, and patterns of namespace and table that they may read."""

    principals: tuple[str, ...]
    tables: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Policy:
    """The rules of the document."""

    rules: tuple[Rule, ...]
    list_claims: frozenset[str] = frozenset()
    """The claims that are lists (see `principals`)."""

    @classmethod
    def parse(cls, document: str) -> "Policy":
        """Read the document.

        Raises:
            Misconfigured: it does not have the form above. No part of it is used then.
        """
        try:
            parsed = json.loads(document, object_pairs_hook=_object)
        except (ValueError, RecursionError):
            raise _wrong("it is not JSON") from None
        if isinstance(parsed, dict):
            parsed = {"list_claims": [], **parsed}
        rules, claims = _values(parsed, "the document", "rules", "list_claims")
        for claim in _list(claims, "list_claims"):
            if not isinstance(claim, str):
                raise _wrong("the name of a claim must be a text")
        return cls(tuple(_rule(rule) for rule in _list(rules, "rules")), frozenset(claims))

    def rights(self, names: Iterable[str]) -> Rights:
        """What a caller with these names may read (see `principals`)."""
        names = list(names)
        found = (
            rule.tables
            for rule in self.rules
            if any(_is_principal(one, names) for one in rule.principals)
        )
        return Rights(tuple(dict.fromkeys(pair for tables in found for pair in tables)))


def _is_principal(principal: str, names: list[str]) -> bool:
    return principal == "*" or any(_matches(principal, name) for name in names)


def _matches(pattern: str, name: str) -> bool:
    if "*" not in pattern:
        return pattern == name
    parts = map(re.escape, pattern.split("*"))
    return re.fullmatch(".*".join(parts), name, re.DOTALL) is not None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object. A key that is there twice is an error: json.loads would ignore the first."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise _wrong(f"the key {twice!r} is in one object twice")
    return found


def _rule(rule: Any) -> Rule:
    principals, tables = _values(rule, "a rule", "principals", "tables")
    for principal in _list(principals, "principals"):
        if not isinstance(principal, str) or not PRINCIPAL.fullmatch(principal):
            raise _wrong(f"{principal!r} is no ARN, no claim=value and not *")
    if not isinstance(tables, dict):
        raise _wrong("tables must be an object: namespace to a list of tables")
    pairs = []
    for namespace, names in tables.items():
        for name in _list(names, "the tables of a namespace"):
            if not isinstance(name, str):
                raise _wrong("the name of a table must be a text")
            pairs.append((namespace, name))
    return Rule(tuple(principals), tuple(pairs))


def _values(thing: Any, what: str, *keys: str) -> list[Any]:
    if not isinstance(thing, dict) or thing.keys() != set(keys):
        raise _wrong(f"{what} must be an object with the keys {', '.join(keys)} and no other")
    return [thing[key] for key in keys]


def _list(thing: Any, what: str) -> list[Any]:
    if not isinstance(thing, list):
        raise _wrong(f"{what} must be a list")
    return thing


def _wrong(reason: str) -> Misconfigured:
    return Misconfigured(f"nothing is served, because the authorization policy is wrong: {reason}")
