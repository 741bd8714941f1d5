"""Filters of scans as conditions on the statistics of data files.

`FilteredColumns` finds the columns that a filter names, and the files whose statistics of them can
be used. `condition_of` translates the filter by the rules of Iceberg's inclusive projection, which
clients apply to the bounds in manifests: a file is kept unless no row of it can pass.
"""

from collections.abc import Callable, Iterator, Sequence

from ..ducklake.rows.files import (
    EVERY_FILE,
    AllOf,
    AnyOf,
    ColumnTest,
    Condition,
    FileGroup,
    FilteredColumn,
    PartitionKey,
    PartitionTest,
)
from ..iceberg.types import (
    BUCKET,
    Struct,
    TableSchema,
    dotted_names,
    primitives,
    top_level,
    transformed,
)
from ..rest.planning import And, Filter, Not, Or, Predicate
from ..runtime.errors import BadRequest
from ..types.names import FORMS, iceberg_type, value
from .partitions import Partitions, Plan
from .scan_tasks import literal_text
from .schemas import Schemas

SAME_HASHES = {"integer", "string", "binary", "date", "time", "timestamp"}
"""The forms of which each type hashes a value alike: a decimal's hash depends on its scale."""


class FilteredColumns:
    """Finds the columns of a filter for one snapshot."""

    def __init__(
        self,
        schemas: Schemas,
        partitions: Partitions,
        snapshot_id: int,
        named_by: Sequence[TableSchema],
        *,
        is_case_sensitive: bool,
    ) -> None:
        """`named_by`: the schemas whose names the client may mean."""
        self._schemas, self._snapshot_id = schemas, snapshot_id
        self._plans = partitions.plans
        self._mapped = partitions.mapped
        self._is_case_sensitive = is_case_sensitive
        self._ids: dict[str, set[int]] = {}
        for schema in named_by:
            for name, field_id in dotted_names(Struct(schema.fields)):
                self._ids.setdefault(self._key(name), set()).add(field_id)
        self._types = [primitives(schema.fields) for schema in named_by]

    def find(self, field: str | int) -> FilteredColumn | None:
        """A column by its dotted name or its id; None if its statistics cannot be used.

        Raises:
            BadRequest: no schema has the column.
        """
        ids = {field} if isinstance(field, int) else self._ids.get(self._key(field), set())
        if not ids & {field_id for field_ids in self._ids.values() for field_id in field_ids}:
            raise BadRequest(f"filter: no such column: {field}")
        # Two schemas may give one name to two columns: which of them is meant is not certain.
        return self._column(*ids) if len(ids) == 1 else None

    def bucket_tests(self, column: FilteredColumn, texts: Sequence[str]) -> Iterator[PartitionTest]:
        """The tests for buckets of the values, for each partitioning by buckets of the column."""
        # Time transforms need no test: it would skip no file that the column's statistics do not.
        for group, plan in self._plans.items():
            for field, source in zip(plan.spec.fields, plan.sources, strict=True):
                match = BUCKET.fullmatch(field.transform)
                if field.source_id != column.column_id or match is None:
                    continue
                if group.partition_id is not None and column.form in SAME_HASHES:
                    type_name = FORMS[column.form].name
                    buckets = {
                        transformed(field.transform, type_name, value(type_name, text))
                        for text in texts
                    }
                    key = PartitionKey(group.partition_id, *source.keys)
                    yield PartitionTest(key, tuple(sorted(buckets)), int(match[1]))

    def _column(self, column_id: int) -> FilteredColumn | None:
        begin, form, form_begin, root = None, None, 0, column_id
        for boundary, schema in self._schemas.by_snapshot:
            if boundary > self._snapshot_id:
                break
            written = primitives(schema.fields).get(column_id)
            if written is None:
                begin = None
                continue
            root = top_level(schema.fields)[column_id]
            if not iceberg_type(written).has_counts:
                return None
            begin = boundary if begin is None else begin
            new = iceberg_type(written).form
            if new != form or begin == boundary:
                form, form_begin = new, boundary
        if begin is None:
            return None  # in a list or a map, or not in the snapshot
        named = (types[column_id] for types in self._types if column_id in types)
        # A literal is spelled for the schema that the client knows: in another form it cannot be
        # compared.
        usable = form if {iceberg_type(name).form for name in named} == {form} else None
        since = form_begin if usable else 0
        lacking = tuple(id_ for id_, column_ids in self._mapped.items() if root not in column_ids)
        return FilteredColumn(column_id, begin, usable, since, self._key_of(column_id), lacking)

    def _key_of(self, column_id: int) -> PartitionKey | None:
        """The key of the column, if all files are partitioned by its values in the same way."""
        # Its values are certain even if statistics are missing, and are read faster.
        keys = {_identity_key(group, plan, column_id) for group, plan in self._plans.items()}
        return keys.pop() if len(keys) == 1 else None

    def _key(self, name: str) -> str:
        return name if self._is_case_sensitive else name.lower()


