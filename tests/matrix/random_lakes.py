"""Random lakes of what clients misread without a new footer: `python -m tests.matrix.random_lakes`.

Columns and fields of structs are added with a default, renamed, promoted and dropped, files are
added, also with a column in their path, rows are deleted, and files merged. DuckDB executes the
statements, and is the judge: a statement that it refuses is left out.
"""

from collections.abc import Iterable, Iterator
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import count
from random import Random

from duckdb import Error
from polynya_local.clients.duckdb import LAKE, connect, identifier
from polynya_local.clients.native import Lake, filled_in
from polynya_local.processes.postgres import Database

ATTACH = (
    "ATTACH 'ducklake:{{CATALOG}}' AS lake (DATA_PATH '{{DATA_PATH}}', DATA_INLINING_ROW_LIMIT %d)"
)
INLINING = (0, 0, 5)
VALUES = {
    "INTEGER": ("i % 7", "-i"),
    "BIGINT": ("5000000000 + i % 5",),
    "SMALLINT": ("i % 4",),
    "UTINYINT": ("i % 5", "250 + i % 6"),
    "USMALLINT": ("i % 5", "65530 + i % 6"),
    "UINTEGER": ("i % 9", "2147483645 + i % 6"),
    "VARCHAR": ("'v' || i % 4", "'Ü ' || i"),
    "FLOAT": ("i / 8.0",),
    "DOUBLE": ("i / 4.0",),
    "DECIMAL(9, 2)": ("(i % 5 + 0.25)",),
    "DATE": ("DATE '2024-02-27' + (i % 5)::INTEGER",),
    "TIMESTAMP": ("TIMESTAMP '2024-02-29 01:02:03.456789' + INTERVAL (i % 3) DAY",),
    "TIMESTAMP_MS": ("TIMESTAMP_MS '2024-02-29 01:02:03.456' + INTERVAL (i % 3) DAY",),
    "TIME": ("TIME '01:02:03.000004' + INTERVAL (i % 3) MINUTE",),
    "BOOLEAN": ("i % 2 = 0",),
    "VARIANT": ("i % 3",),
}
"""By type: expressions of the number of a row."""
DEFAULTS = {
    "INTEGER": ("7", "-1"),
    "BIGINT": ("5000000001",),
    "SMALLINT": ("3",),
    "UTINYINT": ("250",),
    "UINTEGER": ("8", "4294967295"),
    "VARCHAR": ("'DE'", "''"),
    "FLOAT": ("0.5",),
    "DOUBLE": ("0.25",),
    "DECIMAL(9, 2)": ("1.25",),
    "DATE": ("'2024-02-29'",),
    "TIMESTAMP": ("'2024-02-29 01:02:03'",),
    "TIMESTAMP_MS": ("'2024-02-29 01:02:03.456'",),
}
PROMOTIONS = {
    "SMALLINT": "INTEGER",
    "INTEGER": "BIGINT",
    "UTINYINT": "USMALLINT",
    "FLOAT": "DOUBLE",
}
IN_PATHS = ("INTEGER", "BIGINT", "VARCHAR", "DATE")
FIELD_TYPES = ("INTEGER", "VARCHAR", "DATE", "DECIMAL(9, 2)", "SMALLINT")


@dataclass
class Struct:
    """A column, or a field, with fields."""

    fields: dict[str, "str | Struct"] = field(default_factory=dict)

    def __str__(self) -> str:
        inner = ", ".join(f"{identifier(name)} {type_}" for name, type_ in self.fields.items())
        return f"STRUCT({inner})"


