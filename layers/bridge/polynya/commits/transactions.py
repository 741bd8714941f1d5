"""Commits to several tables, which are one snapshot of DuckLake."""

from ..errors import BadRequest
from ..iceberg.commits.requests import CommitTransactionRequest
from ..translate.commits.table_commit import table_commit
from .catalog import CommitCatalog
from .names import namespace_name
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
    found: dict[tuple[str, str], Target] = {}
    for change in request.table_changes:
        if change.identifier is None:
            raise BadRequest("each change of a transaction must name its table (`identifier`)")
        namespace, name = namespace_name(change.identifier.namespace), change.identifier.name
        # DuckLake does not distinguish letter case.
        key = namespace.casefold(), name.casefold()
        if key in found:
            raise BadRequest(f"the table {namespace}.{name} is in the transaction twice")
        commit = table_commit(change.requirements, change.updates)
        found[key] = Target(namespace, name, commit)
    if not found:
        raise BadRequest("the transaction has no changes (`table-changes`)")
    return list(found.values())
