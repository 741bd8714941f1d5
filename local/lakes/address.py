"""The address of a lake: a URL, a file, or the string after `ATTACH` as it is."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from polynya.errors import Misconfigured

from .conninfo import url_of

FORMS = (
    "metadata.ducklake, sqlite:lake.sqlite, postgresql://user:password@host:port/database, or the "
    "string after ATTACH: 'ducklake:…'"
)
"""What an address may look like."""


@dataclass(frozen=True, slots=True)
class PostgresLake:
    """A catalog in PostgreSQL."""

    url: str = field(repr=False)
    """It may hold a password."""


@dataclass(frozen=True, slots=True)
class DuckDBLake:
    """A catalog in a file of DuckDB."""

    file: Path


@dataclass(frozen=True, slots=True)
class SQLiteLake:
    """A catalog in a file of SQLite."""

    file: Path


Address: TypeAlias = PostgresLake | DuckDBLake | SQLiteLake

REFUSED = {
    "mysql": "Polynya does not read MySQL catalogs, in which DuckLake's own writers fail at the "
    "second INSERT: write the lake to a file or to PostgreSQL",
    "quack": "Polynya does not read remote catalogs (Quack): give the server's own catalog, which "
    "is a file or a PostgreSQL",
    "md": "Polynya does not read catalogs that MotherDuck hosts: give a file or a PostgreSQL",
    **dict.fromkeys(
        ("http", "https", "s3", "s3a", "s3n", "gs", "gcs", "r2", "az", "abfss", "hf"),
        "the catalog must be a file of this machine or in PostgreSQL: copy the file here, and "
        "give the address of its data with --data-path if that is relative",
    ),
}
"""Kinds that DuckDB attaches and Polynya does not serve, and what to do instead."""

KIND = re.compile(r"([A-Za-z][A-Za-z0-9+]+):(.*)", re.DOTALL)
"""Two letters at least: one letter would be a drive of Windows."""


def parse(address: str) -> Address:
    """The lake that an address names; nothing is opened.

    Raises:
        Misconfigured: it is no address, or one of a kind that is not served. The message never
            holds what follows the kind.
    """
    text = address.strip().removeprefix("ducklake:")
    kind, rest = _kind(text)
    if kind in REFUSED:
        raise Misconfigured(REFUSED[kind])
    if kind in {"postgres", "postgresql"}:
        return PostgresLake(text if rest.startswith("//") else _url(rest))
    if not rest:
        raise Misconfigured(f"the address names no lake; it is {FORMS}")
    if kind == "sqlite":
        return SQLiteLake(_file(rest))
    return DuckDBLake(_file(rest))


def _kind(text: str) -> tuple[str, str]:
    """The kind of a catalog in lower case, and what follows it; "" is a file of DuckDB."""
    found = KIND.fullmatch(text)
    if found is None or os.path.exists(text):
        return "", text
    kind = found[1].lower()
    if kind in {"duckdb", "file"}:
        return "", found[2]
    return (
        (kind, found[2]) if kind in {"sqlite", "postgres", "postgresql", *REFUSED} else ("", text)
    )


def _url(rest: str) -> str:
    """The URL of what follows `postgres:`, which is a URL or a connection string of libpq."""
    is_url = rest.startswith(("postgres://", "postgresql://"))
    return rest if is_url else url_of(rest)


def _file(text: str) -> Path:
    # `file:///x` and `file:/x` name the same file.
    return Path(re.sub("^//(?:localhost)?(?=/)", "", text)).expanduser()
