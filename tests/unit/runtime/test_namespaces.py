"""Names of several levels as texts, for people and in paths."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from polynya.runtime.errors import BadRequest
from polynya.runtime.namespaces import dotted, parse_path, parsed, path_segment

# As DuckLake's documentation writes them; the form that people read, and another one for the same.
TEXTS = [
    (("sales",), "sales", '"sales"'),
    (("sales", "europe"), "sales.europe", 'sales."europe"'),
    (("sales.europe",), '"sales.europe"', None),
    (("a.b", "c"), '"a.b".c', '"a.b"."c"'),
    (("a", "b.c"), 'a."b.c"', None),
    (('say "hi"', "x"), '"say ""hi""".x', None),
    (("Two words", "é"), "Two words.é", '"Two words"."é"'),
]


@pytest.mark.parametrize(("names", "text", "other"), TEXTS)
def test_people_write_levels_with_dots(names, text, other):
    assert dotted(*names) == text
    assert parsed(text) == parsed(other or text) == names


@pytest.mark.parametrize("text", ["", ".", "a.", ".a", "a..b", '"a', 'a"b', '"a"b'])
def test_other_texts_are_no_names(text):
    with pytest.raises(
        BadRequest, match="is not a valid name: write the levels with dots between them"
    ):
        parsed(text)


LEVELS = st.lists(st.text(min_size=1), min_size=1, max_size=4).map(tuple)


@given(LEVELS, LEVELS)
def test_no_two_names_have_one_text(one, other):
    assert parsed(dotted(*one)) == one
    assert (dotted(*one) == dotted(*other)) == (one == other)


def test_levels_in_paths_have_the_separator_of_the_specification():
    assert path_segment(("sales", "eu rope/north")) == "sales%1Feu%20rope%2Fnorth"
    assert parse_path("sales\x1feurope") == ("sales", "europe")
    assert parse_path("sales.europe") == ("sales.europe",)
