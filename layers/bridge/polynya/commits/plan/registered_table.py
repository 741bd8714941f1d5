"""Plans to register tables of another catalog: with their rows of now, which are not copied.

The field ids of the source become column ids, so that files are read by them as before. The table's
history is not taken over, nor is what DuckLake does not have and no row depends on
(docs/developers/decisions/0044-registered-tables.md).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ...ducklake.column_tree import ColumnNode, column_ids, greatest_id
from ...ducklake.writes.new_files import NewDataFile
from ...iceberg.avro.client_manifests import WrittenFile
from ...iceberg.manifest import PartitionField
from ...iceberg.manifest import PartitionSpec as SpecOfFiles
from ...iceberg.parquet.delete_files import MOST_POSITIONS
from ...iceberg.types import primitives, result_type
from ...mapping.name_mappings import NAME_MAPPING, NameMatcher, lists_among, property_paths
from ...mapping.properties import REGISTERED, staging_root, upload_location
from ...mapping.schemas import may_identify
from ...rest.schemas import ListType, MapType, Schema, StructField, StructType, Type, field_of
from ...rest.source_metadata import SourceMetadata
from ...rest.updates import PartitionSpec, SortOrder
from ...runtime.errors import BadRequest
from ..client_locations import NO_TABLE, FilePlaces, normalised, taken_locations
from ..request.client_files import (
    ClientDeletes,
    ClientFiles,
    Positions,
    merge_positions,
    too_much,
)
from ..request.table_commit import TableCommit
from ..request.tags import tags
from .added_files import AppendedFiles
from .changed_files import NetChange, net_change
from .equality_deletes import KEY_IN_PATH, EqualityDeletes, KeyedTable
from .files_without_ids import AddedFiles
from .new_table import Creator, columns_of_request
from .partition_and_sort_keys import is_bucket, partition_fields, sort_keys
from .row_deletes import deletes_of_added, take_added_positions
from .table_plan import NOTHING, NewTable, RowDeletes, TablePlan


def source_places(creator: Creator, directory: str = "") -> FilePlaces:
    """Where the files of a table that is registered may be.

    Args:
        directory: of the new table, with a slash at its end.
    """
    lake, virtual = creator.lake, creator.virtual_location
    data_path = lake.lake.data_path
    behind = f"{upload_location(virtual, data_path)}/"
    staging = staging_root(creator.staging_location, data_path)
    is_taken = taken_locations(lake, NO_TABLE, virtual, behind, staging)
    return FilePlaces(lake.rights.file_directories, is_taken, directory)


@dataclass(slots=True)
class _Layout:
    """What a new table takes over from a source, beside its rows."""

    source: SourceMetadata
    left_behind: list[str] = field(default_factory=list)
    """Names of what it does not take over."""

    def schema(self) -> Schema:
        """The schema of now, with columns in the order of their ids."""
        source = self.source
        schema = next((s for s in source.schemas if s.schema_id == source.current_schema_id), None)
        if schema is None:
            raise BadRequest("the metadata file lacks the schema that it names as current")
        fields = _sort_fields(schema.fields)
        if fields != schema.fields:
            self.left_behind.append("the order of columns: they are in the order of their ids")
        may_be_id = {f.id for f in fields if may_identify(field_of(f))}
        identifiers = schema.identifier_field_ids
        if not may_be_id.issuperset(identifiers):
            self.left_behind.append("the identifier fields")
            identifiers = []
        update = {"fields": fields, "identifier_field_ids": identifiers}
        return schema.model_copy(update=update)

    def spec(self, columns: Sequence[ColumnNode]) -> PartitionSpec | None:
        """The partitioning of new files."""
        source = self.source
        specs = {spec.spec_id: spec for spec in source.partition_specs}
        spec = specs.get(source.default_spec_id)
        if spec is None or all(f.transform == "void" for f in spec.fields):
            return None
        try:
            partition_fields(spec, columns)
        except BadRequest as error:
            self.left_behind.append(f"the partitioning: {error}")
            return None
        return spec

    def order(self, columns: Sequence[ColumnNode]) -> SortOrder | None:
        """The sort order of new files."""
        orders = {order.order_id: order for order in self.source.sort_orders}
        order = orders.get(self.source.default_sort_order_id)
        if order is None or not order.fields:
            return None
        try:
            sort_keys(order, columns)
        except BadRequest as error:
            self.left_behind.append(f"the sort order: {error}")
            return None
        return order

    def properties(self) -> dict[str, str]:
        """The properties that a table may have."""
        properties: dict[str, str] = {}
        refused = []
        for key, value in self.source.properties.items():
            try:
                tags({key: value})
            except BadRequest:
                refused.append(key)
            else:
                properties[key] = value
        if refused:
            self.left_behind.append(f"the properties {_listed(sorted(refused))}")
        return properties

    def note_history(self) -> None:
        """Note what is not taken over of the history, and of what is beside the rows."""
        source = self.source
        if (earlier := source.snapshots - (source.snapshot is not None)) > 0:
            self.left_behind.append(f"{earlier:,} other snapshots")
        if source.references:
            self.left_behind.append(f"the references {_listed(source.references)}")
        if source.has_statistics:
            self.left_behind.append("the statistics files")


MOST_NAMES = 20


def _listed(names: Sequence[str]) -> str:
    """Names as text for people; long names, and lists of many, are cut."""
    more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
    return ", ".join(name[:100] for name in names[:MOST_NAMES]) + more


def _sort_fields(fields: Sequence[StructField]) -> list[StructField]:
    """The fields of a struct in the order of their ids, and those within them."""
    ordered = [f.model_copy(update={"type": _sort_nested_fields(f.type)}) for f in fields]
    return sorted(ordered, key=lambda f: f.id)


def _sort_nested_fields(type_: Type) -> Type:
    match type_:
        case StructType(fields=fields):
            return type_.model_copy(update={"fields": _sort_fields(fields)})
        case ListType():
            return type_.model_copy(update={"element": _sort_nested_fields(type_.element)})
        case MapType():
            of_map = {
                "key": _sort_nested_fields(type_.key),
                "value": _sort_nested_fields(type_.value),
            }
            return type_.model_copy(update=of_map)
    return type_


LEFT_BEHIND = "polynya.left-behind"
"""The key of the snapshot's summary that says what was not taken over."""


