"""The columns that a filter names, and how far the statistics of their files can be used."""

from collections.abc import Iterator, Sequence

from ...ducklake.rows.conditions import FORMS, FilteredColumn, PartitionKey, PartitionTest
from ...ducklake.rows.data_files import FileGroup
from ...errors import BadRequest
from ...iceberg.single_value import DECIMAL
from ...iceberg.transforms import BUCKET, transformed
from ...iceberg.types import Field, List, Map, Struct, TableSchema, Type, primitives
from ..columns.schemas import Schemas
from ..partitions import Partitions, Plan
from ..values import value

FORM_OF = {"int": "integer", "long": "integer"} | {
    name: name for name in FORMS - {"integer", "decimal"}
}

HASHED_TYPE = {"integer": "long"}
"""The Iceberg type whose hash the values of a form have; for others it is the form."""


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
        self._is_case_sensitive = is_case_sensitive
        self._ids: dict[str, set[int]] = {}
        for schema in named_by:
            for name, field_id in _names(Struct(schema.fields)):
                self._ids.setdefault(self._key(name), set()).add(field_id)
        self._types = [primitives(schema.fields) for schema in named_by]

    def find(self, field: str | int) -> FilteredColumn | None:
        """A column by its dotted name or its id; None if its statistics cannot be used.

        Raises:
            BadRequest: no schema has the column.
        """
        ids = {field} if isinstance(field, int) else self._ids.get(self._key(field), set())
        if not ids & {one for found in self._ids.values() for one in found}:
            raise BadRequest(f"filter: no such column: {field}")
        # Two schemas may give one name to two columns: which of them is meant is not certain.
        return self._column(*ids) if len(ids) == 1 else None

    def bucket_tests(self, column: FilteredColumn, texts: Sequence[str]) -> Iterator[PartitionTest]:
        """For each partitioning by buckets of the column: those that the values are in.

        Values of time transforms skip no file that the statistics of their column do not skip.
        """
        for group, plan in self._plans.items():
            for field, source in zip(plan.spec.fields, plan.sources, strict=True):
                if field.source_id != column.column_id or not BUCKET.fullmatch(field.transform):
                    continue
                if group.partition_id is not None:
                    type_name = HASHED_TYPE.get(column.form or "", column.form or "")
                    buckets = {
                        transformed(field.transform, type_name, value(type_name, text))
                        for text in texts
                    }
                    key = PartitionKey(group.partition_id, *source.keys)
                    yield PartitionTest(key, tuple(sorted(buckets)))

    def _column(self, column_id: int) -> FilteredColumn | None:
        begin, form, form_begin = None, None, 0
        for boundary, schema in self._schemas.by_snapshot:
            if boundary > self._snapshot_id:
                break
            written = primitives(schema.fields).get(column_id)
            if written is None:
                begin = None
                continue
            begin = boundary if begin is None else begin
            new = form_of(written)
            if new != form or begin == boundary:
                form, form_begin = new, boundary
        if begin is None:
            return None  # in a list or a map, or not in the snapshot
        is_same = {form_of(types[column_id]) for types in self._types if column_id in types}
        usable = form if is_same == {form} else None
        since = form_begin if usable else 0
        return FilteredColumn(column_id, begin, usable, since, self._key_of(column_id))

    def _key_of(self, column_id: int) -> PartitionKey | None:
        """The key of the column, if all files are partitioned by its values in the same way.

        Its values are certain even if statistics are missing, and are read faster.
        """
        keys = {_identity_key(group, plan, column_id) for group, plan in self._plans.items()}
        return keys.pop() if len(keys) == 1 else None

    def _key(self, name: str) -> str:
        return name if self._is_case_sensitive else name.lower()


def _identity_key(group: FileGroup, plan: Plan, column_id: int) -> PartitionKey | None:
    for field, source in zip(plan.spec.fields, plan.sources, strict=True):
        is_identity = (field.source_id, field.transform) == (column_id, "identity")
        if is_identity and group.partition_id is not None and source.constant is None:
            return PartitionKey(group.partition_id, *source.keys)
    return None


def form_of(type_name: str) -> str | None:
    """How the texts of bounds of an Iceberg type are compared; None: they are not."""
    return "decimal" if DECIMAL.fullmatch(type_name) else FORM_OF.get(type_name)


def _names(type_: Type, prefix: str = "") -> Iterator[tuple[str, int]]:
    """The dotted names of all fields below a type, as Iceberg's clients write them."""
    for field in _members(type_):
        yield prefix + field.name, field.field_id
        yield from _names(field.type, f"{prefix}{field.name}.")


def _members(type_: Type) -> tuple[Field, ...]:
    match type_:
        case Struct(fields):
            return fields
        case List(element_id, element):
            return (Field(element_id, "element", element),)
        case Map(key_id, key, value_id, value):
            return (Field(key_id, "key", key), Field(value_id, "value", value))
    return ()
