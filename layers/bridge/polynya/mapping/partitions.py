"""DuckLake's partitioning as Iceberg partition specs, and its SORTED BY as a sort order.

A spec has only the fields that are provably the same in both.

DuckLake's older time transforms are calendar parts (month 1 to 12), Iceberg's count from 1970, as
the `epoch_` ones of version 1.1 do; a bucket is the same only if both hash the same bytes. A
transform without an Iceberg equivalent is omitted: a spec with fewer fields is still true.

A sort order is DuckLake's if it names only columns; otherwise it is the one that a client set.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, NamedTuple

from ..ducklake.rows.files import FileGroup
from ..ducklake.rows.lifetimes import UnservableRange
from ..ducklake.rows.objects import Partitioning, SortKey, Tag
from ..iceberg.manifest import UNPARTITIONED, PartitionField, PartitionSpec
from ..iceberg.table_metadata import SortField
from ..iceberg.types import Field, Primitive, primitives
from ..runtime.errors import Refused
from ..types.names import DUCKLAKE, equivalent, iceberg_type, value
from ..types.numbers import in_range
from ..types.temporal import EPOCH_DAY
from .properties import SORT_ORDER
from .schemas import Schemas

BUCKET = re.compile(r"bucket\(([1-9][0-9]{0,8})\)")

BUCKET_TYPES = frozenset(name for name, type_ in DUCKLAKE.items() if type_.has_same_buckets)
CALENDAR_TYPES = frozenset(name for name, type_ in DUCKLAKE.items() if type_.has_same_calendar)
"""Types of DuckLake that have the same buckets and parts of the calendar in Iceberg."""

FINEST = ("year", "month", "day", "hour")

EPOCHS = {f"epoch_{part}": part for part in FINEST}
"""DuckLake's transforms that count from 1970, in UTC, and Iceberg's with the same values."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where the values of a partition field come from."""

    keys: tuple[int, ...] = ()
    """partition_key_index of each part, coarsest first."""
    is_calendar: bool = False
    """The parts are a year, a month from 1 to 12, …; not counted from 1970."""
    constant: int | None = None
    """The column whose statistics hold the one value; None if partition values give it."""


class Constant(NamedTuple):
    """The statistics, in one file, of a column whose value is in the path of the file.

    Equal bounds are the value, even if they are not known to be exact: no value is outside.
    """

    value_count: int | None
    min_value: str | None
    max_value: str | None


NO_VALUE = Constant(0, None, None)


@dataclass(frozen=True, slots=True)
class Plan:
    """A spec, and where the values of its fields come from."""

    spec: PartitionSpec
    sources: tuple[Source, ...]


@dataclass(frozen=True, slots=True)
class Partitions:
    """All specs of a table."""

    specs: tuple[PartitionSpec, ...]
    """By id; the first is the unpartitioned one."""
    plans: Mapping[FileGroup, Plan]
    default_spec_id: int
    unservable: tuple[UnservableRange, ...]
    """The snapshots that show a column whose value is only in the path of files, where no partition
    field of these files can hold it."""

    def specs_of(self, groups: Iterable[FileGroup]) -> list[PartitionSpec]:
        """The specs that files of these groups can have; any file can be unpartitioned."""
        ids = {0, *(self.plans[group].spec.spec_id for group in groups if group in self.plans)}
        return [self.specs[spec_id] for spec_id in sorted(ids)]

    def fields_of(self, groups: Iterable[FileGroup]) -> list[Any]:
        """The partition fields of each of these groups, as JSON, by the group's ids."""
        partitioned = [group for group in groups if group in self.plans]
        return sorted(
            (*_ids(group), self.plans[group].spec.json()["fields"]) for group in partitioned
        )

    def rows_spec(self, fields: Iterable[Field]) -> PartitionSpec:
        """The spec of inlined rows: the table's, if these columns include its sources."""
        spec = self.specs[self.default_spec_id]
        ids = {field.field_id for field in fields}
        return spec if ids.issuperset(f.source_id for f in spec.fields) else UNPARTITIONED

    @property
    def constant_ids(self) -> set[int]:
        """The columns whose values are in the paths of some files."""
        sources = (source for plan in self.plans.values() for source in plan.sources)
        return {source.constant for source in sources if source.constant is not None}

    @property
    def time_ids(self) -> set[int]:
        """The columns whose years, months, days or hours are partition values."""
        fields = (field for spec in self.specs for field in spec.fields)
        return {field.source_id for field in fields if field.transform in FINEST}

    def spec_and_values(
        self,
        group: FileGroup,
        texts: Mapping[int, str | None],
        constants: Mapping[int, Constant],
    ) -> tuple[PartitionSpec, tuple[Any, ...]]:
        """The spec of a file and its partition tuple.

        A file with a value that is not certain is unpartitioned.

        Args:
            texts: its partition values by partition_key_index.
            constants: by column_id, for the columns of `constant_ids`; and for those of
                `time_ids`, at least if the file has no value of them.

        Raises:
            Refused: no reader would get the value of a column that is in the file's path.
        """
        plan = self.plans.get(group)
        if plan is None or not plan.spec.fields:
            return self.specs[0], ()
        fields = zip(plan.spec.fields, plan.sources, strict=True)
        try:
            return plan.spec, tuple(
                _value(field, source, texts, constants) for field, source in fields
            )
        except (ValueError, KeyError):
            if any(source.constant is not None for source in plan.sources):
                raise Refused(
                    "an added file has a column in its path whose value is not certain"
                ) from None
            return self.specs[0], ()