def _identity_key(group: FileGroup, plan: Plan, column_id: int) -> PartitionKey | None:
    for field, source in zip(plan.spec.fields, plan.sources, strict=True):
        is_identity = (field.source_id, field.transform) == (column_id, "identity")
        is_identity &= iceberg_type(field.result_type).has_identity
        if is_identity and group.partition_id is not None and source.keys:
            return PartitionKey(group.partition_id, *source.keys)
    return None


MOST_VALUES = 200
"""The longest list whose values are compared one by one. Of a longer one, the smallest and the
largest value are compared (as in Iceberg), and all of them only with files of one value, as in a
partition."""

NEGATED = {
    "lt": "gt-eq",
    "lt-eq": "gt",
    "gt": "lt-eq",
    "gt-eq": "lt",
    "eq": "not-eq",
    "not-eq": "eq",
    "in": "not-in",
    "not-in": "in",
    "is-null": "not-null",
    "not-null": "is-null",
    "is-nan": "not-nan",
    "not-nan": "is-nan",
    "starts-with": "not-starts-with",
    "not-starts-with": "starts-with",
}

# Zero has two signs, and a client may compare a float as a double: the bound itself may pass.
WIDENED = {"lt": "lt-eq", "gt": "gt-eq"}


def condition_of(filter_: Filter, columns: FilteredColumns, *, negated: bool = False) -> Condition:
    """Translate a filter into a condition on files: those that may hold a row that it selects.

    Args:
        negated: a row that it does not select. NULL is in neither: as clients do it, `not` is
            moved to the predicates.

    Raises:
        BadRequest: it names a column that no schema has.
    """
    match filter_:
        case Not(child):
            return condition_of(child, columns, negated=not negated)
        case And(parts) | Or(parts):
            conditions = tuple(condition_of(part, columns, negated=negated) for part in parts)
            return AllOf(conditions) if isinstance(filter_, And) != negated else AnyOf(conditions)
    return _test(filter_, columns, NEGATED[filter_.operation] if negated else filter_.operation)


def _test(predicate: Predicate, columns: FilteredColumns, operation: str) -> Condition:
    if predicate.field is None or (column := columns.find(predicate.field)) is None:
        return EVERY_FILE
    if operation in {"is-null", "not-null", "is-nan"}:
        return ColumnTest(column, operation)
    if column.form is None or operation not in COMPARED:
        return EVERY_FILE
    literals = [literal_text(column.form, literal) for literal in predicate.values]
    if any(literal is None for literal in literals):
        return EVERY_FILE
    texts = [text for text in literals if text is not None]
    condition = COMPARED[operation](column, operation, texts)
    if operation in {"eq", "in"} and len(texts) <= MOST_VALUES:
        return AllOf((condition, *columns.bucket_tests(column, texts)))
    return condition


def _comparison(column: FilteredColumn, operation: str, values: list[str]) -> Condition:
    if column.form in {"float", "double"}:
        operation = WIDENED.get(operation, operation)
    return ColumnTest(column, operation, tuple(values))


def _membership(column: FilteredColumn, operation: str, values: list[str]) -> Condition:
    if len(values) <= MOST_VALUES:
        return ColumnTest(column, "in", tuple(values))
    ordered = sorted(values, key=FORMS[column.form or ""].sort_key)
    ends = ("gt-eq", ordered[0]), ("lt-eq", ordered[-1])
    return AllOf(
        (
            *(ColumnTest(column, comparison, (end,)) for comparison, end in ends),
            ColumnTest(column, "one-of", tuple(values)),
        )
    )


def _exclusion(column: FilteredColumn, operation: str, values: list[str]) -> Condition:
    if column.form in {"float", "double"}:
        return EVERY_FILE  # clients disagree whether the two zeros are equal
    return ColumnTest(column, "not-in", tuple(values))


def _prefix(column: FilteredColumn, operation: str, values: list[str]) -> Condition:
    return ColumnTest(column, operation, tuple(values)) if column.form == "string" else EVERY_FILE


COMPARED: dict[str, Callable[[FilteredColumn, str, list[str]], Condition]] = {
    **dict.fromkeys(("lt", "lt-eq", "gt", "gt-eq"), _comparison),
    **dict.fromkeys(("eq", "in"), _membership),
    **dict.fromkeys(("not-eq", "not-in"), _exclusion),
    **dict.fromkeys(("starts-with", "not-starts-with"), _prefix),
}
"""The operations by which files can be skipped; all others keep every file."""
