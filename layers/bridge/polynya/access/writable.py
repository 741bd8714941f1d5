"""Whether a caller may write: what a commit checks before anything else.

A rename needs the right on both names, a transaction the right on every table in it. Tables that
the caller may not read are not found before they are checked here (`ReadableLake`).
"""

import json
from functools import reduce
from typing import Any

from ..errors import Forbidden
from ..namespaces import Namespace, dotted
from .policy import ALL, Rights


def check_may_write_table(rights: Rights, namespace: Namespace, name: str) -> None:
    """Do nothing if the caller may create, change and drop a table or a view of this name.

    Raises:
        Forbidden: the caller may not.
    """
    if not rights.may_write_table(namespace, name):
        raise no_right_to_table(rights, namespace, name)


def no_right_to_table(rights: Rights, namespace: Namespace, name: str) -> Forbidden:
    """The refusal of a name that the caller may not write, or that is taken by what the caller may
    not see: DuckLake does not distinguish letter case, and the policy does."""
    return Forbidden(
        f"no right to write {dotted(*namespace, name)}: it takes the table's name, or a pattern of "
        f"it, {_where(rights.may_read_table(namespace, name))}; and the right to read whatever has "
        "the same name in other letter case"
    )


def check_may_write_namespace(rights: Rights, namespace: Namespace) -> None:
    """Do nothing if the caller may create and drop a namespace, and set its properties.

    Raises:
        Forbidden: the caller may not.
    """
    if not rights.may_write_namespace(namespace):
        raise no_right_to_namespace(rights, namespace)


def no_right_to_namespace(rights: Rights, namespace: Namespace) -> Forbidden:
    """The refusal of a name, as `no_right_to_table`."""
    return Forbidden(
        f"no right to change the namespace {dotted(*namespace)}: it takes all tables of it, "
        f"`{_rule(namespace)}`, {_where(rights.may_read_namespace(namespace))}; and the right to "
        "read whatever has the same name in other letter case"
    )


def _rule(namespace: Namespace) -> str:
    """All tables of a namespace, as in a rule: `"sales": [{"europe": ["*"]}]`."""
    start: list[Any] = [ALL]
    tables = reduce(lambda inner, level: [{level: inner}], reversed(namespace), start)
    return json.dumps(tables[0], ensure_ascii=False)[1:-1]


def _where(may_read: bool) -> str:
    keys = "the key `write`" if may_read else "the keys `tables` and `write`"
    return f"under {keys} of a rule of the authorization policy"
