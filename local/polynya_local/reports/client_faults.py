"""The known faults of clients, as measured by `make matrix` and tests/engines.

`client_faults.toml` lists them. `doctor` and the page show those that affect a table; `make docs`
generates docs/clients/ from all of them.
"""

import tomllib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path
from typing import Any

from polynya_pipeline.common.errors import counted

from . import conditions
from .conditions import Condition
from .table_facts import TableFacts

SOURCE = Path(__file__).with_suffix(".toml")

WRONG, FAILS, RARE = "wrong rows", "fails", "in rare cases"
"""The client returns other rows than DuckLake, without an error; or it reports an error; or it does
either, but only for values or files that few tables have and the catalog does not show."""

TESTED = "tested in every run"


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownFault:
    """A fault of a client, and the condition on the tables that it affects."""

    about: str
    kind: str
    sentence: str
    """A format string with `{columns}` and `{files}`."""
    since: date
    """When it was first measured."""
    columns: str = ""
    """What documents say for `{columns}`."""
    files: str = "files"
    """What documents say for `{files}`."""
    condition: Condition | None = None
    """None: the catalog does not show which tables are affected; the fault is only documented."""
    remedy: str = ""
    message: str = ""
    """What the client reports."""
    issue: str = ""
    """Where it is known upstream."""
    named: str = ""
    """What else avoids it, if a setting or a warehouse names the client."""
    adaptation: str = ""
    """What the setting CLIENTS changes in files to avoid it."""


@dataclass(frozen=True, slots=True)
class MeasuredClient:
    """A client whose faults are known."""

    name: str
    version: str
    tested: str
    measured: date
    faults: tuple[KnownFault, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault that a client has with this table."""

    client: str
    version: str
    kind: str
    sentence: str
    remedy: str
    columns: tuple[str, ...]
    files: int


@cache
def measured_clients() -> dict[str, MeasuredClient]:
    """All clients whose faults are known, by name."""
    document = _document()
    clients = [
        MeasuredClient(
            **{
                **client,
                "faults": tuple(
                    _fault(fault, document["remedies"], client["name"])
                    for fault in client["faults"]
                ),
            }
        )
        for client in document["clients"]
    ]
    return {client.name: client for client in clients}


def subjects() -> list[str]:
    """The subjects of the faults."""
    return list(_document()["subjects"])


@cache
def _document() -> dict[str, Any]:
    return tomllib.loads(SOURCE.read_text())


def _fault(entry: dict[str, Any], remedies: dict[str, str], client: str) -> KnownFault:
    remedy = remedies[entry["remedy"]] if "remedy" in entry else ""
    remedy = remedy.replace("{name}", client.lower())
    condition = _condition(entry["condition"]) if "condition" in entry else None
    return KnownFault(**{**entry, "remedy": remedy, "condition": condition})


def _condition(entry: str | dict[str, list[str]]) -> Condition:
    condition: Condition
    if isinstance(entry, str):
        condition = getattr(conditions, entry)
    else:
        [(name, arguments)] = entry.items()
        condition = getattr(conditions, name)(*arguments)
    return condition


def known_faults(facts: TableFacts) -> list[Fault]:
    """The known faults of clients that affect a table."""
    return [
        Fault(
            client.name,
            client.version,
            fault.kind,
            fault.sentence.format(columns=any_of(met.columns), files=_files(met.files)),
            fault.remedy,
            met.columns,
            met.files,
        )
        for client in measured_clients().values()
        for fault in client.faults
        if fault.condition and (met := fault.condition(facts))
    ]


def own_clients(named: Collection[str]) -> tuple[str, ...]:
    """The names of the owner's clients: their faults are warnings, those of others information.

    Args:
        named: the clients in the setting CLIENTS. If these are none or all, the owner has not said
            who reads the lake: the result is then the clients that every run tests.
    """
    by_setting = {client.name.lower(): client for client in measured_clients().values()}
    chosen = set(named) if 0 < len(named) < len(by_setting) else None
    return tuple(
        client.name
        for name, client in by_setting.items()
        if (client.tested == TESTED if chosen is None else name in chosen)
    )


def others(clients: Mapping[str, Collection[str]], own: Collection[str]) -> dict[str, list[str]]:
    """Sentences about the faults of clients that are not the owner's, with their names.

    Args:
        clients: by the kind of their faults.
    """
    sentences = {}
    for kind, words in ((WRONG, "would read wrong rows"), (FAILS, "could not read all of it")):
        if names := [name for name in clients[kind] if name not in own]:
            sentence = f"{counted(len(names), 'client')} of {len(measured_clients())} {words}"
            sentences[sentence] = names
    return sentences


def clients_by_kind(faults: Iterable[Fault]) -> dict[str, list[str]]:
    """The clients that have faults of each kind."""
    clients: dict[str, dict[str, None]] = {kind: {} for kind in (WRONG, FAILS, RARE)}
    for fault in faults:
        clients[fault.kind][fault.client] = None
    return {kind: list(names) for kind, names in clients.items()}


def gain_of(columns: Collection[str], lost: Collection[str]) -> str:
    """A sentence: what a table gains in format version 3, and who cannot read all of it then.

    Args:
        columns: their dotted names.
        lost: the clients.
    """
    gain = f"format version 3 would show {any_of(columns)}"
    who = f"; then it could not be read in full by {', '.join(lost)}" if lost else ""
    return gain + who


def any_of(names: Collection[str]) -> str:
    """Names for a sentence: `“a”, “b” and 3 more`."""
    shown = [f"“{name}”" for name in names]
    more = f" and {len(shown) - 5} more" if len(shown) > 5 else ""
    return ", ".join(shown[:5]) + more


def _files(number: int) -> str:
    return "some files" if not number else "1 file" if number == 1 else f"{number:,} files"
