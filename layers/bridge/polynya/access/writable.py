"""Whether a caller may write: what a commit checks before anything else.

A rename needs the right on both names, a transaction the right on every table in it. Tables that
the caller may not read are not found before they are checked here (`ReadableLake`).
"""

from ..errors import Forbidden
from .policy import Rights


def check_may_write_table(rights: Rights, namespace: str, name: str) -> None:
    """Do nothing if the caller may create, change and drop a table or a view of this name.

    Raises:
        Forbidden: the caller may not.
    """
    if not rights.may_write_table(namespace, name):
        raise no_right_to_table(rights, namespace, name)


def no_right_to_table(rights: Rights, namespace: str, name: str) -> Forbidden:
    """The refusal of a name that the caller may not write, or that is taken by what the caller may
    not see: DuckLake does not distinguish letter case, and the policy does."""
    return Forbidden(
        f"no right to write {namespace}.{name}: it takes the table's name, or a pattern of it, "
        f"{_where(rights.may_read_table(namespace, name))}; and the right to read whatever has "
        "the same name in other letter case"
    )


def check_may_write_namespace(rights: Rights, name: str) -> None:
    """Do nothing if the caller may create and drop a namespace, and set its properties.

    Raises:
        Forbidden: the caller may not.
    """
    if not rights.may_write_namespace(name):
        raise no_right_to_namespace(rights, name)


def no_right_to_namespace(rights: Rights, name: str) -> Forbidden:
    """The refusal of a name, as `no_right_to_table`."""
    return Forbidden(
        f"no right to change the namespace {name}: it takes all tables of it, "
        f'`"{name}": ["*"]`, {_where(rights.may_read_namespace(name))}; and the right to read '
        "whatever has the same name in other letter case"
    )


def _where(may_read: bool) -> str:
    keys = "the key `write`" if may_read else "the keys `tables` and `write`"
    return f"under {keys} of a rule of the authorization policy"
