"""Spark as a client of mixed histories: statements that mean the same in DuckDB, and how they end.

No literals of difficult types: an INSERT copies rows of the table, an UPDATE sets simple values.
"""

import re
from typing import Any

from ..operations import SPARK, Operation
from ..scene import Scene
from ..tables import quoted

VALUES = {
    "TINYINT": "3",
    "SMALLINT": "3",
    "INTEGER": "3",
    "BIGINT": "3",
    "VARCHAR": "'new'",
    "BOOLEAN": "true",
    "DATE": "DATE '2024-03-01'",
}
MODES = ("merge-on-read", "copy-on-write")
MODE_OF = ("delete", "update", "merge")
QUOTED = re.compile(r"""'(?:[^']|'')*'|"((?:[^"]|"")*)\"""")


def in_spark(sql: str) -> str:
    """The statement with Spark's quotes around names."""
    return QUOTED.sub(lambda found: found[0] if found[1] is None else f"`{found[1]}`", sql)


class SparkDraws:
    """Draws what Spark does; `generator` has the parts that all clients share."""

    def __init__(self, generator: Any) -> None:
        self.generator, self.rng = generator, generator.rng

    def operation(self, scene: Scene) -> Operation:
        """One statement."""
        draws = [self._insert, self._delete, self._delete, self._update, self._merge, self._modes]
        return self.rng.choice(draws)(scene)

    def _insert(self, scene: Scene) -> Operation:
        """Copies of rows, with new keys."""
        known = self.generator.known_keys(scene, 3)
        pairs = ", ".join(f"({key}, {self.generator.key()})" for key in known) or "(0, 0)"
        names = ", ".join(quoted(n) for n in scene.columns if n not in {"k", *scene.hidden()})
        sql = (
            f"INSERT INTO {{t}} (k, {names}) SELECT CAST(v.n AS BIGINT), {names} FROM {{t}} "
            f"JOIN (VALUES {pairs}) AS v(o, n) ON k = v.o"
        )
        return Operation(SPARK, "insert", (sql,))

    def _delete(self, scene: Scene) -> Operation:
        where, _ = self.generator.where(scene)
        return Operation(SPARK, "delete", (f"DELETE FROM {{t}} WHERE {where}",))

    def _assignment(self, scene: Scene) -> tuple[str, str]:
        """For Spark, and for the twin: hidden columns are lost in rows that are written again."""
        able = [n for n in scene.columns if n not in {"k", *scene.hidden()}]
        name = self.rng.choice(able)
        value = self.rng.choice(("NULL", VALUES.get(str(scene.columns[name]), "NULL")))
        mine = f"{quoted(name)} = {value}"
        return mine, mine + "".join(f", {quoted(n)} = NULL" for n in scene.hidden())

    def _update(self, scene: Scene) -> Operation:
        where, _ = self.generator.where(scene)
        sql, twin = (f"UPDATE {{t}} SET {a} WHERE {where}" for a in self._assignment(scene))
        return Operation(SPARK, "update", (twin,), (sql,))

    def _merge(self, scene: Scene) -> Operation:
        keys = [*self.generator.known_keys(scene, 2), self.generator.key()]
        rows = ", ".join(f"(CAST({key} AS BIGINT))" for key in keys)
        names = [quoted(n) for n in scene.columns if n not in {"k", *scene.hidden()}]
        is_delete = self.rng.random() < 0.5
        sql, twin = (
            f"MERGE INTO {{t}} AS t USING (SELECT * FROM (VALUES {rows}) AS v(k)) AS s "
            f"ON t.k = s.k WHEN MATCHED THEN {'DELETE' if is_delete else f'UPDATE SET {a}'} "
            f"WHEN NOT MATCHED THEN INSERT (k, {', '.join(names)}) "
            f"VALUES (s.k, {', '.join('NULL' for _ in names)})"
            for a in self._assignment(scene)
        )
        return Operation(SPARK, "merge", (twin,), (sql,))

    def _modes(self, scene: Scene) -> Operation:
        mode = self.rng.choice(MODES)
        modes = ", ".join(f"'write.{what}.mode' = '{mode}'" for what in MODE_OF)
        return Operation(
            SPARK, "properties", sql=(f"ALTER TABLE {{t}} SET TBLPROPERTIES ({modes})",)
        )


def run(scene: Scene, operation: Operation) -> None:
    """Run the statements of an operation.

    Raises:
        RuntimeError: Spark's message; what Java raised is in it.
    """
    from polynya_local.clients import spark

    for sql in operation.statements:
        statement = in_spark(sql.replace("{t}", f"{scene.spark.catalog}.main.t"))
        try:
            spark.session().sql(statement).collect()
        except Exception as error:
            raise RuntimeError(f"{type(error).__name__}: {error}") from error
