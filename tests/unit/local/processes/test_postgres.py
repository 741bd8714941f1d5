import pytest
from polynya_local.processes.postgres import Database, database_of

URLS = [
    ("postgresql://u@h:5433/d", Database("h", 5433, "u", "d")),
    ("postgresql://u:p%40ss@h:5433/d", Database("h", 5433, "u", "d", "p@ss")),
    ("postgresql://u@h:5433/my%20lake", Database("h", 5433, "u", "my lake")),
]


@pytest.mark.parametrize("url, database", URLS)
def test_a_url_names_a_database(url, database):
    assert database_of(url) == database
    assert database.url == url


def test_parts_that_a_url_omits_have_postgresqls_defaults():
    assert database_of("postgresql://h") == Database("h", 5432, "postgres", "postgres")


def test_another_scheme_is_an_error():
    with pytest.raises(ValueError, match="mysql:"):
        database_of("mysql://u@h/d")


def test_libpq_values_are_quoted_if_necessary():
    database = Database("h", 5432, "u", "it's a \\", "p w")
    assert database.libpq == r"dbname='it\'s a \\' host=h port=5432 user=u password='p w'"
