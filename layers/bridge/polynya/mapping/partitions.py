"""DuckLake's partitioning as Iceberg partition specs, and its SORTED BY as a sort order.

A spec has only the fields that are provably the same in both.

A client's spec that DuckLake does not have is in a tag of the table, under the id of a partitioning
without keys; the values of files are where those of keys are, in the order of the spec's fields
(docs/developers/decisions/0026-partitionings-without-keys.md). For one that DuckLake has, the tag
has the names, the ids and the order of its fields.

A sort order is DuckLake's if it names only columns; otherwise it is the one that a client set.
"""

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import count
from typing import Any, NamedTuple
from urllib.parse import unquote

from ..ducklake.rows.files import FileGroup
from ..ducklake.rows.lifetimes import UnservableRange
from ..ducklake.rows.objects import PartitionColumn, Partitioning, SortKey, Tag
from ..iceberg.manifest import UNPARTITIONED, PartitionField, PartitionSpec
from ..iceberg.table_metadata import SortField
from ..iceberg.types import Field, Primitive, Struct, dotted_names, primitives, result_type
from ..runtime.errors import Refused
from ..types.names import DUCKLAKE, equivalent, iceberg_type, value
from ..types.numbers import check_range
from ..types.temporal import EPOCH_DAY
from .properties import PARTITION_SPECS, SORT_ORDER, stored_json
from .schemas import Schemas

BUCKET = re.compile(r"bucket\(([1-9][0-9]{0,8})\)")

BUCKET_TYPES = frozenset(name for name, type_ in DUCKLAKE.items() if type_.has_same_buckets)
CALENDAR_TYPES = frozenset(name for name, type_ in DUCKLAKE.items() if type_.has_same_calendar)
"""Types of DuckLake that have the same buckets and parts of the calendar in Iceberg."""

FINEST = ("year", "month", "day", "hour")

EPOCHS = {f"epoch_{part}": part for part in FINEST}
"""DuckLake's transforms that count from 1970, in UTC, and Iceberg's with the same values."""
SINCE_1970 = {part: transform for transform, part in EPOCHS.items()}


@dataclass(frozen=True, slots=True)
class Source:
    """Where the values of a partition field come from."""

    keys: tuple[int, ...] = ()
    """partition_key_index of each part, coarsest first."""
    is_calendar: bool = False
    """The parts are a year, a month from 1 to 12, …; not counted from 1970."""
    is_in_path: bool = False
    """The files do not have the column: their paths have its value, and so have its statistics, and
    the partition value, if there is a key."""


class Constant(NamedTuple):
    """The statistics, in one file, of a column whose value is in the path of the file.

    Equal bounds are the value, even if they are not known to be exact: no value is outside.
    """

    value_count: int | None
    min_value: str | None
    max_value: str | None


NO_VALUE = Constant(0, None, None)

NOTHING_IN_PATH: Mapping[int, str] = {}

ClientSpecs = Mapping[int, tuple[PartitionField, ...]]
"""The fields of specs as clients gave them, by partition_id, oldest first; without types."""
NO_SPECS: ClientSpecs = {}


def specs_text(specs: ClientSpecs) -> str:
    """The value of the tag that keeps specs."""
    return json.dumps(
        [
            {"partition-id": partition_id, "fields": [field.json() for field in fields]}
            for partition_id, fields in specs.items()
        ],
        ensure_ascii=False,
    )


def client_specs(tags: Iterable[Tag]) -> ClientSpecs:
    """Read the specs in a tag."""
    texts = [tag.value for tag in tags if tag.key == PARTITION_SPECS and tag.value is not None]
    try:
        return {
            int(spec["partition-id"]): tuple(map(_client_field, spec["fields"]))
            for text in texts
            for spec in stored_json(text)
        }
    except (ValueError, TypeError, LookupError):
        return NO_SPECS  # somebody has changed the tag by hand


