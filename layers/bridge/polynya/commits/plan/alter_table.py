"""What a commit changes in a table that exists, beside its rows: schema, partitioning, order, tags.

Each part is compared with what the table has, so that what stays is not written.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ...ducklake.column_tree import ColumnNode, leaves
from ...ducklake.rows.lifetimes import postgres_name
from ...ducklake.rows.objects import IDENTIFIER_FIELDS, PartitionColumn
from ...iceberg.manifest import PartitionField
from ...iceberg.types import TableSchema
from ...mapping import properties
from ...mapping.name_mappings import NAME_MAPPING
from ...mapping.partitions import client_specs
from ...mapping.schemas import may_identify
from ...mapping.tables import client_properties
from ...rest.schemas import Schema
from ...rest.updates import PartitionSpec, SortOrder
from ...runtime.errors import BadRequest
from ...types.names import ducklake_type, equivalent
from ..request import tags as request_tags
from ..request.table_commit import TableCommit
from ..request.tags import requested_version
from .alter_columns import schema_change
from .columns import check_version, has_default, identifiers_text
from .current_table import TableState
from .partition_and_sort_keys import (
    is_bucket,
    keep_former_order,
    order_tag,
    partition_fields,
    partition_keys,
    renamed_keys,
    sort_keys,
)
from .table_plan import Alteration, Keys, SchemaChange

Tags = dict[str, str | None]


def alteration(state: TableState, commit: TableCommit) -> tuple[Alteration, Tags]:
    """The alteration of a table by a commit, and its tags that change.

    Raises:
        BadRequest: DuckLake cannot represent it.
    """
    schema = _schema(state, commit)
    columns = state.columns if schema is None else schema.columns
    keys, fields = _partitioning(state, commit, columns)
    tags = changed_tags(state, commit)
    order = _sort_keys(state, commit, columns, tags)
    _check_dropped(
        state,
        columns,
        state.partition_keys if keys is None else keys,
        state.partition_fields if fields is None else fields,
    )
    tags |= _format_version(state, commit, schema)
    tags |= _identifiers(state, commit, schema)
    tags |= _required(state, schema)
    former_specs = client_specs(state.files.history.tags)
    return Alteration(schema, keys, fields, former_specs, order), tags


def _format_version(state: TableState, commit: TableCommit, schema: SchemaChange | None) -> Tags:
    """The tag with the format version that a client asks for, or that new columns or defaults need.

    Raises:
        BadRequest: the table has a later version already.
    """
    shown = state.document.format_version
    requested = requested_version(commit.properties, commit.format_version)
    if requested is not None and requested < shown > 2:
        raise BadRequest(f"the table has format version {shown}, and keeps it")
    added = schema.added if schema else ()
    version = max(requested or 2, shown)
    for new in added:
        above = new.path.removesuffix(new.column.column_name)
        check_version([new.column], version, above, is_1_1=state.lake.lake.is_1_1)
    defaults = {column.column_id: column.default_value for column in state.columns}
    changed = schema.changed if schema else ()
    with_default = [c for c in changed if c.default_value not in {None, defaults.get(c.column_id)}]
    with_default += [n.column for n in added if has_default(n.column)]
    check_version(with_default, version, is_1_1=state.lake.lake.is_1_1)
    new_leaves = leaves(new.column for new in added)
    is_needed = any(ducklake_type(leaf.column_type).needs_version_3 for leaf in new_leaves)
    is_needed |= bool(with_default)
    requested = 3 if is_needed else requested
    if requested is None:
        return {}
    text = None if requested == 2 else str(requested)
    before = properties.stored_version(state.files.history.tags)
    return {properties.FORMAT_VERSION: text} if text != before else {}


def _required(state: TableState, schema: SchemaChange | None) -> Tags:
    """The tag that lists new NOT NULL columns, which are possible only if all rows end."""
    if not (added := _added_not_null(schema)):
        return {}
    ids = sorted(added | properties.required_columns(state.files.history.tags))
    return {properties.REQUIRED_COLUMNS: ",".join(map(str, ids))}


def _added_not_null(schema: SchemaChange | None) -> set[int]:
    return {
        new.column.column_id
        for new in (schema.added if schema else ())
        if new.parent_column is None and not new.column.nulls_allowed
    }


def _identifiers(state: TableState, commit: TableCommit, schema: SchemaChange | None) -> Tags:
    """The tag of the identifier fields, if a commit changes them."""
    requested, shown = _requested_schema(state, commit), _shown_schema(state)
    if requested is None or set(requested.identifier_field_ids) == set(shown.identifiers):
        return {}
    usable = {field.field_id for field in shown.fields if may_identify(field)}
    if state.files.history.partitioning.first_added_file is None:
        usable |= _added_not_null(schema)
    if unusable := set(requested.identifier_field_ids) - usable:
        raise BadRequest(
            f"the field {min(unusable)} cannot become an identifier field: it must have been NOT "
            "NULL since the table was created, and no file may have been added to the table"
        )
    text = identifiers_text(requested.identifier_field_ids)
    stored = {tag.key for tag in state.files.history.tags}
    return {IDENTIFIER_FIELDS: text} if text or IDENTIFIER_FIELDS in stored else {}


def _requested_schema(state: TableState, commit: TableCommit) -> Schema | None:
    """The schema that a commit makes current; None if that stays."""
    current = state.json["current-schema-id"]
    if commit.current_schema in {None, current} and current not in commit.schemas:
        if commit.schemas:
            raise BadRequest("a schema that is added must become the current one")
        return None
    published = {s["schema-id"]: s for s in state.json["schemas"]}
    schema: Schema = _chosen(commit.schemas, published, commit.current_schema, Schema, "schema")
    return schema


def _shown_schema(state: TableState) -> TableSchema:
    current = state.document.current_schema_id
    return next(s for s in state.document.schemas if s.schema_id == current)


def _schema(state: TableState, commit: TableCommit) -> SchemaChange | None:
    schema = _requested_schema(state, commit)
    if schema is None:
        return None
    change = schema_change(
        state.columns,
        _shown_schema(state).fields,
        state.document.docs,
        schema,
        state.document.last_column_id,
        ends_all=commit.removes_main or not any(totals.files for totals in state.totals.values()),
        is_1_1=state.lake.lake.is_1_1,
    )
    if change.is_empty:
        return None
    _check_inlined(state, change, ends_all=commit.removes_main)
    return change


def _chosen(
    added: Mapping[int, Any],
    published: Mapping[int, Any],
    id_: int | None,
    kind: Any,
    what: str,
) -> Any:
    """The schema or spec that a commit makes current: one that it adds, or an older one."""
    if id_ is not None and id_ in added:
        return added[id_]
    if id_ is None or id_ not in published:
        raise BadRequest(f"the {what} that the commit makes current is not known")
    return kind.model_validate(published[id_])


def _check_inlined(state: TableState, change: SchemaChange, *, ends_all: bool) -> None:
    """Refuse what DuckLake's tables of inlined rows cannot have."""
    if not state.files.history.inlined.tables or not change.is_reshaped:
        return
    if change.widened_floats and state.totals["inlined"].files and not ends_all:
        raise BadRequest(
            "the table has inlined rows, and DuckLake loses some of them in filters when a float "
            "becomes double: CALL ducklake_flush_inlined_data first, in DuckDB"
        )
    names = [postgres_name(column.column_name) for column in change.columns]
    for name in names:
        if names.count(name) > 1:
            raise BadRequest(
                f"DuckLake cannot inline rows of a table with two columns {name}: use another name "
                "(the first 63 bytes count)"
            )


