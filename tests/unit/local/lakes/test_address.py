"""Addresses of lakes. DuckDB's own documentation has their forms:
https://ducklake.select/docs/stable/duckdb/usage/connecting and .../choosing_a_catalog_database.
"""

from pathlib import Path

import pytest
from polynya.ducklake.connection.url import connection_arguments
from polynya.runtime.errors import Misconfigured
from polynya_local.lakes.address import (
    DuckDBLake,
    PostgresLake,
    SQLiteLake,
    lake_name,
    parse,
    url_of,
)

FILES = [
    ("metadata.ducklake", DuckDBLake(Path("metadata.ducklake"))),
    ("ducklake:metadata.ducklake", DuckDBLake(Path("metadata.ducklake"))),
    ("ducklake:duckdb:my lake.db", DuckDBLake(Path("my lake.db"))),
    ("file:///data/metadata.ducklake", DuckDBLake(Path("/data/metadata.ducklake"))),
    ("sqlite:lake.sqlite", SQLiteLake(Path("lake.sqlite"))),
    ("ducklake:sqlite:/data/lake.sqlite", SQLiteLake(Path("/data/lake.sqlite"))),
    ("C:lake.db", DuckDBLake(Path("C:lake.db"))),
    ("lake:1.db", DuckDBLake(Path("lake:1.db"))),
]


@pytest.mark.parametrize(("address", "lake"), FILES)
def test_a_file_is_one_of_duckdb_unless_the_address_says_sqlite(address, lake):
    assert parse(address) == lake


TLS = {"ssl_context": False}
LOCAL = {"user": "me", "password": "", "host": "localhost", "port": 5432, **TLS}
DATABASES = [
    ("postgresql://me@localhost/lake", LOCAL | {"database": "lake"}),
    ("ducklake:postgres://me@localhost/lake", LOCAL | {"database": "lake"}),
    ("ducklake:postgres:postgresql://me@localhost/lake", LOCAL | {"database": "lake"}),
    ("ducklake:postgres:dbname=lake host=localhost user=me", LOCAL | {"database": "lake"}),
    ("postgres:dbname = lake user=me host=localhost", LOCAL | {"database": "lake"}),
    ("postgres:host=localhost user=me", LOCAL | {"database": "me"}),
    (
        r"postgres:dbname='my lake' host=127.0.0.1 port=5433 user='o\'me' password='a b\\c:@/'",
        {
            "user": "o'me",
            "password": r"a b\c:@/",
            "host": "127.0.0.1",
            "port": 5433,
            "database": "my lake",
            **TLS,
        },
    ),
    (
        "postgres:dbname=lake host=/run/pg user=me password=''",
        {"user": "me", "password": "", "database": "lake", "unix_sock": "/run/pg/.s.PGSQL.5432"},
    ),
    (
        "postgres:dbname=lake host=db.example.com hostaddr=10.0.0.1 user=me sslmode=disable",
        {**LOCAL, "host": "10.0.0.1", "database": "lake"},
    ),
]


@pytest.mark.parametrize(("address", "arguments"), DATABASES)
def test_a_database_has_the_same_arguments_in_every_form(address, arguments, monkeypatch):
    for name in ("PGHOST", "PGUSER", "PGPASSWORD", "PGDATABASE", "PGSSLMODE"):
        monkeypatch.delenv(name, raising=False)
    lake = parse(address)
    assert isinstance(lake, PostgresLake)
    assert connection_arguments(lake.url) == arguments


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("lakes/birds.ducklake", "birds"),
        ("sqlite:/data/birds of 2026.db", "birds_of_2026"),
        ("postgresql://u:p@h/sales", "sales"),
        ("ducklake:postgres:dbname=sales host=h", "sales"),
        ("birds--at-3.ducklake", "birds-at-3"),  # else it would be a snapshot of `birds`
    ],
)
def test_one_of_several_lakes_has_the_name_of_its_file_or_database(address, name):
    assert lake_name(parse(address)) == name


def test_what_a_connection_string_leaves_out_comes_from_the_variables_of_libpq():
    environ = {
        "PGHOST": "127.0.0.1",
        "PGPORT": "1",
        "PGUSER": "u",
        "PGPASSWORD": "p",
        "PGDATABASE": "d",
    }
    assert url_of("", environ) == "postgresql://u:p@127.0.0.1:1/d"
    assert url_of("user=other dbname=x", environ) == "postgresql://other:p@127.0.0.1:1/x"


WRONG = [
    ("ducklake:mysql:db=lake host=localhost password=secret", "MySQL"),
    ("ducklake:quack:localhost:9494?token=secret", "Quack"),
    ("md:secret", "MotherDuck"),
    ("https://example.com/secret.ducklake", "copy the file here"),
    ("s3://bucket/secret.ducklake", "copy the file here"),
    ("", "names no lake"),
    ("ducklake:", "names no lake"),
    ("sqlite:", "names no lake"),
    ("postgres:secret", "must read 'dbname=lake"),
    ("postgres:password='secret", "must read 'dbname=lake"),
    ("postgres:password='secret'dbname=x", "must read 'dbname=lake"),
    ("postgres:dbname=lake service=secret", "parameter service"),
    ("postgres:dbname=lake port=secret", "port"),
]


@pytest.mark.parametrize(("address", "words"), WRONG)
def test_another_address_is_refused_with_what_to_do_and_without_its_text(address, words):
    with pytest.raises(Misconfigured, match=words) as refused:
        parse(address)
    assert "secret" not in str(refused.value)


def test_the_repr_of_an_address_has_no_password():
    assert "secret" not in repr(parse("postgres:password=secret"))