def every_key(
    partitioning: Partitioning, specs: ClientSpecs
) -> dict[int | None, Sequence[PartitionColumn]]:
    """The keys of each partitioning; where DuckLake has none, the client's fields."""
    of_clients: dict[int | None, Sequence[PartitionColumn]] = {
        partition_id: [
            PartitionColumn(index, field.source_id, field.transform)
            for index, field in enumerate(fields)
        ]
        for partition_id, fields in specs.items()
    }
    return {**of_clients, **partitioning.columns}


def client_keys(fields: Iterable[PartitionField]) -> list[PartitionColumn]:
    """Keys with the values that files of a client's spec have."""
    return [
        PartitionColumn(index, field.source_id, SINCE_1970.get(field.transform, field.transform))
        for index, field in enumerate(fields)
    ]


def _client_field(json: Mapping[str, Any]) -> PartitionField:
    ids = int(json["source-id"]), int(json["field-id"])
    return PartitionField(*ids, str(json["name"]), str(json["transform"]), "")


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
    mapped: Mapping[int, frozenset[int]]
    """The columns that added files have, in the file or in its path, by mapping_id."""
    in_path: Mapping[int | None, Mapping[int, str]]
    """Those of them whose values are in the path, and their names there."""
    hashed: Mapping[int, Sequence[int]]
    """The columns of which each partitioning has buckets, by partition_id."""
    are_left_out: bool = False
    """Whether a client would misread them. Values of paths are then in the files alone
    (`adaptations`)."""

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
    def has_keys(self) -> bool:
        """Whether any partition field takes its value from partition values of files."""
        return any(source.keys for plan in self.plans.values() for source in plan.sources)

    @property
    def constant_ids(self) -> set[int]:
        """The columns whose values are in the paths of some files."""
        return {
            field.source_id
            for plan in self.plans.values()
            for field, source in zip(plan.spec.fields, plan.sources, strict=True)
            if source.is_in_path
        }

    @property
    def source_ids(self) -> set[int]:
        """The columns whose values or parts are partition values."""
        return {field.source_id for spec in self.specs for field in spec.fields}

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
        in_path: Mapping[int, str] = NOTHING_IN_PATH,
    ) -> tuple[PartitionSpec, tuple[Any, ...]]:
        """The spec of a file and its partition tuple.

        A file with a value that is not certain is unpartitioned.

        Args:
            texts: its partition values by partition_key_index.
            constants: by column_id, for the columns of `constant_ids`; and for those of
                `time_ids`, at least if the file has no value of them.
            in_path: the texts in its path, by column_id.

        Raises:
            Refused: no reader would get the value of a column that is in the file's path.
        """
        plan = self.plans.get(group)
        if plan is None or not plan.spec.fields:
            return self.specs[0], ()
        fields = zip(plan.spec.fields, plan.sources, strict=True)
        try:
            return plan.spec, tuple(
                _value(field, source, texts, constants, in_path) for field, source in fields
            )
        except (ValueError, KeyError):
            if any(source.is_in_path for source in plan.sources):
                raise Refused(
                    "an added file has a column in its path whose value is not certain"
                ) from None
            return self.specs[0], ()


def _ids(group: FileGroup) -> tuple[int, int]:
    """The ids by which groups are sorted; -1 stands for None."""
    partition_id, mapping_id = group.partition_id, group.mapping_id
    return (-1 if partition_id is None else partition_id, -1 if mapping_id is None else mapping_id)