def _partitioning(
    state: TableState, commit: TableCommit, columns: tuple[ColumnNode, ...]
) -> tuple[tuple[PartitionColumn, ...] | None, tuple[PartitionField, ...] | None]:
    """DuckLake's keys of the new partitioning, and the client's fields; each None if it stays."""
    document = state.json
    spec_id = commit.default_spec
    if spec_id is None or (spec_id == document["default-spec-id"] and spec_id not in commit.specs):
        if commit.specs:
            raise BadRequest("a partition spec that is added must become the default")
        return None, None
    published = {s["spec-id"]: s for s in document["partition-specs"]}
    spec = _chosen(commit.specs, published, spec_id, PartitionSpec, "partition spec")
    current = PartitionSpec.model_validate(published[document["default-spec-id"]])
    if _fields(spec) == _fields(current):
        return None, None
    ids = {
        (field.source_id, field.transform): field.field_id
        for published_spec in state.document.specs
        for field in published_spec.fields
    }
    fields = partition_fields(spec, columns, ids)
    _check_promoted(state, [f for f in fields if (f.source_id, f.transform) not in ids])
    if [field[:2] for field in _fields(spec)] == [field[:2] for field in _fields(current)]:
        return None, fields  # other names
    keys = _keys(state, commit, spec, columns)
    # Without keys it is always a new partitioning: the tag has the client's fields under its id.
    return (None if keys and keys == state.partition_keys else keys), fields


