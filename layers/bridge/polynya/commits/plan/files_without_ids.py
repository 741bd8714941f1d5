"""Files that a commit adds as they are: without field ids, as programs other than Iceberg's write
them.

Their columns are found by name, as ducklake_add_data_files finds them. They may be below the
table's own directory, or where the policy permits, but not where another table has its files.
"""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple
from urllib.parse import unquote

from ...ducklake.column_tree import ColumnNode
from ...ducklake.rows.objects import NewName
from ...ducklake.writes.new_files import FileColumnStats
from ...ducklake.writes.stats import TEXT_BYTES
from ...iceberg.avro.client_manifests import WrittenFile
from ...iceberg.parquet.metadata import Leaf, ParquetMetadata
from ...mapping.name_mappings import NameMatcher, Unmatched, signature
from ...mapping.partitions import HIVE_NULL, NULL_IN_PATH
from ...types.names import ducklake_type, equivalent, value
from ..client_locations import FilePlaces, normalised
from .parquet_columns import refused


class MatchedFile(NamedTuple):
    """A file without field ids, as if it had them."""

    footer: ParquetMetadata
    names: tuple[NewName, ...]
    mapping_id: int | None
    """A mapping of the table that has these names; None: there is none."""
    in_path: tuple[tuple[ColumnNode, str | None], ...]
    """The columns whose values are in the path of the file, with the values."""

    def stats_in_path(self) -> tuple[FileColumnStats, ...]:
        """The statistics of these columns, as DuckLake writes them."""
        rows = self.footer.num_rows
        return tuple(
            FileColumnStats(column.column_id, 0, 0, rows, None, None, None)
            if text is None
            else FileColumnStats(column.column_id, 0, rows, 0, *_bounds(text, rows))
            for column, text in self.in_path
        )


def _bounds(text: str, rows: int) -> tuple[str | None, str | None, None, bool | None, bool | None]:
    """The bounds of a column with one value, and whether they are exact."""
    return (text, text, None, True, True) if rows else (None, None, None, None, None)


@dataclass(frozen=True, slots=True)
class AddedFiles:
    """What a commit to one table may add as it is."""

    places: FilePlaces
    columns: Sequence[ColumnNode]
    """Those that the table has after the commit."""
    matcher: Callable[[], NameMatcher]
    _matched: dict[tuple[Leaf, ...], tuple[Leaf, ...]] = field(default_factory=dict)
    """Most files of a commit have the same columns."""

    def matched(self, file: WrittenFile, footer: ParquetMetadata) -> MatchedFile:
        """A file with the field ids that its columns have by their names.

        Raises:
            BadRequest: they are not certainly columns of the table, or a value in the path of the
                file is not the one that the commit gives to its rows.
        """
        leaves = self._leaves(file, footer.leaves)
        in_path = self._path_columns(file, {leaf.ids[0] for leaf in leaves})
        by_name = {name: column.column_id for name, column, _ in in_path}
        names = self.matcher().names((leaf.path for leaf in footer.leaves), by_name)
        return MatchedFile(
            replace(footer, leaves=leaves),
            names,
            self.matcher().existing.get(signature(names)),
            tuple((column, text) for _, column, text in in_path),
        )

    def _leaves(self, file: WrittenFile, leaves: tuple[Leaf, ...]) -> tuple[Leaf, ...]:
        if leaves not in self._matched:
            self._matched[leaves] = tuple(self._leaf(file, leaf) for leaf in leaves)
        return self._matched[leaves]

    def _leaf(self, file: WrittenFile, leaf: Leaf) -> Leaf:
        paths = [leaf.path[:end] for end in range(1, len(leaf.path) + 1)]
        try:
            return leaf._replace(ids=tuple(map(self.matcher().field_id, paths)))
        except Unmatched as reason:
            raise refused(file.file_path, str(reason)) from None

    def _path_columns(
        self, file: WrittenFile, column_ids: Collection[int | None]
    ) -> list[tuple[str, ColumnNode, str | None]]:
        """The columns that the file lacks and whose values are in its path, with their names there
        and with DuckLake's texts of the values."""
        directories = normalised(file.file_path).split("/")[3:-1]
        pairs = [part.partition("=") for part in directories if "=" in part]
        columns = {column.column_name: column for column in self.columns}
        of_client = {id_: value for id_, kind, value in file.partition if kind == "identity"}
        in_path: list[tuple[str, ColumnNode, str | None]] = []
        for name, _, text in pairs:
            column = columns.get(unquote(name))
            if column is None or column.column_id in column_ids:
                continue
            if any(column == earlier for _, earlier, _ in in_path):
                raise refused(file.file_path, f"its path has two values of {column.column_name}")
            if column.column_id not in of_client:
                raise refused(
                    file.file_path,
                    f"its path has a value of {column.column_name}, which the file lacks, and the "
                    f"commit does not say that it is the value of the rows: partition the table by "
                    f"{column.column_name}, and add the file with a client that reads such paths "
                    "(Spark)",
                )
            in_path.append((name, column, _text_in_path(file, column, text, of_client)))
        return in_path


IN_PATHS = {
    **dict.fromkeys(("int8", "int16", "int32", "int64"), re.compile("0|-?[1-9][0-9]{0,18}")),
    "date": re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}"),
    "varchar": re.compile("[^\0]+", re.DOTALL),
}
"""How values are spelled in paths, for the types whose texts mean the same value to every
reader."""


def _text_in_path(
    file: WrittenFile, column: ColumnNode, text: str, of_client: Mapping[int, object]
) -> str | None:
    """DuckLake's text of a value in a path, which must be the one that the client says.

    Raises:
        BadRequest: it is another one, or it is not certain.
    """
    name, claimed = column.column_name, of_client[column.column_id]
    if text == HIVE_NULL and claimed is None:
        if not column.nulls_allowed:
            raise refused(file.file_path, f"{name} is NOT NULL, and its path has NULL for it")
        return None
    pattern = IN_PATHS.get(column.column_type)
    if pattern is None:
        raise refused(
            file.file_path,
            f"{name} is {column.column_type}, whose text in a path readers may interpret "
            "differently: insert the rows instead",
        )
    try:
        text = unquote(text, errors="strict")
        value_in_path = value(equivalent(column.column_type) or "", text)
    except ValueError:
        value_in_path = None
    # DuckDB takes the text NULL for no value.
    is_plain = pattern.fullmatch(text) and text.upper() not in {NULL_IN_PATH, HIVE_NULL}
    if (
        len(text.encode()) >= TEXT_BYTES
        or not is_plain
        or value_in_path is None
        or value_in_path != claimed
    ):
        raise refused(
            file.file_path,
            f"its path has another value of {name} than the commit gives to its rows, or one that "
            "readers may interpret differently; PyIceberg reads no values from paths: use Spark, "
            "or insert the rows",
        )
    type_ = ducklake_type(column.column_type)
    if type_.limit and not -type_.limit <= int(text) < type_.limit:
        raise refused(file.file_path, f"its path has a value that {name} cannot hold")
    return text
