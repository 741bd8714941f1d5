"""registerTable: a table of another Iceberg catalog becomes one of the lake, without a copy."""

from dataclasses import replace

from ..access.authorized_lake import check_may_write_table
from ..commits.plan.registered_table import source_places
from ..commits.plan.table_plan import NewTable
from ..commits.request.source_table import source_commit
from ..commits.write.plans import check_paths_are_new
from ..ducklake.connection.database import retried
from ..rest import answers
from ..rest.requests import RegisterTableRequest
from ..runtime.errors import BadRequest
from ..runtime.namespaces import Namespace
from .writer import TableChange, WritableCatalog


def register(
    catalog: WritableCatalog, namespace: Namespace, request: RegisterTableRequest
) -> answers.LoadTableResult:
    """Register a table, as one snapshot of the lake.

    Raises:
        AlreadyExists: a table or a view has this name.
        NoSuchNamespace: the namespace does not exist.
        BadRequest: DuckLake cannot have such a table, or it may not be registered from there.
    """
    [answer] = catalog.commit_targets([_change(catalog, namespace, request)])
    return answer


def rehearse(
    catalog: WritableCatalog, namespace: Namespace, request: RegisterTableRequest
) -> answers.Rehearsal:
    """The result that registering a table would have. Raises: as `register`."""
    # Nothing is written to S3 either.
    objects = replace(catalog.objects, copy_with_end=lambda *_: None)
    catalog = replace(catalog, objects=objects)
    return _rehearsal(catalog, _change(catalog, namespace, request))


@retried
def _rehearsal(catalog: WritableCatalog, change: TableChange) -> answers.Rehearsal:
    with catalog.database.transaction() as con:
        planned = catalog.planned(con, change)
        check_paths_are_new(con, planned.lake.lake, planned.plan)
    plan, deletes = planned.plan, planned.plan.deletes
    deleted = [*deletes.of_added.values(), *(large.positions for large in deletes.large)]
    return {
        "data-files": len(plan.added),
        "rows": sum(file.record_count for file in plan.added) - sum(map(len, deleted)),
        "deleted-rows": sum(map(len, deleted)),
        "left-behind": plan.table.left_behind if isinstance(plan.table, NewTable) else "",
    }


@retried
def _change(
    catalog: WritableCatalog, namespace: Namespace, request: RegisterTableRequest
) -> TableChange:
    """The change that registers a table."""
    if request.overwrite:
        raise BadRequest("a registration replaces no table: drop it first, and leave out overwrite")
    with catalog.database.transaction() as con:
        lake = catalog.reader.readable(con)
        schema = lake.schema(namespace)
        # Rights are checked first.
        check_may_write_table(lake.rights, schema.namespace, request.name)
        places = source_places(catalog.creator(lake, schema))
        commit = source_commit(catalog.objects, places, request.metadata_location)
    return TableChange(namespace, request.name, commit)
