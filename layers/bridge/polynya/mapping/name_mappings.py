"""DuckLake's name mappings as Iceberg's: for files that were added, which have no field ids.

DuckLake has a mapping for each added file. Iceberg has one mapping for the table, and applies it
only to files without field ids. If that would read another column than DuckLake reads, the files
are refused. https://iceberg.apache.org/spec/#column-projection

`NameMatcher` makes the mapping of a file that a client adds.
"""

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ..ducklake.column_tree import MAX_DEPTH, ColumnNode
from ..ducklake.rows.objects import Column, MappedName, NewName
from ..iceberg.parquet.footer import Column as FileColumn
from ..runtime.errors import REMEDY
from ..types.names import ducklake_type

NAME_MAPPING = "schema.name-mapping.default"
"""The table property that has Iceberg's mapping."""

Path = tuple[str, ...]
"""The names from the top of a file down to a column."""


@dataclass(frozen=True)
class Mappings:
    """Field ids by path, for each mapping."""

    paths: Mapping[int, Mapping[Path, int]]
    fault: str | None = None
    """Why the rows of the catalog are not valid mappings."""
    unnamed: Mapping[Path, int] = field(default_factory=dict)
    """Fields of nested columns that the mappings do not name, by their names in the catalog: some
    writers name the top level alone, and PyIceberg needs all levels."""

    @cached_property
    def table_paths(self) -> dict[Path, int]:
        """All mappings in one."""
        return {path: field_id for paths in self.paths.values() for path, field_id in paths.items()}

    @cached_property
    def ambiguous(self) -> frozenset[Path]:
        """The paths that mean different columns in different files."""
        merged = self.table_paths
        return frozenset(
            path
            for paths in self.paths.values()
            for path, field_id in paths.items()
            if merged[path] != field_id
        )

    def contradiction(
        self,
        mapping_id: int,
        file: Sequence[FileColumn],
        column_types: Mapping[int, str],
        hidden: Collection[int] = (),
    ) -> str | None:
        """Why an Iceberg client would read other values from an added file than DuckLake does.

        Args:
            column_types: DuckLake's, by column id.
            hidden: columns that are hidden because their values are finer.
        """
        own, table = self.paths.get(mapping_id, {}), self.table_paths
        has_ids = any(column.field_id is not None for column in file)
        # Field ids tell the columns apart. PyIceberg takes all names if one column has no id.
        has_all_ids = all(column.field_id is not None for column in file)
        for path in () if has_all_ids else self.ambiguous.intersection(c.path for c in file):
            name = ".".join(path)
            return f"added files have different columns under the same name {name!r}"
        for path, field_id, decimals in file:
            name = ".".join(path)
            if field_id is not None and field_id != own.get(path):
                return f"the field id {field_id} of {name!r} in an added file is not DuckLake's"
            if field_id is None and has_ids and path in own:
                # Java applies the mapping only to files without any id.
                return f"{name!r} in an added file has no field id, while other columns have"
            if field_id is None and path not in own and path in table:
                return f"an added file has a column {name!r} that DuckLake ignores in it"
            type_ = ducklake_type(column_types.get(own.get(path, 0)) or "")
            is_shown = own.get(path) not in {None, *hidden}
            if decimals is not None and is_shown and decimals > type_.decimals:
                return f"{name!r} in an added file is finer than a {type_.name}, and rounded"
        return None

    def json(self) -> str:
        """The table property `schema.name-mapping.default`."""
        children: dict[Path, dict[int, list[str]]] = defaultdict(lambda: defaultdict(list))
        table = {**self.unnamed, **self.table_paths}
        for path, field_id in table.items():
            # By ids, because in other files the same field, or the one that it is in, may have
            # another name.
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


def column_ids(names: Iterable[MappedName]) -> set[frozenset[int]]:
    """The ids of the columns that the files of a mapping have, or their paths, for all mappings;
    once for all that have the same."""
    ids: dict[int, set[int]] = defaultdict(set)
    for name in names:
        ids[name.mapping_id].add(name.target_field_id)
    return {frozenset(of_mapping) for of_mapping in ids.values()}


def unnamed_fields(paths: Mapping[Path, int], columns: Iterable[Column]) -> dict[Path, int]:
    """The fields of mapped columns of which no mapping names a field, by their paths.

    Args:
        paths: of all mappings.
        columns: every version of every column; a field may have several names.
    """
    fields: dict[int | None, list[tuple[str, int]]] = defaultdict(list)
    for column in columns:
        fields[column.parent_column].append((column.column_name, column.column_id))
    named = {path[:-1] for path in paths}
    unnamed: dict[Path, int] = {}
    coming = [(path, id_) for path, id_ in paths.items() if path not in named]
    while coming:
        path, column_id = coming.pop()
        if len(path) > MAX_DEPTH:
            continue
        of_column = {(*path, name): id_ for name, id_ in fields.get(column_id, ())}
        unnamed |= of_column
        coming += of_column.items()
    return unnamed


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


def property_paths(text: str) -> dict[Path, int]:
    """Field ids by path, from the text of the table property.

    Raises:
        ValueError: it is no name mapping.
    """
    try:
        return dict(_paths_of_fields(json.loads(text), ()))
    except (KeyError, TypeError, AttributeError, RecursionError):
        raise ValueError("not a name mapping") from None


