"""Draws the next operation of a mixed history from a seed and from what the twin has."""

import os
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import duckdb
from duckdb.sqltypes import DuckDBPyType

from tests.support.catalog_versions import VERSIONS

from .clients.spark import SparkDraws
from .operations import DUCKDB, NATIVE, PYICEBERG, SPARK, Operation, Step
from .scene import MEMORY, Scene
from .tables import NAMES, TYPES, beginning, inlinable, of_clients, partitionings, quoted
from .values import literal

PROMOTIONS = {"TINYINT": "SMALLINT", "SMALLINT": "INTEGER", "INTEGER": "BIGINT"}
ICEBERG = {
    "INTEGER": ":int",
    "BIGINT": ":long",
    "FLOAT": ":float",
    "DOUBLE": ":double",
    "VARCHAR": ":string",
    "BLOB": ":binary",
    "BOOLEAN": ":boolean",
    "DATE": ":date",
    "TIMESTAMP": ":timestamp",
    "TIMESTAMPTZ": ":timestamptz",
    "UUID": ":uuid",
    "DECIMAL(9,2)": ":decimal(9,2)",
}
FIELD_NAMES = ("x", "y", "z", "w")
FILTERED = ("INTEGER", "BIGINT", "SMALLINT", "TINYINT", "VARCHAR")
PROPERTIES = ("note", "write.parquet.compression-codec", "owner of it")
COMPACTIONS = (
    "CALL ducklake_flush_inlined_data('lake')",
    "CALL ducklake_merge_adjacent_files('lake')",
    "CALL ducklake_rewrite_data_files('lake', delete_threshold => 0)",
    "CALL ducklake_rewrite_data_files('lake')",
)

ADDS_FILES = bool(os.environ.get("POLYNYA_MIXED_ADDED"))
"""Whether PyIceberg adds files of other programs too."""

Where = tuple[str, str]
"""A filter in SQL and for PyIceberg."""


