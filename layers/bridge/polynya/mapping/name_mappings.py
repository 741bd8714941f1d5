"""DuckLake's name mappings as Iceberg's: for files that were added, which have no field ids.

DuckLake has a mapping for each added file. Iceberg has one mapping for the table, and applies it
only to files without field ids. If that would read another column than DuckLake reads, the files
are refused. https://iceberg.apache.org/spec/#column-projection
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..ducklake.column_tree import MAX_DEPTH
from ..ducklake.rows.objects import MappedName
from ..iceberg.parquet.footer import Column as FileColumn
from ..runtime.errors import REMEDY
from ..types.names import ducklake_type

Path = tuple[str, ...]
"""The names from the top of a file down to a column."""


@dataclass(frozen=True, slots=True)
class Mappings:
    """Field ids by path, for each mapping."""

    paths: Mapping[int, Mapping[Path, int]]
    fault: str | None = None
    """Why the rows of the catalog are not valid mappings."""

    @property
    def of_table(self) -> dict[Path, int]:
        """All mappings in one."""
        return {path: field_id for paths in self.paths.values() for path, field_id in paths.items()}

    def conflict(self) -> str | None:
        """Why the mappings cannot be merged into one; None if they can."""
        if self.fault:
            return self.fault
        merged: dict[Path, int] = {}
        for paths in self.paths.values():
            for path, field_id in paths.items():
                if merged.setdefault(path, field_id) != field_id:
                    name = ".".join(path)
                    return f"added files have different columns under the same name {name!r}"
        return None

    def contradiction(
        self, mapping_id: int, file: Sequence[FileColumn], column_types: Mapping[int, str]
    ) -> str | None:
        """Why an Iceberg client would read other values from an added file than DuckLake does.

        Args:
            column_types: DuckLake's, by column id.
        """
        own, table = self.paths.get(mapping_id, {}), self.of_table
        has_ids = any(column.field_id is not None for column in file)
        for path, field_id, decimals in file:
            name = ".".join(path)
            if field_id is not None and field_id != own.get(path):
                return f"the field id {field_id} of {name!r} in an added file is not DuckLake's"
            if field_id is None and has_ids and path in own:
                # Java applies the mapping only to files without any id.
                return f"{name!r} in an added file has no field id, while other columns have"
            if field_id is None and path not in own and path in table:
                return f"an added file has a column {name!r} that DuckLake ignores in it"
            type_ = ducklake_type(column_types.get(own.get(path, 0), ""))
            if decimals is not None and path in own and decimals > type_.decimals:
                return f"{name!r} in an added file is finer than a {type_.name}, and rounded"
        return None

    def json(self) -> str:
        """The table property `schema.name-mapping.default`."""
        children: dict[Path, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
        table = self.of_table
        for path, field_id in table.items():
            # By ids: in other files the same field, or the one that it is in, may have another
            # name.
            parent = tuple(str(table[path[: end + 1]]) for end in range(len(path) - 1))
            names = children[parent][field_id]
            if path[-1] not in names:
                names.append(path[-1])
        return json.dumps(_fields((), children), ensure_ascii=False, separators=(",", ":"))


def mappings(names: Iterable[MappedName], lists: Collection[int]) -> Mappings:
    """Mappings from the rows of ducklake_name_mapping, without the columns that are in the path.

    Args:
        lists: the ids of the columns that are lists: their child is called `list` in the catalog,
            after the repeated group in the file, and `element` in Iceberg.
    """
    names = list(names)
    rows = {(row.mapping_id, row.column_id): row for row in names}
    if fault := _fault(names, rows):
        return Mappings({}, f"broken rows in ducklake_name_mapping: {fault}{REMEDY}")
    paths: dict[int, dict[Path, int]] = defaultdict(dict)
    for (mapping_id, _), row in rows.items():
        if row.is_partition:
            continue  # the value is in the path of the file, and the file has no such column
        path: Path = ()
        name: MappedName | None = row
        while name is not None:
            above = None if name.parent_column is None else rows[mapping_id, name.parent_column]
            is_element = above is not None and above.target_field_id in lists
            path = ("element" if is_element else name.source_name, *path)
            name = above
        paths[mapping_id][path] = row.target_field_id
    return Mappings(dict(paths))


def _fault(names: Sequence[MappedName], rows: Mapping[tuple[int, int], MappedName]) -> str | None:
    if len(rows) < len(names):
        return "a column_id is there twice"
    if any(row.source_name is None or row.target_field_id is None for row in names):
        return "a name has no text or no column"
    for row in names:
        depth, above = 0, row
        while above.parent_column is not None:
            key = (row.mapping_id, above.parent_column)
            depth += 1
            if key not in rows or depth > MAX_DEPTH:
                return "a parent_column names no row that is there, or names are inside each other"
            above = rows[key]
    return None


def _fields(parent: Path, children: Mapping[Path, Mapping[int, list[str]]]) -> list[dict[str, Any]]:
    fields = []
    for field_id, names in children.get(parent, {}).items():
        field: dict[str, Any] = {"field-id": field_id, "names": names}
        inner = _fields((*parent, str(field_id)), children)
        fields.append(field | ({"fields": inner} if inner else {}))
    return fields
