import time

import pytest
from polynya.ducklake.rows.listing import looked_up
from polynya.ducklake.rows.objects import (
    MOST_CHARACTERS,
    changes_of,
    changes_rows_of_others,
    quoted,
    tables_with_other_rows,
)
from polynya.runtime.errors import Refused
from polynya_local.clients.duckdb import LAKE, connect, identifier, literal
from polynya_local.reports.changes import ALTERED

# Texts that DuckDB 1.3 to 1.5 wrote; the names are the worst that DuckLake allows.
NASTY_SCHEMA = 'created_schema:"a""b,inserted_into_table:1"'
NASTY_TABLE = 'created_table:"a""b,inserted_into_table:1"."t"",deleted_from_table:2,"""'
SEVERAL = (
    'dropped_table:3,created_schema:"s2",created_table:"s2"."x.y: z",created_view:"main"."v,1"'
)


@pytest.mark.parametrize(
    ("changes_made", "table_id", "changes"),
    [
        ("", 1, set()),
        ('created_table:"main"."t"', 1, set()),
        ("inserted_into_table:1", 1, {"inserted_into_table"}),
        ("inserted_into_table:1", 11, set()),
        ("inserted_into_table:11", 1, set()),
        ("inserted_into_table:2,inserted_into_table:1", 1, {"inserted_into_table"}),
        ("inserted_into_table:5,deleted_from_table:3", 3, {"deleted_from_table"}),
        ("deleted_from_table:1,inlined_delete:1", 1, {"deleted_from_table", "inlined_delete"}),
        ("compacted_table:6", 6, {"compacted_table"}),
        ("merge_adjacent:6,inline_flush:7", 7, {"inline_flush"}),
        ("something_new:1", 1, {"something_new"}),
        (NASTY_SCHEMA, 1, set()),
        (NASTY_TABLE, 1, set()),
        (NASTY_TABLE, 2, set()),
        (f"{NASTY_TABLE},altered_table:2", 2, {"altered_table"}),
        (f"altered_table:2,{NASTY_TABLE}", 2, {"altered_table"}),
        (SEVERAL, 3, {"dropped_table"}),
        (SEVERAL, 1, set()),
        ('created_table:"main"."",created_schema:"ü:1,"', 1, set()),
        ('created_table:"1"."1"', 1, set()),
    ],
)
def test_a_change_is_found_by_its_id_and_not_by_a_name_that_contains_one(
    changes_made, table_id, changes
):
    assert changes_of(changes_made, table_id) == changes


LONG = "9" * 5000


@pytest.mark.parametrize("digits", [LONG, "9" * 20])
def test_a_number_that_python_or_postgresql_refuses_is_no_id(digits):
    assert tables_with_other_rows(f"inlined_insert:1,inlined_insert:{digits}") is None
    assert looked_up([f"altered_table:1,altered_table:{digits}"]) == ([1], [])
    assert [*map(int, ALTERED.findall(f"altered_table:1,altered_table:{digits}"))] == [1]


# Texts that no writer makes: a beginning, a repeated part, an end.
BROKEN = {
    "quotes": ("created_table:", '"', ""),
    "quotes that do not end": ('created_table:"a', '",b:"', ""),
    "letters": ("", "a", ""),
    "colons": ("", "a:", ""),
    "commas": ("", ",", ""),
    "a long name": ('created_table:"m"."', 'a""b', '"'),
}


@pytest.mark.parametrize(("before", "repeated", "after"), BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("characters", [48, 49, 500_000, 500_001])
def test_parsing_a_broken_text_takes_time_in_proportion_to_its_length(
    before, repeated, after, characters
):
    text = f"inserted_into_table:2,{before}{repeated * (characters // len(repeated))}{after}"
    start = time.process_time()
    assert changes_of(text, 2) == {"inserted_into_table"}
    assert time.process_time() - start < 1


def test_text_after_an_unclosed_quote_is_no_change():
    assert changes_of('created_table:"a,inserted_into_table:2', 2) == set()


def test_the_length_of_the_text_is_limited():
    change = "inserted_into_table:2,"
    number = MOST_CHARACTERS // len(change)
    assert changes_of(change * number, 2) == {"inserted_into_table"}
    with pytest.raises(Refused, match="expire"):
        changes_of(change * (number + 1), 2)


CHANGES = "SELECT changes_made FROM __ducklake_metadata_lake.ducklake_snapshot_changes"
NAMES = ["t", "my schema", 'a"b', '"', '""', "a.b", "a,inserted_into_table:1", "ü🦆", "x:1"]


def test_quoted_names_are_those_of_native_ducklake(tmp_path):
    with connect(LAKE[:1]) as con:
        con.execute(f"ATTACH {literal(f'ducklake:{tmp_path}/catalog')} AS lake")
        for name in NAMES:
            con.execute(f"CREATE SCHEMA lake.{identifier(name)}")
            con.execute(f"CREATE TABLE lake.{identifier(name)}.{identifier(name[::-1])}(i INT)")
        rows = con.execute(CHANGES).fetchall()
    written = [text for (text,) in rows if text.startswith("created_table:")]
    assert written == [f"created_table:{quoted(name, name[::-1])}" for name in NAMES]


@pytest.mark.parametrize(
    ("changes_made", "expected"),
    [
        ("inserted_into_table:2", True),
        ("inserted_into_table:2,deleted_from_table:3,inlined_delete:3", True),
        ("merge_adjacent:2,inline_flush:11,rewrite_delete:10", True),
        ("inserted_into_table:1", False),
        ("inserted_into_table:2,inlined_insert:1", False),
        ("inserted_into_table:2,altered_table:2", False),
        ("dropped_table:2", False),
        ('created_table:"main"."inserted_into_table:2"', False),
        (NASTY_TABLE, False),
        ("something_new:2", False),
        ("", False),
        ("inserted_into_table:2," * 60_000, False),
    ],
)
def test_only_changes_of_rows_of_other_tables_are_certain_not_to_change_a_table(
    changes_made, expected
):
    assert changes_rows_of_others(changes_made, 1) == expected