class Generator:
    """Draws operations; the same seed and the same lake give the same ones."""

    def __init__(self, seed: int, clients: tuple[str, ...] = (PYICEBERG, DUCKDB)) -> None:
        self.rng = Random(seed)
        self.clients = clients
        self.beginning = beginning(self.rng, VERSIONS[(seed + 1) % 2])
        self._keys = 0
        # After a promotion of a column that it is partitioned by, DuckLake's filters are INTERNAL
        # errors: SetMin or SetMax called with Value that does not match.
        self._is_partitioned = any(one.kind == "partition" for one in self.beginning.operations)

    def operations(self, scene: Scene, number: int) -> Iterator[Operation]:
        """The operations of a history, each drawn after the one before was done."""
        yield from self.beginning.operations
        yield self.insertion(scene, small=True)
        for _ in range(number):
            yield self._next(scene)

    def _next(self, scene: Scene) -> Operation:
        draws = [(self.native, 12), (self.by_pyiceberg, 9)]
        if DUCKDB in self.clients:
            draws.append((self.by_duckdb, 3))
        if SPARK in self.clients:
            draws.append((SparkDraws(self).operation, 12))
        return self._one_of(draws)(scene)

    def _one_of(self, weighted: list[tuple[Any, int]]) -> Any:
        choices, weights = zip(*weighted, strict=True)
        return self.rng.choices(choices, weights)[0]

    # Native writers

    def native(self, scene: Scene) -> Operation:
        """What native DuckLake does."""
        draws: list[tuple[Callable[[Scene], Operation], int]] = [
            (self.insertion, 5),
            (self.deletion, 3),
            (self.update, 3),
            (self.merge, 2),
            (self.transaction, 2),
            (self.evolution, 4),
            (self.maintenance, 7),
            (self.layout, 1),
        ]
        return self._one_of(draws)(scene)

    def _writer(self) -> str:
        return self.rng.choice((*NATIVE, NATIVE[0]))

    def insertion(self, scene: Scene, small: bool = False) -> Operation:
        """INSERT of few rows, which are inlined, or of more."""
        number = self.rng.choice((1, 2, 3) if small else (1, 2, 3, 5, 12, 15))
        columns = self._some_columns(scene)
        sql = self._insert(columns, self._rows(columns, number, nan=True))
        return Operation(self._writer(), "insert", (sql,))

    def deletion(self, scene: Scene) -> Operation:
        """DELETE."""
        where, _ = self.where(scene)
        return Operation(self._writer(), "delete", (f"DELETE FROM {{t}} WHERE {where}",))

    def update(self, scene: Scene) -> Operation:
        """UPDATE of one column."""
        return Operation(self._writer(), "update", (self._update(scene, nan=True),))

    def _update(self, scene: Scene, nan: bool) -> str:
        columns = {n: t for n, t in scene.columns.items() if n != "k"}
        name = self.rng.choice(list(columns))
        value = literal(columns[name], self.rng, nan=nan)
        where, _ = self.where(scene)
        return f"UPDATE {{t}} SET {quoted(name)} = {value} WHERE {where}"

    def merge(self, scene: Scene) -> Operation:
        """MERGE INTO by key."""
        columns = {n: t for n, t in scene.columns.items() if n != "k"}
        name = self.rng.choice(list(columns))
        value = literal(columns[name], self.rng)
        keys = [*self.known_keys(scene, 2), self.key()]
        matched = self.rng.choice(("DELETE", f"UPDATE SET {quoted(name)} = {value}"))
        names = ", ".join(map(quoted, columns))
        nulls = ", ".join("NULL" for _ in columns)
        sql = (
            f"MERGE INTO {{t}} AS t USING (SELECT unnest([{', '.join(map(str, keys))}]) AS k) AS s "
            f"ON t.k = s.k WHEN MATCHED THEN {matched} "
            f"WHEN NOT MATCHED THEN INSERT (k, {names}) VALUES (s.k, {nulls})"
        )
        return Operation(self._writer(), "merge", (sql,))

    def transaction(self, scene: Scene) -> Operation:
        """Several statements in one transaction."""
        some = [
            self._one_of([(self.insertion, 2), (self.deletion, 1), (self.update, 1)])(scene)
            for _ in range(self.rng.randrange(2, 4))
        ]
        inner = [sql for one in some for sql in one.twin]
        return Operation(self._writer(), "transaction", ("BEGIN", *inner, "COMMIT"))

    def maintenance(self, scene: Scene) -> Operation:
        """Flush, merge, rewrite, or expire."""
        past = [n for n in scene.snapshots()[:-1] if n > 1]
        if past and self.rng.random() < 0.15:
            gone = sorted(self.rng.sample(past, self.rng.randrange(1, 1 + len(past))))
            sql = [f"CALL ducklake_expire_snapshots('lake', versions => {gone})"]
            if self.rng.random() < 0.7:
                sql.append("CALL ducklake_cleanup_old_files('lake', cleanup_all => true)")
            return Operation(NATIVE[0], "expire", sql=tuple(sql))
        return Operation(NATIVE[0], "maintain", sql=(self.rng.choice(COMPACTIONS),))

    def layout(self, scene: Scene) -> Operation:
        """SET PARTITIONED BY, or RESET."""
        able = partitionings({name: str(kind) for name, kind in scene.columns.items()})
        if not able or self.rng.random() < 0.3:
            sql = "ALTER TABLE {t} RESET PARTITIONED BY"
        else:
            sql = f"ALTER TABLE {{t}} SET PARTITIONED BY ({self.rng.choice(able)[0]})"
            self._is_partitioned = True
        return Operation(NATIVE[0], "partition", sql=(sql,))

    def evolution(self, scene: Scene) -> Operation:
        """ALTER TABLE: one change of the columns."""
        draws: list[tuple[Callable[[Scene], str], int]] = [
            (self._add, 6),
            (self._drop, 3),
            (self._rename, 3),
            (self._promote, 1),  # after it DuckLake's own filters are often INTERNAL errors
            (self._field, 3),
        ]
        sql = self._one_of(draws)(scene)
        return Operation(self._writer(), "alter", (f"ALTER TABLE {{t}} {sql}",))

    def _add(self, scene: Scene) -> str:
        free = self._free(scene)
        if not free:
            return self._drop(scene)
        kind = inlinable(self.rng.choice(TYPES), self.beginning.inlining)
        words = f"ADD COLUMN {quoted(self.rng.choice(free))} {kind}"
        if self.rng.random() < 0.4 and "(" not in kind and "[" not in kind:
            words += f" DEFAULT {literal(duckdb.sqltype(kind), self.rng)}"
        return words

    def _drop(self, scene: Scene) -> str:
        others = [name for name in scene.columns if name != "k"]
        if len(others) < 2:
            return self._rename(scene)
        return f"DROP COLUMN {quoted(self.rng.choice(others))}"

    def _rename(self, scene: Scene) -> str:
        others = [name for name in scene.columns if name != "k"]
        new = self.rng.choice(self._free(scene) or ["another"])
        return f"RENAME COLUMN {quoted(self.rng.choice(others))} TO {quoted(new)}"

    def _promote(self, scene: Scene) -> str:
        able = [(n, PROMOTIONS[str(t)]) for n, t in scene.columns.items() if str(t) in PROMOTIONS]
        if not able or self._is_partitioned:
            return self._add(scene)
        name, kind = self.rng.choice(able)
        return f"ALTER COLUMN {quoted(name)} TYPE {kind}"

    def _field(self, scene: Scene) -> str:
        """A change within a struct."""
        structs = [(n, t) for n, t in scene.columns.items() if t.id == "struct"]
        if not structs:
            return self._add(scene)
        name, kind = self.rng.choice(structs)
        fields = [field for field, _ in kind.children]
        free = [field for field in FIELD_NAMES if field not in fields]
        old = f"{quoted(name)}.{self.rng.choice(fields)}"
        able = [f"DROP COLUMN {old}"] if len(fields) > 1 else []
        if free:
            new = self.rng.choice(free)
            able += [f"ADD COLUMN {quoted(name)}.{new} INTEGER", f"RENAME COLUMN {old} TO {new}"]
        return self.rng.choice(able)

    # Iceberg clients

    def by_pyiceberg(self, scene: Scene) -> Operation:
        """What PyIceberg does, perhaps with a table that is not current any more."""
        draws = [
            (self._append, 5),
            (self._add_file, 2 if ADDS_FILES else 0),
            (self._delete, 5),
            (self._overwrite, 3),
            (self._upsert, 2),
            (self._dynamic, 1),
            (self._schema, 3),
            (self._several, 3),
            (self._property, 1),
            (self._spec, 1),
        ]
        kind, steps, twin = self._one_of(draws)(scene)
        between = self._between(scene) if kind != "schema" else ()
        return Operation(PYICEBERG, kind, tuple(twin), steps=tuple(steps), between=between)

    def _between(self, scene: Scene) -> tuple[Operation, ...]:
        if self.rng.random() < 0.65:
            return ()
        draws = [
            (self.maintenance, 5),
            (self.insertion, 1),
            (self.deletion, 1),
            (self.update, 1),
        ]
        return tuple(self._one_of(draws)(scene) for _ in range(self.rng.randrange(1, 3)))

    def _append(self, scene: Scene) -> tuple[str, list[Step], list[str]]:
        rows, insert = self._client_rows(scene, self.rng.choice((1, 2, 5, 20)))
        return "append", [("append", rows)], [insert]

    def _add_file(self, scene: Scene) -> tuple[str, list[Step], list[str]]:
        rows, insert = self._client_rows(scene, self.rng.choice((1, 2, 5, 20)))
        return "add file", [("add file", rows)], [insert]

    def _delete(self, scene: Scene) -> tuple[str, list[Step], list[str]]:
        sql, words = self.where(scene)
        return "delete", [("delete", words)], [f"DELETE FROM {{t}} WHERE {sql}"]

    def _overwrite(self, scene: Scene) -> tuple[str, list[Step], list[str]]:
        sql, words = self.where(scene)
        rows, insert = self._client_rows(scene, self.rng.choice((1, 3)))
        steps: list[Step] = [("overwrite", rows, words)]
        return "overwrite", steps, [f"DELETE FROM {{t}} WHERE {sql}", insert]

    def _upsert(self, scene: Scene) -> tuple[str, list[Step], list[str]]:
        keys = [*self.known_keys(scene, 3), self.key()]
        rows, insert = self._client_rows(scene, len(keys), keys)
        gone = f"DELETE FROM {{t}} WHERE k IN ({', '.join(map(str, keys))})"
        return "upsert", [("upsert", rows)], [gone, insert]

    def _dynamic(self, scene: Scene) -> tuple[str, list[Step], list[str]]:
        rows, insert = self._client_rows(scene, 3)
        spec = scene.table()
        names = [spec.schema().find_field(f.source_id).name for f in spec.spec().fields]
        if not names:
            return self._overwrite(scene)
        same = " AND ".join(f"n.{quoted(n)} IS NOT DISTINCT FROM o.{quoted(n)}" for n in names)
        gone = f"DELETE FROM {{t}} AS o WHERE EXISTS (SELECT 1 FROM ({rows}) AS n WHERE {same})"
        return "dynamic", [("dynamic", rows)], [gone, insert]

    def _schema(self, scene: Scene) -> tuple[str, list[Step], list[str]]:
        """A change of the columns: what PyIceberg can do of what DuckLake can."""
        others = [name for name in scene.columns if name not in {"k", *scene.hidden()}]
        free = self._free(scene)
        able: list[tuple[Step, str]] = []
        if free:
            new, kind = self.rng.choice(free), self.rng.choice(list(ICEBERG))
            add = f"ADD COLUMN {quoted(new)} {kind}"
            able = [(("add", new, ICEBERG[kind]), add)] * 2
        if others and free:
            old, new = self.rng.choice(others), self.rng.choice(free)
            able.append((("rename", old, new), f"RENAME COLUMN {quoted(old)} TO {quoted(new)}"))
        if len(others) > 1:
            old = self.rng.choice(others)
            able.append((("drop", old), f"DROP COLUMN {quoted(old)}"))
        for name, kind in scene.columns.items():
            if str(kind) == "INTEGER" and name in others and not self._is_partitioned:
                sql = f"ALTER COLUMN {quoted(name)} TYPE BIGINT"
                able.append((("promote", name, ":long"), sql))
            if kind.id == "struct" and name in others:
                new = next((f for f in FIELD_NAMES if f not in dict(kind.children)), "v")
                sql = f"ADD COLUMN {quoted(name)}.{new} VARCHAR"
                able.append((("add", f"{name}\0{new}", ":string"), sql))
        step, sql = self.rng.choice(able)
        return "schema", [step], [f"ALTER TABLE {{t}} {sql}"]

    def _several(self, scene: Scene) -> tuple[str, list[Step], list[str]]:
        """A transaction with several snapshots."""
        steps, twin = [], []
        for _ in range(self.rng.randrange(2, 4)):
            draw = self.rng.choice((self._append, self._append, self._delete, self._overwrite))
            _, more, sql = draw(scene)
            steps += more
            twin += sql
        return "transaction", steps, twin

    def _property(self, scene: Scene) -> tuple[str, list[Step], list[str]]:
        key = self.rng.choice(PROPERTIES)
        value = "zstd" if "codec" in key else str(self.rng.randrange(9))
        return "properties", [("set", key, value)], []

    def _spec(self, scene: Scene) -> tuple[str, list[Step], list[str]]:
        columns = {name: str(kind) for name, kind in scene.columns.items()}
        able = partitionings(columns)
        keys = self.rng.choice(able)[1] if able and self.rng.random() < 0.7 else ()
        if self.rng.random() < 0.5:
            keys = of_clients(self.rng, columns)
        self._is_partitioned = self._is_partitioned or bool(keys)
        return "partition", [("partition", *keys)], []

    def by_duckdb(self, scene: Scene) -> Operation:
        """What DuckDB does through its Iceberg extension."""
        hidden = scene.hidden()
        draws: list[tuple[Callable[[Scene], tuple[str, str]], int]] = [
            (self._sql_insert, 2),
            (self._sql_delete, 3),
            (self._sql_update, 3),
        ]
        done = [self._one_of(draws)(scene) for _ in range(self.rng.choice((1, 1, 2)))]
        if any(f"SET {quoted(name)}" in sql for name in hidden for _, sql in done):
            return self.by_pyiceberg(scene)
        twin, sql = zip(*done, strict=True)
        kind = "transaction" if len(sql) > 1 else sql[0].split()[0].lower()
        return Operation(DUCKDB, kind, twin, sql, between=self._between(scene))

    def _sql_insert(self, scene: Scene) -> tuple[str, str]:
        hidden = scene.hidden()
        columns = {name: kind for name, kind in scene.columns.items() if name not in hidden}
        rows = self._rows(columns, self.rng.choice((1, 3)))
        return self._insert(columns, rows, hidden), self._insert(columns, rows)

    def _sql_delete(self, scene: Scene) -> tuple[str, str]:
        sql = f"DELETE FROM {{t}} WHERE {self.where(scene)[0]}"
        return sql, sql

    def _sql_update(self, scene: Scene) -> tuple[str, str]:
        """The client writes the rows again, without the values that it does not see."""
        sql = self._update(scene, nan=False)
        nulls = "".join(f", {quoted(name)} = NULL" for name in scene.hidden())
        head, _, where = sql.rpartition(" WHERE ")
        return f"{head}{nulls} WHERE {where}", sql

    # Parts

    def key(self) -> int:
        """A key that no row has had."""
        self._keys += 1
        return self._keys

    def known_keys(self, scene: Scene, most: int) -> list[int]:
        """Some keys of rows."""
        keys = scene.values(f"SELECT k FROM {MEMORY} WHERE k IS NOT NULL ORDER BY k")
        return self.rng.sample(keys, min(len(keys), self.rng.randrange(1, most + 1)))

    def _free(self, scene: Scene) -> list[str]:
        taken = {name.lower() for name in scene.columns}
        return [name for name in NAMES if name.lower() not in taken]

    def _some_columns(self, scene: Scene) -> dict[str, DuckDBPyType]:
        return {
            name: kind
            for name, kind in scene.columns.items()
            if name == "k" or self.rng.random() < 0.85
        }

    def _client_rows(
        self, scene: Scene, number: int, keys: list[int] | None = None
    ) -> tuple[str, str]:
        """Rows that a client writes: the query, and the INSERT; hidden columns are NULL."""
        hidden = scene.hidden()
        columns = {name: kind for name, kind in scene.columns.items() if name not in hidden}
        rows = self._rows(columns, number, keys)
        return self._query(columns, rows), self._insert(columns, rows, hidden)

    def _rows(
        self,
        columns: dict[str, DuckDBPyType],
        number: int,
        keys: list[int] | None = None,
        *,
        nan: bool = False,
    ) -> list[str]:
        """Rows in parentheses; some are equal but for their keys."""
        others = [kind for name, kind in columns.items() if name != "k"]
        patterns = [
            [literal(kind, self.rng, nan=nan) for kind in others]
            for _ in range(min(number, self.rng.randrange(1, 5)))
        ]
        keys = keys or [self.key() for _ in range(number)]
        return [
            f"({', '.join([f'{key}::BIGINT', *patterns[n % len(patterns)]])})"
            for n, key in enumerate(keys)
        ]

    def _insert(
        self, columns: dict[str, DuckDBPyType], rows: list[str], hidden: tuple[str, ...] = ()
    ) -> str:
        names = ", ".join(map(quoted, [*columns, *hidden]))
        nulls = "".join(", NULL" for _ in hidden)
        values = ", ".join(f"({row[1:-1]}{nulls})" for row in rows)
        return f"INSERT INTO {{t}} ({names}) VALUES {values}"

    def _query(self, columns: dict[str, DuckDBPyType], rows: list[str]) -> str:
        names = ", ".join(map(quoted, columns))
        return f"SELECT * FROM (VALUES {', '.join(rows)}) AS v({names})"

    def where(self, scene: Scene) -> Where:
        """A filter by keys or by another column."""
        names = [n for n in scene.columns if n not in {"k", *scene.hidden()} and "'" not in n]
        if names and self.rng.random() < 0.4:
            return self._where_column(scene, self.rng.choice(names))
        keys = sorted(scene.values(f"SELECT k FROM {MEMORY} WHERE k IS NOT NULL"))
        able: list[Where] = [("k >= 0", "k >= 0")]
        if keys:
            some = ", ".join(map(str, self.rng.sample(keys, min(len(keys), 3))))
            middle, last = self.rng.choice(keys), keys[-1]
            able += [(f"k IN ({some})", f"k in ({some})")] * 5
            able += [(f"k < {middle}", f"k < {middle}"), (f"k >= {last}", f"k >= {last}")]
        return self.rng.choice(able)

    def _where_column(self, scene: Scene, name: str) -> Where:
        word = quoted(name)
        if str(scene.columns[name]) in FILTERED and self.rng.random() < 0.7:
            values = scene.values(f"SELECT DISTINCT {word} FROM {MEMORY} ORDER BY 1")
            value = self.rng.choice(values or [None])
            if value is not None and "'" not in str(value):
                text = f"'{value}'" if isinstance(value, str) else str(value)
                return f"{word} = {text}", f"{word} = {text}"
        return f"{word} IS NULL", f"{word} is null"