@dataclass(frozen=True, slots=True)
class Registrar:
    """Plans the registration of tables in one schema."""

    creator: Creator

    def plan(self, name: str, commit: TableCommit) -> TablePlan:
        """The plan of a table with the rows that a source has now.

        Args:
            commit: of `source_commit`.

        Raises:
            BadRequest: DuckLake cannot have such a table, or such rows.
        """
        source, is_1_1 = commit.source, self.creator.lake.lake.is_1_1
        assert source is not None
        layout = _Layout(source)
        layout.note_history()
        schema = layout.schema()
        version = 3 if source.format_version == 3 else None
        columns = columns_of_request(schema, version, keep_ids=True, is_1_1=is_1_1)
        new = self.creator.new_table(
            name,
            schema,
            columns,
            layout.spec(columns),
            layout.order(columns),
            layout.properties(),
            commit.uuid,
            format_version=version,
        )
        new = replace(
            new,
            last_column_id=source.last_column_id,
            tags={**new.tags, REGISTERED: commit.source_location},
            left_behind="; ".join(layout.left_behind),
        )
        if commit.snapshots and any(map(is_bucket, new.partition_keys)):
            # DuckLake finds rows in filters only if each file has its bucket, as `alter_table`
            # knows too; without keys the files have those that are certain.
            new = replace(new, partition_keys=())
        summary = {REGISTERED: commit.source_location}
        if new.left_behind:
            summary[LEFT_BEHIND] = new.left_behind
        commit = replace(
            commit,
            snapshots=[
                snapshot.model_copy(update={"summary": {**snapshot.summary, **summary}})
                for snapshot in commit.snapshots
            ],
        )
        return self.creator.plan(new, commit, *self._rows(new, commit, source))

    def _rows(
        self, new: NewTable, commit: TableCommit, source: SourceMetadata
    ) -> tuple[Sequence[NewDataFile], RowDeletes]:
        """The files of a source, and the deleted rows of them."""
        if not commit.snapshots:
            return [], NOTHING
        creator, location = self.creator, self.creator.location(new.path)
        places = source_places(creator, location)
        client = ClientFiles(creator.objects, "", None, places)
        manifests = client.manifests(commit.snapshots[-1].manifest_list)
        # Manifests of format version 1 have none.
        # https://iceberg.apache.org/spec/#reading-v1-metadata-for-v2
        entries = (
            entry if entry.sequence_number is not None else replace(entry, sequence_number=0)
            for entry in client.entries(manifests)
        )
        net = net_change(entries, [])
        for file in net.added:
            places.check(file.file_path, "a data file")
        added = AppendedFiles(
            objects=creator.objects,
            data_location=f"{location}{new.table_uuid}/",
            directory=f"{new.table_uuid}/",
            columns=new.columns,
            last_column_id=max(new.last_column_id, greatest_id(new.columns)),
            default_column_ids=frozenset(
                column.column_id for column in new.columns if column.initial_default is not None
            ),
            partition_keys=new.partition_keys,
            partition_fields=new.partition_fields,
            as_they_are=AddedFiles(places, new.columns, lambda: _matcher(new.columns, source)),
            are_registered=True,
            partitions_elsewhere=creator.lake.lake.is_1_1,
        ).read(net.added)
        deletes = ClientDeletes(creator.objects, "", (), source.format_version, places=places)
        positions = _positions(net, deletes)
        if net.equality_deletes:
            keyed = _keyed_table(new, source, net.added, added)
            resolver = EqualityDeletes(
                keyed,
                creator.objects,
                creator.objects,
                deletes,
                lambda location: places.check(location, "a data file"),
                creator.equality_deletes,
            )
            positions = merge_positions([positions, resolver.positions(net, ())])
        # The others are positions in files that the table no longer has.
        return added, deletes_of_added(take_added_positions(net.added, positions))


