"""How PostgreSQL reads the texts of bounds: a value, or NULL; never an error."""

import random

import pytest
from polynya.ducklake.queries.file_columns import READ

CASES = {  # texts that are read, and texts that are not
    "integer": (["0", "-1", "12345678901234567890123456789012345678"],
                ["", "-", ".", "-.", "1-2", "--1", "1.2.3", "1e5", " 1", "+1", "NaN", "9" * 90]),
    "decimal": (["0.10", "-0.5", "-12"], ["", "1,5", "infinity", "-.-"]),
    "float": (["1.5", "-1e-05", "3e+10"], ["nan", "inf", "1e99", "1e400", "", "e5"]),
    "double": (["1.5", "-1e-200", "3e+100"], ["nan", "-inf", "1e999", "", "1e"]),
    "boolean": (["0", "1", "true", "false"], ["", "2", "True"]),
    "date": (["2024-01-31", "0001-01-01"],
             ["infinity", "2024-1-31", "12024-01-01", "0044-03-15 (BC)", "20-24-01-01", ""]),
    "time": (["10:00:00", "10:00:00.5", "10:00:00.000001"], ["24", "10:00", "1:00:00", "10:00:0x"]),
    "timestamp": (["2024-01-31 10:00:00", "2024-01-31 10:00:00.25", "2024-01-31T10:00:00",
                   "2024-01-31 10:00:00+00", "2024-01-31T10:00:00.123456789+00:00"],
                  ["2024-01-31", "infinity", "12024-01-01 10:00:00", "2024-01-31T10:00:00+02",
                   "2024-01-31 10:00:00-00", "2024-01-31+00"]),
    "timestamptz": (["2024-01-31 10:00:00+00", "2024-01-31 10:00:00.5+00:00",
                     "2024-01-31T10:00:00+00:00"],
                    ["2024-01-31 10:00:00+02", "2024-01-31 10:00:00", "infinity"]),
    "binary": (["", "00FF", "0a"], ["0", "\\x00", "zz"]),
}  # fmt: skip
ALPHABET = "0123456789-.: +eE"
RANDOM = random.Random(11)


@pytest.fixture(scope="module")
def con(postgres_server):
    con = postgres_server.create_database("bound_texts").connect()
    yield con
    con.close()


def read(con, form: str, texts: list[str]) -> list[object]:
    value = READ[form].replace("@", "t")
    rows = "unnest(CAST(:texts AS text[])) WITH ORDINALITY AS u(t, n)"
    sql = f"SELECT CAST({value} AS text) FROM {rows} ORDER BY n"
    return [value for [value] in con.run(sql, texts=texts)]


@pytest.mark.parametrize("form", CASES)
def test_certain_texts_are_read_and_others_are_null(con, form):
    certain, others = CASES[form]
    assert None not in read(con, form, certain)
    assert read(con, form, others) == [None] * len(others)


@pytest.mark.parametrize("form", CASES)
def test_no_text_is_an_error(con, form):
    texts = ["".join(RANDOM.choices(ALPHABET, k=RANDOM.randrange(25))) for _ in range(20_000)]
    digits = [text.translate(str.maketrans("eE: ", "1234")) for text in texts]
    assert len(read(con, form, texts + digits)) == 40_000


def test_texts_have_the_order_of_their_values(con):
    moments = ["2024-01-31 10:00:00", "2024-01-31 10:00:00.05", "2024-01-31 10:00:00.500000"]
    assert read(con, "timestamp", moments) == sorted(read(con, "timestamp", moments))
    assert read(con, "timestamp", ["2024-01-31 10:00:00.500"]) == ["2024-01-31 10:00:00.5"]
    spellings = ["2024-01-31 10:00:00.500+00", "2024-01-31T10:00:00.5+00:00"]
    for form in ("timestamp", "timestamptz"):
        assert read(con, form, spellings) == ["2024-01-31 10:00:00.5"] * 2