def _ids(group: FileGroup) -> tuple[int, int]:
    """The ids by which groups are sorted; -1 stands for None."""
    partition_id, mapping_id = group.partition_id, group.mapping_id
    return (-1 if partition_id is None else partition_id, -1 if mapping_id is None else mapping_id)


def partitions(partitioning: Partitioning, schemas: Schemas, snapshot_id: int) -> Partitions:
    """The specs for every group of files with one partitioning, in the order of their files.

    A field is omitted if the newest schema does not show its column: readers could not bind it.
    """
    shown = primitives(schemas.at(snapshot_id).fields)
    top_level = {field.field_id: field.name for field in schemas.at(snapshot_id).fields}
    builder = _Builder(partitioning, {i: shown[i] for i in shown.keys() & top_level}, top_level)
    plans = {group: builder.plan(group) for group in partitioning.groups}
    # New files may have a partitioning that no file has yet.
    current = builder.plan(FileGroup(partitioning.current, None)).spec
    unservable = tuple(_unservable(partitioning, plans, schemas))
    return Partitions(tuple(builder.specs), plans, current.spec_id, unservable)


def _unservable(
    partitioning: Partitioning, plans: Mapping[FileGroup, Plan], schemas: Schemas
) -> Iterator[UnservableRange]:
    for group, lifetime in partitioning.groups.items():
        fields = plans[group].spec.fields
        identity_ids = {field.source_id for field in fields if field.transform == "identity"}
        for column_id in set(partitioning.constants.get(group.mapping_id, ())) - identity_ids:
            for shown in schemas.lifetimes(column_id):
                if both := lifetime.intersection(shown):
                    reason = "added files have a column in their path that no partition can give"
                    yield UnservableRange(*both, reason)


class _Builder:
    """Builds specs; equal fields get equal ids, and so do equal specs."""

    def __init__(
        self, partitioning: Partitioning, types: Mapping[int, str], names: Mapping[int, str]
    ) -> None:
        self._partitioning = partitioning
        self._types = types
        self._types_of = partitioning.column_types
        self._names = names
        self._field_ids: dict[tuple[int, str], int] = {}
        self.specs = [UNPARTITIONED]

    def plan(self, group: FileGroup) -> Plan:
        pairs = self._fields(group)
        fields = tuple(field for field, _ in pairs)
        for spec in self.specs:
            if spec.fields == fields:
                break
        else:
            spec = PartitionSpec(len(self.specs), fields)
            self.specs.append(spec)
        return Plan(spec, tuple(source for _, source in pairs))

    def _fields(self, group: FileGroup) -> list[tuple[PartitionField, Source]]:
        pairs: list[tuple[PartitionField, Source]] = []
        calendar: dict[int, dict[str, int]] = {}
        epochs = self._epochs(group)
        transforms: set[tuple[int, str]] = set()
        for column in self._partitioning.columns.get(group.partition_id, ()):
            if column.column_id not in self._types or column.transform is None:
                continue
            if (column.column_id, column.transform) in transforms:
                continue  # Iceberg refuses a spec that has the same field twice
            transforms.add((column.column_id, column.transform))
            key = Source((column.partition_key_index,))
            type_name = self._types[column.column_id]
            if column.transform == "identity":
                # Java reads the values in the newest type, also if it needs those of an older
                # schema, and fails: no field for a column that was promoted.
                types = {equivalent(name) for name in self._types_of[column.column_id]}
                if types == {type_name} and iceberg_type(type_name).has_identity:
                    pairs.append((self._field(column.column_id, "identity", type_name), key))
            elif match := BUCKET.fullmatch(column.transform):
                if self._types_of[column.column_id] <= BUCKET_TYPES:
                    transform = f"bucket[{match[1]}]"
                    pairs.append((self._field(column.column_id, transform, "int"), key))
            elif column.transform in EPOCHS:
                transform = EPOCHS[column.transform]
                if epochs.get(column.column_id) == transform:
                    pairs.append((self._field(column.column_id, transform, "int"), key))
            elif column.transform in FINEST:
                if not self._types_of[column.column_id] <= CALENDAR_TYPES:
                    continue
                parts = calendar.setdefault(column.column_id, {})
                parts[column.transform] = column.partition_key_index
        for column_id, parts in calendar.items():
            finest = _finest(parts)
            if finest and column_id not in epochs:
                keys = tuple(parts[part] for part in FINEST[: FINEST.index(finest) + 1])
                pairs.append(
                    (self._field(column_id, finest, "int"), Source(keys, is_calendar=True))
                )
        identities = {field.source_id for field, _ in pairs if field.transform == "identity"}
        # The files do not have these columns: readers get the values from the partition.
        for column_id in self._partitioning.constants.get(group.mapping_id, ()):
            type_name = self._types.get(column_id, "")
            if iceberg_type(type_name).has_identity and column_id not in identities:
                field = self._field(column_id, "identity", type_name)
                pairs.append((field, Source(constant=column_id)))
        return pairs

    def _epochs(self, group: FileGroup) -> dict[int, str]:
        """The finest transform of each column that counts from 1970, if Iceberg has it too.

        Iceberg has one time transform of a column in a spec, and no hours of dates.
        """
        finest: dict[int, str] = {}
        for column in self._partitioning.columns.get(group.partition_id, ()):
            part, type_name = EPOCHS.get(column.transform), self._types.get(column.column_id)
            types = {equivalent(name) for name in self._types_of.get(column.column_id, ())}
            if part and types == {type_name} and part in iceberg_type(type_name or "").parts:
                finest[column.column_id] = max(
                    part, finest.get(column.column_id, part), key=FINEST.index
                )
        return finest

    def _field(self, column_id: int, transform: str, result_type: str) -> PartitionField:
        key = (column_id, transform)
        # The specification lets these ids begin at 1000, and wants the same id for the same field.
        field_id = self._field_ids.setdefault(key, 1000 + len(self._field_ids))
        name = self._names[column_id]
        if transform != "identity":
            name = f"{name}_{transform.partition('[')[0]}"
            # Java refuses a partition field with the name of a column, and one column may have
            # buckets of several numbers.
            if name in self._names.values() or transform.startswith("bucket"):
                name = f"{name}_{field_id}"
        return PartitionField(column_id, field_id, name, transform, result_type)


