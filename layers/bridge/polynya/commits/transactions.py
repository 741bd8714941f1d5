"""Commits to several tables, which are one snapshot of DuckLake."""

from ..errors import BadRequest
from ..iceberg.commits.requests import CommitTransactionRequest
from ..namespaces import dotted
from ..translate.commits.table_commit import table_commit
from .catalog import CommitCatalog
from .targets import Target


def commit_transaction(catalog: CommitCatalog, request: CommitTransactionRequest) -> None:
    """Commit the changes of all tables of a transaction, or of none.

    Raises:
        NoSuchTable: a table does not exist.
        AlreadyExists: a table was to be created.
        CommitFailed: a requirement does not hold.
        BadRequest: DuckLake cannot represent it, or a table is in it twice.
        CommitStateUnknown: it is not known whether the commit took place.
    """
    catalog.commit_targets(targets(request))


def targets(request: CommitTransactionRequest) -> list[Target]:
    """The tables of a transaction.

    Raises:
        BadRequest: there is none, one has no name, or one is there twice.
    """
    found: dict[tuple[str, ...], Target] = {}
    for change in request.table_changes:
        if change.identifier is None:
            raise BadRequest("each change of a transaction must name its table (`identifier`)")
        names = (*change.identifier.namespace, change.identifier.name)
        # DuckLake does not distinguish letter case.
        key = tuple(name.casefold() for name in names)
        if key in found:
            raise BadRequest(f"the table {dotted(*names)} is in the transaction twice")
        commit = table_commit(change.requirements, change.updates)
        found[key] = Target(names[:-1], names[-1], commit)
    if not found:
        raise BadRequest("the transaction has no changes (`table-changes`)")
    return list(found.values())