def partitions(
    partitioning: Partitioning,
    schemas: Schemas,
    snapshot_id: int,
    specs: ClientSpecs = NO_SPECS,
    are_misread: Callable[[Iterable[tuple[str, str]]], bool] = lambda _: False,
) -> Partitions:
    """The specs for every group of files with one partitioning, in the order of their files.

    Args:
        specs: those that clients gave.
        are_misread: whether a client that somebody has named misreads partitions by columns of
            these names, with these transforms: then no file has any.
    """
    # Of the newest schema: readers could not bind a field whose column it does not show.
    builder = _Builder(partitioning, schemas.schema_at(snapshot_id).fields, specs)
    plans = {group: builder.plan(group) for group in partitioning.groups}
    # New files may have a partitioning that no file has yet.
    current = builder.plan(FileGroup(partitioning.current, None)).spec
    is_without = are_misread(builder.sources)
    if is_without:
        builder.specs, current = [UNPARTITIONED], UNPARTITIONED
        plans = dict.fromkeys(plans, Plan(UNPARTITIONED, ()))
    unservable = () if is_without else tuple(_unservable(partitioning, plans, schemas))
    return Partitions(
        tuple(builder.specs),
        plans,
        current.spec_id,
        unservable,
        partitioning.mapped,
        partitioning.constants,
        {
            partition_id: [c.column_id for c in keys if BUCKET.fullmatch(c.transform or "")]
            for partition_id, keys in partitioning.columns.items()
            if partition_id is not None
        },
        is_without,
    )


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
        self, partitioning: Partitioning, fields: tuple[Field, ...], specs: ClientSpecs
    ) -> None:
        self._partitioning = partitioning
        self._leaf_types = primitives(fields)
        self._names = {field.field_id: field.name for field in fields}
        top_level = self._leaf_types.keys() & self._names
        self._types = {field_id: self._leaf_types[field_id] for field_id in top_level}
        self._types_of = partitioning.column_types
        self._column_names = dict(dotted_names(Struct(fields)))
        self._client_specs = specs
        of_clients = [field for client in specs.values() for field in client]
        self._client_names = {(f.source_id, f.transform): f.name for f in of_clients}
        self._field_ids = {(f.source_id, f.transform): f.field_id for f in of_clients}
        self.specs = [UNPARTITIONED]

    @property
    def sources(self) -> list[tuple[str, str]]:
        """The columns by which files are partitioned, and the transforms."""
        of_id = {id_: name for name, id_ in self._column_names.items()}
        fields = (field for spec in self.specs for field in spec.fields)
        return [(of_id[f.source_id], f.transform) for f in fields if f.source_id in of_id]

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
        """The fields of a group: DuckLake's, or the client's where there are no keys."""
        client = self._client_specs.get(group.partition_id or 0, ())
        has_keys = bool(self._partitioning.columns.get(group.partition_id))
        order = [(field.source_id, field.transform) for field in client]
        pairs = self._key_fields(group, order) if has_keys else list(self._client_fields(client))
        if {(field.source_id, field.transform) for field, _ in pairs} == {*order}:
            pairs.sort(key=lambda pair: order.index((pair[0].source_id, pair[0].transform)))
        pairs += self._path_fields(
            group, {f.source_id for f, _ in pairs if f.transform == "identity"}
        )
        return [*self._rename_duplicates(pairs)]

    def _rename_duplicates(
        self, pairs: Iterable[tuple[PartitionField, Source]]
    ) -> Iterator[tuple[PartitionField, Source]]:
        """Give each field a name that no other field of the spec has, as Java expects."""
        names: set[str] = set()
        for field, source in pairs:
            name = f"{field.name}_{field.field_id}" if field.name in names else field.name
            names.add(name)
            yield replace(field, name=name), source

    def _client_fields(
        self, client: Iterable[PartitionField]
    ) -> Iterator[tuple[PartitionField, Source]]:
        """The fields of a spec that DuckLake does not have, as far as readers can bind them."""
        for index, field in enumerate(client):
            type_name = self._leaf_types.get(field.source_id, "")
            types = {equivalent(name) for name in self._types_of.get(field.source_id, ())}
            result = result_type(field.transform, type_name)
            # As in `_key_fields`: values of an older type cannot be read. A bucket is the same.
            is_read = types == {type_name} or field.transform.startswith("bucket")
            if result is not None and is_read:
                yield self._field(field.source_id, field.transform, result), Source((index,))

    def _key_fields(
        self, group: FileGroup, of_client: Container[tuple[int, str]]
    ) -> list[tuple[PartitionField, Source]]:
        """The fields of DuckLake's keys: for the times of each column the finest, and the coarser
        ones of the client's spec.

        Args:
            of_client: the fields of the client's spec, by source and transform.
        """
        pairs: list[tuple[PartitionField, Source]] = []
        calendar: dict[int, dict[str, int]] = {}
        epochs = self._epochs(group)
        transforms: set[tuple[int, str]] = set()
        in_path = self._partitioning.constants.get(group.mapping_id, ())
        for column in self._partitioning.columns.get(group.partition_id, ()):
            if column.column_id not in self._types or column.transform is None:
                continue  # a spec with fewer fields is still correct
            if in_path and (column.column_id not in in_path or column.transform != "identity"):
                continue  # if it is not certain, the file has no partition, nor values of its path
            if (column.column_id, column.transform) in transforms:
                continue  # Iceberg refuses a spec that has the same field twice
            transforms.add((column.column_id, column.transform))
            key = Source((column.partition_key_index,), is_in_path=bool(in_path))
            type_name = self._types[column.column_id]
            if column.transform == "identity":
                # Java reads the values in the newest type, also if it needs those of an older
                # schema, and fails: no field for a column that was promoted.
                types = {equivalent(name) for name in self._types_of[column.column_id]}
                if types == {type_name} and iceberg_type(type_name).has_identity:
                    pairs.append((self._field(column.column_id, "identity", type_name), key))
            elif match := BUCKET.fullmatch(column.transform):
                # A bucket is the same only if both hash the same bytes. The bucket of an added file
                # may be the number in the name of a directory, which may count anything.
                is_hashed = group.mapping_id is None
                if is_hashed and self._types_of[column.column_id] <= BUCKET_TYPES:
                    transform = f"bucket[{match[1]}]"
                    pairs.append((self._field(column.column_id, transform, "int"), key))
            elif column.transform in EPOCHS:
                transform = EPOCHS[column.transform]
                finest = epochs.get(column.column_id)
                if finest == transform or (finest and (column.column_id, transform) in of_client):
                    pairs.append((self._field(column.column_id, transform, "int"), key))
            elif column.transform in FINEST:
                # The time transforms before version 1.1 are parts of the calendar (month 1 to 12),
                # and Iceberg's count from 1970: a month takes the year too.
                if not self._types_of[column.column_id] <= CALENDAR_TYPES:
                    continue
                parts = calendar.setdefault(column.column_id, {})
                parts[column.transform] = column.partition_key_index
        for column_id, parts in calendar.items():
            finest = _finest(parts)
            if not finest or column_id in epochs:
                continue
            keys = tuple(parts[part] for part in FINEST[: FINEST.index(finest) + 1])
            for number, part in enumerate(FINEST[: len(keys)], 1):
                if part == finest or (column_id, part) in of_client:
                    source = Source(keys[:number], is_calendar=True)
                    pairs.append((self._field(column_id, part, "int"), source))
        return pairs

    def _path_fields(
        self, group: FileGroup, identity_ids: Container[int]
    ) -> Iterator[tuple[PartitionField, Source]]:
        """Fields of the columns whose values are in the paths of the files."""
        # The files do not have these columns: readers get the values from the partition.
        for column_id in self._partitioning.constants.get(group.mapping_id, ()):
            type_name = self._types.get(column_id, "")
            if iceberg_type(type_name).has_identity and column_id not in identity_ids:
                yield self._field(column_id, "identity", type_name), Source(is_in_path=True)

    def _epochs(self, group: FileGroup) -> dict[int, str]:
        """The finest transform of each column that counts from 1970, if Iceberg has it too."""
        # The coarser ones follow from it, and Iceberg has no hours of dates.
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
        # The specification wants the same id for the same field in all specs.
        field_id = self._field_ids.get(key)
        if field_id is None:
            field_id = self._field_ids[key] = next_field_id(self._field_ids.values())
        name = self._client_names.get(key, "")
        of_column = self._column_names.get(name)
        # Java refuses a field with the name of another column.
        if not name or of_column not in {None, column_id if transform == "identity" else None}:
            name = self._default_name(column_id, transform, field_id)
        return PartitionField(column_id, field_id, name, transform, result_type)

    def _default_name(self, column_id: int, transform: str, field_id: int) -> str:
        name = self._names.get(column_id, f"field_{column_id}")
        if transform != "identity":
            name = f"{name}_{transform.partition('[')[0]}"
            # Java refuses a partition field with the name of a column, and one column may have
            # buckets of several numbers, or texts cut at several lengths.
            if name in self._names.values() or "[" in transform:
                name = f"{name}_{field_id}"
        return name


