"""Converts Arrow arrays of Spark into arrays of the types that are written."""

import pyarrow as pa
import pyarrow.compute as pc
from polynya.ducklake.column_tree import LIST, MAP, STRUCT, ColumnNode

from ...common.errors import BadInput
from .arrow import arrow_type

UUID_BYTES = 16


def conformed(array: pa.Array, column: ColumnNode) -> pa.Array:
    """The array in the type of `column`, with field ids; no value changes.

    Raises:
        BadInput: a value does not fit the type, or is NULL in a NOT NULL column.
    """
    if not column.nulls_allowed and array.null_count:
        raise BadInput(f"a NULL in the column {column.column_name}, which is NOT NULL")
    try:
        return _conformed(array, column)
    except (pa.ArrowInvalid, ValueError) as error:
        reason = str(error).splitlines()[0]
        raise BadInput(
            f"a value does not fit into the column {column.column_name} "
            f"({column.column_type}): {reason}"
        ) from None


def nulls(column: ColumnNode, length: int) -> pa.Array:
    """An array of NULLs, for a column or field that the DataFrame lacks."""
    return _typed(arrow_type(column), pa.nulls(length, _storage(arrow_type(column))))


def _conformed(array: pa.Array, column: ColumnNode) -> pa.Array:
    type = arrow_type(column)
    if array.offset:  # the children below are used without an offset
        array = pa.concat_arrays([array, array[:0]])
    if column.column_type == STRUCT:
        fields = {array.type.field(i).name.casefold(): i for i in range(array.type.num_fields)}
        children = [
            nulls(child, len(array)) if index is None else _conformed(array.field(index), child)
            for child in column.children
            for index in [fields.get(child.column_name.casefold())]
        ]
        return pa.Array.from_buffers(type, len(array), array.buffers()[:1], children=children)
    if column.column_type == LIST:
        values = _conformed(array.values, column.children[0])
        return pa.Array.from_buffers(type, len(array), array.buffers()[:2], children=[values])
    if column.column_type == MAP:
        key, value = column.children
        arrays = [_conformed(array.keys, key), _conformed(array.items, value)]
        entries = pa.StructArray.from_arrays(arrays, fields=[type.key_field, type.item_field])
        return pa.Array.from_buffers(type, len(array), array.buffers()[:2], children=[entries])
    if column.column_type == "uuid":
        return _typed(type, uuids(array))
    return _typed(type, array.cast(_storage(type)))


def _storage(type: pa.DataType) -> pa.DataType:
    return type.storage_type if isinstance(type, pa.BaseExtensionType) else type


def _typed(type: pa.DataType, storage: pa.Array) -> pa.Array:
    if isinstance(type, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(type, storage)
    return storage


def uuids(texts: pa.Array) -> pa.Array:
    """UUIDs as 16 bytes, from texts with or without hyphens and braces."""
    digits = pc.replace_substring(texts.cast(pa.string()), "-", "")
    digits = pc.replace_substring_regex(digits, r"^\{(.*)\}$", r"\1")
    filled = pc.fill_null(digits, "0" * 2 * UUID_BYTES)
    wrong = pc.invert(pc.match_substring_regex(filled, r"^[0-9a-fA-F]{32}$"))
    if pc.any(wrong).as_py():
        raise ValueError(f"{texts.filter(wrong)[0].as_py()!r} is not a UUID")
    data = pa.py_buffer(bytes.fromhex("".join(filled.to_pylist())))
    validity = pc.is_valid(texts)
    mask = validity.buffers()[1] if texts.null_count else None
    return pa.Array.from_buffers(pa.binary(UUID_BYTES), len(texts), [mask, data])