class RandomTable:
    """One table, and the statements that change it."""

    def __init__(self, random: Random, name: str) -> None:
        self._random, self._name = random, name
        self.columns: dict[str, str | Struct] = {"i": "INTEGER"}
        self._names = map("c{}".format, count(1))
        self._next, self._files = 0, 0
        self.partition: str | None = None

    def creation(self) -> Iterator[str]:
        for _ in range(self._random.randint(1, 3)):
            self.columns[next(self._names)] = self._random.choice([*VALUES])
        self.columns["s"] = Struct({"a": "INTEGER", "n": Struct({"x": "VARCHAR"})})
        inner = ", ".join(f"{identifier(name)} {type_}" for name, type_ in self.columns.items())
        yield f"CREATE TABLE {self._name}({inner})"
        yield from self.insertion()

    def changes(self) -> Iterator[str]:
        """The statements of one random change."""
        able = [
            *[self.insertion] * 2,
            *[self.new_column] * 3,
            *[self.new_field] * 2,
            *[self.deletion] * 2,
            *[self.added_files] * 2,
            self.renaming,
            self.renaming_of_a_field,
            self.dropping,
            self.promotion,
            self.partitioning,
            self.update,
            self.maintenance,
        ]
        yield from self._random.choice(able)()

    def insertion(self) -> Iterator[str]:
        yield f"INSERT INTO {self._name} SELECT {self._values()} {self._rows()}"

    def new_column(self) -> Iterator[str]:
        name, type_ = next(self._names), self._random.choice([*DEFAULTS])
        self.columns[name] = type_
        yield f"ALTER TABLE {self._name} ADD COLUMN {name} {type_}{self._default(type_)}"

    def new_field(self) -> Iterator[str]:
        for path, struct in self._structs():
            if self._random.random() < 0.5:
                name, type_ = next(self._names), self._random.choice(FIELD_TYPES)
                struct.fields[name] = type_
                default = self._default(type_)
                yield f"ALTER TABLE {self._name} ADD COLUMN {path}.{name} {type_}{default}"

    def renaming(self) -> Iterator[str]:
        yield from self._renamed(self.columns, "", [*self.columns][1:])

    def renaming_of_a_field(self) -> Iterator[str]:
        path, struct = self._random.choice([*self._structs()])
        yield from self._renamed(struct.fields, f"{path}.", [*struct.fields])

    def _renamed(self, columns: dict, above: str, names: list[str]) -> Iterator[str]:
        old, new = self._random.choice(names), next(self._names)
        if old in {"s", "n", self.partition}:
            return
        items = [(new if name == old else name, type_) for name, type_ in columns.items()]
        columns.clear()
        columns.update(items)
        yield f"ALTER TABLE {self._name} RENAME COLUMN {above}{old} TO {new}"

    def promotion(self) -> Iterator[str]:
        able = [name for name, type_ in self.columns.items() if type_ in [*PROMOTIONS]]
        name = self._random.choice([n for n in able if n not in {"i", self.partition}] or [None])
        if name:
            self.columns[name] = PROMOTIONS[self.columns[name]]
            yield f"ALTER TABLE {self._name} ALTER COLUMN {name} SET DATA TYPE {self.columns[name]}"

    def dropping(self) -> Iterator[str]:
        path, columns = self._random.choice(
            [("", self.columns), *((f"{p}.", s.fields) for p, s in self._structs())]
        )
        able = [name for name in columns if name not in {"i", "s", "n", self.partition}]
        if len(able) > 1:
            name = self._random.choice(able)
            del columns[name]
            yield f"ALTER TABLE {self._name} DROP COLUMN {path}{name}"

    def deletion(self) -> Iterator[str]:
        modulo = self._random.choice((2, 3, 5, 7))
        rest = self._random.randrange(modulo)
        yield f"DELETE FROM {self._name} WHERE i % {modulo} = {rest}"

    def update(self) -> Iterator[str]:
        scalars = [n for n, t in self.columns.items() if n != "i" and isinstance(t, str)]
        if scalars:
            name = self._random.choice(scalars)
            value = self._value(self.columns[name])
            yield f"UPDATE {self._name} SET {name} = {value} WHERE i % 4 = 1"

    def partitioning(self) -> Iterator[str]:
        able = [name for name, type_ in self.columns.items() if type_ in IN_PATHS]
        self.partition = self._random.choice([None, *able])
        words = (
            f"SET PARTITIONED BY ({self.partition})" if self.partition else "RESET PARTITIONED BY"
        )
        yield f"ALTER TABLE {self._name} {words}"

    def added_files(self) -> Iterator[str]:
        """Files that lack some columns, with other order and other letter case."""
        self._files += 1
        # DuckLake takes no variant from an added file.
        able = [name for name, type_ in self.columns.items() if type_ != "VARIANT"]
        kept = [name for name in able if name == "i" or self._random.random() < 0.8]
        able = [name for name in kept if name != "i" and self.columns[name] in IN_PATHS]
        in_path = self._random.choice(able) if able and self._random.random() < 0.7 else None
        self._random.shuffle(kept)
        values = ", ".join(
            f"{self._value(self.columns[name], name)} AS "
            f"{name.upper() if self._random.random() < 0.2 and name != in_path else name}"
            for name in kept
        )
        place = f"{{{{DATA_PATH}}}}_ext/{self._name}/{self._files}"
        options = f"FORMAT parquet, PARTITION_BY ({in_path})" if in_path else "FORMAT parquet"
        files = f"{place}/**/*.parquet" if in_path else f"{place}.parquet"
        target = place if in_path else files
        yield f"COPY (SELECT {values} {self._rows()}) TO '{target}' ({options})"
        yield (
            f"CALL ducklake_add_data_files('lake', '{self._name}', '{files}', "
            f"allow_missing => true, hive_partitioning => {str(bool(in_path)).lower()})"
        )

    def maintenance(self) -> Iterator[str]:
        yield self._random.choice(
            (
                f"CALL ducklake_merge_adjacent_files('lake', '{self._name}')",
                f"CALL ducklake_flush_inlined_data('lake', table_name => '{self._name}')",
                f"CALL ducklake_rewrite_data_files('lake', '{self._name}', delete_threshold => 0)",
            )
        )

    def _structs(self) -> Iterator[tuple[str, Struct]]:
        outer = self.columns["s"]
        assert isinstance(outer, Struct)
        inner = outer.fields["n"]
        assert isinstance(inner, Struct)
        yield from (("s", outer), ("s.n", inner))

    def _rows(self) -> str:
        first = self._next
        self._next += self._random.choice((1, 4, 30, 60))
        return f"FROM range({first}, {self._next}) r(i)"

    def _default(self, type_: str) -> str:
        if self._random.random() < 0.25:
            return ""
        return f" DEFAULT {self._random.choice(DEFAULTS[type_])}"

    def _values(self) -> str:
        return ", ".join(self._value(type_, name) for name, type_ in self.columns.items())

    def _value(self, type_: "str | Struct", name: str = "") -> str:
        if name == "i":
            return "i::INTEGER"
        modulo = self._random.choice((3, 4, 10))
        if isinstance(type_, Struct):
            inner = ", ".join(
                f"{identifier(n)} := {self._value(t)}" for n, t in type_.fields.items()
            )
            value = f"struct_pack({inner})"
        else:
            value = f"({self._random.choice(VALUES[type_])})::{type_}"
        return f"CASE WHEN i % {modulo} <> 1 THEN {value} END"


def write_random_lake(
    seed: int, name: str, database: Database, data_path: str, s3_endpoint: str, changes: int = 24
) -> tuple[Lake, list[str]]:
    """Write a lake of two tables; returns it with its statements, refused ones as comments."""
    random, script = Random(seed), []
    with connect(LAKE, s3_endpoint) as con:

        def run(statements: Iterable[str]) -> bool:
            for statement in statements:
                try:
                    con.execute(filled_in(statement, f"postgres:{database.libpq}", data_path))
                except Error as error:
                    refusal = " ".join(str(error).split())
                    script.append(f"-- {statement}: {refusal[:200]}")
                    return False
                script.append(f"{statement};")
            return True

        run([ATTACH % random.choice(INLINING), "USE lake"])
        tables = [RandomTable(random, f"t{n}") for n in range(2)]
        for table in tables:
            run(table.creation())
        for _ in range(changes):
            table = random.choice(tables)
            before = deepcopy(table.columns), table.partition
            if not run(table.changes()):
                table.columns, table.partition = before
    return Lake(name, database, data_path), script