# The specification lets the ids of partition fields begin at 1000.
FIRST_FIELD_ID = 1000


def next_field_id(field_ids: Iterable[int]) -> int:
    """The smallest id that no partition field of a table has."""
    ids = {*field_ids}
    return next(id_ for id_ in count(FIRST_FIELD_ID) if id_ not in ids)


def _finest(parts: Mapping[str, int]) -> str | None:
    """The finest part that is present with all coarser ones; None without the year."""
    finest = None
    for part in FINEST:
        if part not in parts:
            break
        finest = part
    return finest


NULL_IN_PATH = "NULL"
"""The text that DuckDB takes for NULL in a path, in any letter case; delta2ducklake claims a text
for it."""
HIVE_NULL = "__HIVE_DEFAULT_PARTITION__"
"""Hive's name of the partition of NULL, in this letter case alone; DuckDB and others write it."""


def _value(
    field: PartitionField,
    source: Source,
    texts: Mapping[int, str | None],
    constants: Mapping[int, Constant],
    in_path: Mapping[int, str],
) -> Any:
    parts = [texts[key] for key in source.keys]
    if source.is_in_path:
        id_ = field.source_id
        return _value_in_path(field.result_type, parts, constants.get(id_), in_path.get(id_))
    if any(part is None for part in parts):
        # The parts of an infinite time are NULL, too.
        if field.transform in FINEST and constants[field.source_id].value_count != 0:
            raise ValueError("not only NULL")
        return None
    if not source.is_calendar:
        return value(field.result_type, parts[0] or "")
    return check_range("int", _units_since_1970([value("int", part or "") for part in parts]))