def _finest(parts: Mapping[str, int]) -> str | None:
    """The finest part that is present with all coarser ones; None without the year."""
    finest = None
    for part in FINEST:
        if part not in parts:
            break
        finest = part
    return finest


def _value(
    field: PartitionField,
    source: Source,
    texts: Mapping[int, str | None],
    constants: Mapping[int, Constant],
) -> Any:
    if source.constant is not None:
        return _constant(field, constants[source.constant])
    parts = [texts[key] for key in source.keys]
    if any(part is None for part in parts):
        # The parts of an infinite time are NULL, too.
        if field.transform in FINEST and constants[field.source_id].value_count != 0:
            raise ValueError("not only NULL")
        return None
    if field.transform == "identity":
        return value(field.result_type, parts[0] or "")
    numbers = [value("int", part or "") for part in parts]
    return in_range("int", _since_1970(numbers)) if source.is_calendar else numbers[0]


def _constant(field: PartitionField, stats: Constant) -> Any:
    """The one value of a column whose value is in the path of its file."""
    if stats.value_count == 0:
        return None
    if stats.min_value is None or stats.min_value != stats.max_value:
        raise ValueError("not one value")
    return value(field.result_type, stats.min_value)


def _since_1970(parts: Sequence[int]) -> int:
    """Years, months, days or hours since 1970, depending on the number of parts."""
    # The parts that are not there are the first ones: January, the first day, midnight.
    year, month, day, hour = [*parts, 1, 1, 0][: len(parts)] + [1, 1, 0][len(parts) - 1 :]
    if len(parts) == 1:
        return year - 1970
    if len(parts) == 2:
        return (year - 1970) * 12 + month - 1
    days = date(year, month, day).toordinal() - EPOCH_DAY
    return days if len(parts) == 3 else days * 24 + hour


DIRECTIONS = {"ASC": "asc", "DESC": "desc"}
NULL_ORDERS = {"NULLS_FIRST": "nulls-first", "NULLS_LAST": "nulls-last"}


def sort_fields(keys: Sequence[SortKey], fields: Sequence[Field]) -> list[SortField]:
    """Translate sort keys; empty if one is an expression: a part of an order is another order."""
    ids = {
        f.name: f.field_id
        for f in fields
        if isinstance(f.type, Primitive) and iceberg_type(f.type.name).format_version == 2
    }
    quoted = {'"' + name.replace('"', '""') + '"': field_id for name, field_id in ids.items()}
    ids = ids | quoted
    order = [
        SortField(ids[key.expression], DIRECTIONS[key.sort_direction], NULL_ORDERS[key.null_order])
        for key in keys
        if key.expression in ids
        and key.sort_direction in DIRECTIONS
        and key.null_order in NULL_ORDERS
    ]
    return order if len(order) == len(keys) else []


def order_text(fields: Iterable[SortField]) -> str:
    """The value of the tag that keeps a sort order."""
    return json.dumps([[f.source_id, f.direction, f.null_order, f.transform] for f in fields])


def tagged_sort_fields(tags: Iterable[Tag], fields: tuple[Field, ...]) -> list[SortField]:
    """Read the sort order in a tag; empty if there is none, or a column of it was dropped."""
    texts = [tag.value for tag in tags if tag.key == SORT_ORDER and tag.value is not None]
    try:
        order = [SortField(*row) for text in texts for row in json.loads(text)]
    except (ValueError, TypeError):
        return []  # somebody has changed the tag by hand
    types = primitives(fields)
    return order if all(field.source_id in types for field in order) else []