def _matcher(columns: Sequence[ColumnNode], source: SourceMetadata) -> NameMatcher:
    """A matcher of columns in files without field ids: by the name mapping alone, as in Iceberg."""
    text = source.properties.get(NAME_MAPPING)
    try:
        paths = property_paths(text or "")
    except ValueError:
        raise BadRequest(
            f"the source has files without field ids, and its property {NAME_MAPPING} is not "
            "an Iceberg name mapping, so that clients find their columns each in its own way: set "
            "it there"
        ) from None
    ids = {*column_ids(columns)}
    mapped = {path: id_ for path, id_ in paths.items() if id_ in ids}
    return NameMatcher(mapped, frozenset(lists_among(columns)), [paths], {})


def _positions(net: NetChange, deletes: ClientDeletes) -> Positions:
    """The positions that delete files delete, of data files that are not newer than they are."""
    numbers = {normalised(file.file_path): file.sequence_number or 0 for file in net.added}
    files = net.added_deletes
    of_number: dict[int, list[tuple[WrittenFile, bytes]]] = {}
    for file, body in zip(files, deletes.bodies(files), strict=True):
        of_number.setdefault(file.sequence_number or 0, []).append((file, body))
    parts: list[Mapping[str, Sequence[int]]] = []
    count = 0
    for number, pairs in of_number.items():
        positions = deletes.positions_in(pairs)
        count += sum(map(len, positions.values()))
        if count > MOST_POSITIONS:
            raise too_much(f"{MOST_POSITIONS:,} deleted rows")
        parts.append(
            {path: rows for path, rows in positions.items() if numbers.get(path, number) <= number}
        )
    return merge_positions(parts)


def _keyed_table(
    new: NewTable,
    source: SourceMetadata,
    files: Sequence[WrittenFile],
    added: Sequence[NewDataFile],
) -> KeyedTable:
    """The source, as deletes by key need it."""
    if any(name.is_partition for file in added for name in file.names):
        raise BadRequest(KEY_IN_PATH)
    names = {
        normalised(file.file_path): {
            name.target_field_id: name.source_name
            for name in row.names
            if name.parent_column is None
        }
        for file, row in zip(files, added, strict=True)
        if row.names
    }
    schemas = sorted(source.schemas, key=lambda s: s.schema_id != source.current_schema_id)
    fields = [tuple(map(field_of, schema.fields)) for schema in schemas]
    types: dict[int, str] = {}
    for of_schema in reversed(fields):
        types |= primitives(of_schema)
    return KeyedTable(
        full_name=new.table_name,
        specs={
            spec.spec_id or 0: SpecOfFiles(spec.spec_id or 0, tuple(_fields(spec, types)))
            for spec in source.partition_specs
        },
        schemas=fields,
        candidates=lambda keys, key, most: (),
        has_specs_of_files=True,
        names_in=names.get,
    )


def _fields(spec: PartitionSpec, types: Mapping[int, str]) -> Iterable[PartitionField]:
    for f in spec.fields:
        of_values = result_type(f.transform, types.get(f.source_id, "")) or ""
        yield PartitionField(f.source_id, f.field_id or 0, f.name, f.transform, of_values)