def _value_in_path(
    type_name: str, claims: Sequence[str | None], stats: Constant | None, in_path: str | None
) -> Any:
    """The value of a column that is in the path of its file, as DuckLake reads it.

    Args:
        claims: the partition value, if there is a key.
        stats: its statistics, which have the value too.
        in_path: the text in the path.

    Raises:
        ValueError: the value is not known, or a claim contradicts the path.
    """
    texts = [*claims]
    if stats is not None and stats.value_count == 0:
        texts.append(None)
    elif stats is not None:
        bounds = [text for text in (stats.min_value, stats.max_value) if text is not None]
        # One bound is no value.
        texts += bounds if claims or len(bounds) == 2 else []
    values = {_parsed(type_name, text) for text in texts}
    if len(values) > 1 and in_path is not None:
        values &= {_parsed(type_name, in_path)}
    [certain] = values
    return certain


def _parsed(type_name: str, text: str | None) -> Any:
    return None if text is None or text.upper() == NULL_IN_PATH else value(type_name, text)


def texts_in_path(path: str, names: Mapping[int, str]) -> dict[int, str]:
    """The texts that a path of the form `…/name=text/…` has for columns, by their ids.

    Args:
        names: of the columns in the path.
    """
    pairs = [part.split("=") for part in path.split("/")[:-1]]
    texts = {
        unquote(pair[0]): NULL_IN_PATH if pair[1] == HIVE_NULL else unquote(pair[1])
        for pair in pairs
        if len(pair) == 2
    }
    return {id_: texts[name] for id_, name in names.items() if name in texts}


def _units_since_1970(parts: Sequence[int]) -> int:
    """Years, months, days or hours since 1970, depending on the number of parts."""
    # The parts that are not there are the first ones: January, the first day, midnight.
    year, month, day, hour = [*parts, 1, 1, 0][: len(parts)] + [1, 1, 0][len(parts) - 1 :]
    if not (1 <= month <= 12 and 0 <= hour < 24):
        raise ValueError(f"no month {month} or no hour {hour}")
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
        order = [SortField(*row) for text in texts for row in stored_json(text)]
    except (ValueError, TypeError):
        return []  # somebody has changed the tag by hand
    types = primitives(fields)
    return order if all(field.source_id in types for field in order) else []
