"""Tables with what only Java writes: equality deletes, and columns with defaults."""

import random

import pytest

from tests.e2e.writes.rows.test_delta_writers import Deltas
from tests.support.writes.registered import compare, register

pytestmark = pytest.mark.spark

CREATE = "CREATE TABLE {{t}} (id INT, s STRING, p INT) USING iceberg {}"
KEYS = {
    "no partitions": ("", ["id"]),
    "in partitions that the key has": ("PARTITIONED BY (p)", ["id", "p"]),
    "in partitions that the key lacks": ("PARTITIONED BY (p)", ["id"]),
    "in buckets": ("PARTITIONED BY (bucket(3, id))", ["id", "s"]),
}
TEXTS = "a", "b", None


def delta(randomly, has_keys):
    """Random rows, and keys to delete."""
    return [
        [
            (randomly.randrange(20), randomly.choice(TEXTS), randomly.randrange(3))
            for _ in range(count)
        ]
        for count in (12, 12 if has_keys else 0)
    ]


@pytest.mark.slow(but=["key lacks]"])
@pytest.mark.parametrize("case", KEYS)
def test_equality_deletes(lake_of, java, moto, case):
    """Of several commits: each deletes rows of those before it, and none of its own.

    Keys without the columns of the partitioning delete rows of their own partition alone, also
    after the partitioning has changed.
    """
    at, name = lake_of, lake_of.new("keys")
    partitioning, key = KEYS[case]
    java.sql(name, CREATE.format(partitioning))
    randomly = random.Random(case)
    writer = Deltas(java, java.table(name), key)
    for step in range(4):
        writer.commit(*delta(randomly, step))
    java.sql(name, "DELETE FROM {t} WHERE id = 3 AND s = 'a'")
    java.sql(name, "ALTER TABLE {t} ADD PARTITION FIELD truncate(1, s)")
    Deltas(java, java.table(name), key).commit(*delta(randomly, True))
    register(at, name, java.copied(name))
    compare(at, name, java.arrow(name), moto)
    assert len(java.arrow(name)) == sum(writer.rows().values())


DEFAULTS = {
    "i": ("IntegerType", 7),
    "s": ("StringType", "it's"),
    "b": ("BooleanType", True),
    "d": ("DoubleType", 0.5),
}


def test_defaults(lake_of, java, moto):
    """Columns that are younger than most files, with defaults and without."""
    at, name = lake_of, lake_of.new("defaults")
    version = "TBLPROPERTIES ('format-version' = '3')"
    java.sql(name, CREATE.format(version), "INSERT INTO {t} VALUES (1, 'a', 1), (2, 'b', 2)")
    literal = java.iceberg.expressions.Expressions.lit
    change = java.table(name).updateSchema()
    for column, (type_, value) in DEFAULTS.items():
        of_java = getattr(java.iceberg.types.Types, type_).get()
        change = change.addColumn(f"with_{column}", of_java, literal(value))
    change.commit()
    java.sql(
        name,
        "INSERT INTO {t} VALUES (3, 'c', 3, 8, 't', false, 1.5)",
        "INSERT INTO {t} VALUES (4, 'c', 3, NULL, NULL, NULL, NULL)",
        "ALTER TABLE {t} ADD COLUMN later INT",
        "DELETE FROM {t} WHERE with_i = 7 AND id = 2",
        "ALTER TABLE {t} ADD PARTITION FIELD with_i",
        "INSERT INTO {t} VALUES (5, 'c', 3, 7, 't', true, 1.5, 1)",
    )
    register(at, name, java.copied(name))
    rows = java.arrow(name)
    assert rows.filter(rows["id"].to_numpy() == 1)["with_i"].to_pylist() == [7]
    compare(at, name, rows, moto)
    at.native(
        f"INSERT INTO main.{name} (id) VALUES (6)",
        f"UPDATE main.{name} SET s = 'x' WHERE with_i = 7",
        f"DELETE FROM main.{name} WHERE with_s = 'it''s' AND id = 6",
    )
    at.check(name)