MOST_PATHS = 100_000
"""A field may have several names, and so may those that it is in."""


def _paths_of_fields(fields: Any, above: Path) -> Iterator[tuple[Path, int]]:
    paths: list[tuple[Path, int]] = []
    if not isinstance(fields, list):
        raise TypeError(fields)
    for mapped in fields:
        for name in mapped["names"]:
            path = (*above, str(name))
            if "field-id" in mapped:
                paths.append((path, int(mapped["field-id"])))
            paths += _paths_of_fields(mapped.get("fields") or [], path)
            if len(paths) > MOST_PATHS or len(path) > MAX_DEPTH:
                raise ValueError("a name mapping of too many names")
    yield from paths


def column_paths(columns: Iterable[ColumnNode], above: Path = ()) -> Iterator[tuple[Path, int]]:
    """The paths of all columns by their names now, with their ids."""
    for column in columns:
        path = (*above, column.column_name)
        yield path, column.column_id
        yield from column_paths(column.children, path)


Signature = frozenset[tuple[str, int, int | None, bool]]
"""The content of a mapping: name, column, the column that it is in, whether the value is in the
path."""


def signature(names: Iterable[MappedName | NewName]) -> Signature:
    """A value that is equal for all mappings that find the same columns."""
    targets = {name.column_id: name.target_field_id for name in names}
    return frozenset(
        (
            name.source_name,
            name.target_field_id,
            None if name.parent_column is None else targets.get(name.parent_column, -1),
            bool(name.is_partition),
        )
        for name in names
    )


class Unmatched(ValueError):
    """The columns of a file cannot be matched by their names; the message says which and why."""


@dataclass(frozen=True, slots=True)
class NameMatcher:
    """Finds the columns of files without field ids: by the mappings of the table, and by name.

    All that know a name must agree: DuckLake has the mapping for the file, Iceberg's clients merge
    those of all files.
    """

    ids: Mapping[Path, int]
    """The columns that the table has now, by path."""
    lists: Collection[int]
    """The ids of the columns that are lists."""
    mapped: Sequence[Mapping[Path, int]]
    """The paths of Iceberg's mapping, and those of the mappings of files that were added before."""
    existing: Mapping[Signature, int]
    """The ids of the mappings that the table has."""

    def field_id(self, path: Path) -> int:
        """The id of the column with this path in a file.

        Raises:
            Unmatched: no column of the table has it, or not certainly one.
        """
        ids = {ids[path] for ids in (*self.mapped, self.ids) if path in ids}
        name = ".".join(path)
        if len(ids) > 1:
            raise Unmatched(
                f"the name {name} is that of one column now, and of another one in the table's "
                "name mapping or in files that were added before: rename one of them"
            )
        if not ids & {*self.ids.values()}:
            raise Unmatched(
                f"the table has no column {name}, and its name mapping ({NAME_MAPPING}) has none "
                "for this name: add the column first, or write the file without it"
            )
        return ids.pop()

    def names(self, leaves: Iterable[Path], in_path: Mapping[str, int]) -> tuple[NewName, ...]:
        """The mapping of a file, as ducklake_add_data_files writes it.

        Args:
            leaves: the paths of its leaves.
            in_path: the columns whose values are in the path of the file, by their names there.

        Raises:
            Unmatched: as `field_id`.
        """
        rows: dict[Path, NewName] = {}
        for leaf in leaves:
            for end in range(1, len(leaf) + 1):
                path, above = leaf[:end], rows.get(leaf[: end - 1])
                if path in rows:
                    continue
                # DuckLake calls the child of a list after the repeated group in the file.
                is_element = above is not None and above.target_field_id in self.lists
                name = "list" if is_element else path[-1]
                parent = None if above is None else above.column_id
                rows[path] = NewName(len(rows), name, self.field_id(path), parent)
        first = len(rows)
        constants = (
            NewName(number, name, column_id, None, True)
            for number, (name, column_id) in enumerate(in_path.items(), first)
        )
        return (*rows.values(), *constants)


def name_matcher(
    columns: Iterable[ColumnNode], names: Iterable[MappedName], text: str | None
) -> NameMatcher:
    """The matcher of a table.

    Args:
        names: the rows of its mappings.
        text: the table property, if a client has set it.

    Raises:
        ValueError: the text is no name mapping.
    """
    columns = list(columns)
    of_mapping: dict[int, list[MappedName]] = defaultdict(list)
    for name in names:
        of_mapping[name.mapping_id].append(name)
    lists = frozenset(lists_among(columns))
    of_files = mappings((name for rows in of_mapping.values() for name in rows), lists).table_paths
    of_client = property_paths(text) if text is not None else {}
    existing = {signature(rows): mapping_id for mapping_id, rows in of_mapping.items()}
    return NameMatcher(dict(column_paths(columns)), lists, [of_files, of_client], existing)


def lists_among(columns: Iterable[ColumnNode]) -> Iterator[int]:
    """The ids of the columns that are lists, at any level."""
    for column in columns:
        if column.column_type == "list":
            yield column.column_id
        yield from lists_among(column.children)
