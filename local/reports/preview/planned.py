"""Which files an Iceberg client reads for a filter: PyIceberg asks the catalog for the plan."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .answers import Planned
from .filters import PREFIX, Condition

if TYPE_CHECKING:
    from pyiceberg.catalog import Catalog
    from pyiceberg.expressions import BooleanExpression

MODES = ("server", "client")
"""The catalog finds the files in one statement, unless the table needs manifests."""


def planned(
    where: Mapping[str, str],
    name: tuple[str, ...],
    conditions: tuple[Condition, ...],
    values: list[Any],
) -> Planned:
    """The data files that are left of the newest snapshot, and their delete files.

    Args:
        where: PyIceberg's properties of the catalog; its warehouse is pinned to the snapshot.
        values: of the conditions, in Python's types; None for a condition without a value.

    Raises:
        Exception: PyIceberg's, also for values that it does not know.
    """
    from pyiceberg.catalog import load_catalog

    wanted = _expression(conditions, values)
    failure: Exception | None = None
    for mode in MODES:
        try:
            catalog = load_catalog("preview", **{**where, "scan-planning-mode": mode})
            return _plan(catalog, name, wanted)
        except Exception as error:
            failure = error
    assert failure is not None
    raise failure


def _plan(catalog: "Catalog", name: tuple[str, ...], wanted: "BooleanExpression") -> Planned:
    table = catalog.load_table(name)
    tasks = [*table.scan(row_filter=wanted).plan_files()]
    deletes = {file.file_path for task in tasks for file in task.delete_files}
    # Generated files are below the location of the metadata, the lake's own are elsewhere.
    own = [task for task in tasks if not task.file.file_path.startswith(f"{table.location()}/")]
    return Planned(
        files=len(own),
        bytes=sum(task.file.file_size_in_bytes for task in own),
        generated_files=len(tasks) - len(own),
        delete_files=len(deletes),
    )


def _expression(conditions: tuple[Condition, ...], values: list[Any]) -> "BooleanExpression":
    from pyiceberg import expressions

    kinds: dict[str, Callable[..., BooleanExpression]] = {
        "=": expressions.EqualTo,
        "≠": expressions.NotEqualTo,
        "<": expressions.LessThan,
        "≤": expressions.LessThanOrEqual,
        ">": expressions.GreaterThan,
        "≥": expressions.GreaterThanOrEqual,
        PREFIX: expressions.StartsWith,
        "is null": expressions.IsNull,
        "is not null": expressions.NotNull,
    }
    found: BooleanExpression = expressions.AlwaysTrue()
    for one, value in zip(conditions, values, strict=True):
        column = expressions.Reference(one.column)
        arguments = (column,) if one.value is None else (column, value)
        found = expressions.And(found, kinds[one.operator](*arguments))
    return found