def _check_promoted(state: TableState, fields: Iterable[PartitionField]) -> None:
    """Raise BadRequest if no client would see one of these new fields (`mapping/partitions.py`)."""
    types = state.files.history.partitioning.column_types
    for field in fields:
        names = {equivalent(name) for name in types.get(field.source_id, ())}
        if len(names) > 1 and not field.transform.startswith("bucket"):
            raise BadRequest(
                f"the table cannot be partitioned by {field.transform} of the column of "
                f"{field.name}, whose type was changed: clients cannot read partition values of "
                "its older type; a bucket of it works, or a new column"
            )


def _keys(
    state: TableState, commit: TableCommit, spec: PartitionSpec, columns: tuple[ColumnNode, ...]
) -> tuple[PartitionColumn, ...]:
    """DuckLake's keys of a spec; empty: it has none."""
    types = state.files.history.partitioning.column_types
    before, has_epochs = state.partition_keys, state.lake.lake.is_1_1
    new = partition_keys(spec, columns, types, before, has_epochs=has_epochs)
    keys = keep_former_order(new or (), before)
    # DuckDB 1.5.5 looks for the rows of a value in files with this bucket alone, whatever
    # partitioning a file has: a filter would lose all rows of older files.
    has_new_buckets = any(is_bucket(key) and key not in before for key in keys)
    has_files = state.totals["data"].files and not commit.removes_main
    return () if has_new_buckets and has_files else keys


def _fields(spec: PartitionSpec) -> list[tuple[int, str, str]]:
    return [(field.source_id, field.transform, field.name) for field in spec.fields]


def _sort_keys(
    state: TableState, commit: TableCommit, columns: tuple[ColumnNode, ...], tags: Tags
) -> Keys | None:
    """The new sort order, also in `tags` if DuckLake has no expression for it; None if it stays."""
    current = state.files.history.sort_keys
    order_id = commit.default_sort_order
    default = state.json["default-sort-order-id"]
    if order_id is None or (order_id == default and order_id not in commit.sort_orders):
        if commit.sort_orders:
            raise BadRequest("a sort order that is added must become the default")
        return renamed_keys(current, state.columns, columns) if current else None
    published = {o["order-id"]: o for o in state.json["sort-orders"]}
    order = _chosen(commit.sort_orders, published, order_id, SortOrder, "sort order")
    keys = sort_keys(order, columns)
    tagged = any(tag.key == properties.SORT_ORDER for tag in state.files.history.tags)
    if keys is None:
        tags[properties.SORT_ORDER] = order_tag(order)
    elif tagged:
        tags[properties.SORT_ORDER] = None
    before = tuple((key.expression, key.sort_direction, key.null_order) for key in current)
    return None if (keys or ()) == before else keys or ()


def changed_tags(state: TableState, commit: TableCommit) -> Tags:
    """The tags that a commit changes: properties and the comment.

    Raises:
        BadRequest: a property cannot be set or removed.
    """
    history = state.files.history
    is_served = state.files.table.context.is_served
    theirs = client_properties(history.tags, is_served)
    # Clients rename columns in the name mapping too. What is shown is that of the files.
    theirs.add(NAME_MAPPING)
    own = {key: value for key, value in state.document.properties.items() if key not in theirs}
    before = {tag.key: tag.value for tag in history.tags}
    changed = request_tags.tags(commit.properties, commit.removed_properties, own, is_served)
    return {key: value for key, value in changed.items() if before.get(key) != value}


def _check_dropped(
    state: TableState,
    columns: tuple[ColumnNode, ...],
    keys: tuple[PartitionColumn, ...],
    fields: tuple[PartitionField, ...],
) -> None:
    """Refuse to drop a column by which the table is partitioned.

    `renamed_keys` does the same for sort orders.
    """
    remaining = {leaf.column_id for leaf in leaves(columns)}
    source_ids = {key.column_id for key in keys} | {field.source_id for field in fields}
    for leaf in leaves(state.columns):
        if leaf.column_id in source_ids - remaining:
            raise BadRequest(
                f"the table is partitioned by {leaf.column_name}: change the partitioning first"
            )
