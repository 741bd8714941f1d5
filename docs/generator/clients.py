"""Writes docs/clients/: `make docs`.

The faults are those of polynya_local/reports/client_faults.toml, the snippets those of the page;
what people wrote besides is in the templates.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from polynya_local.reports.client_faults import (
    FAILS,
    RARE,
    WRONG,
    KnownFault,
    MeasuredClient,
    measured_clients,
    subjects,
)
from polynya_local.reports.snippets import CLIENTS, Block, Place, blocks, client

HERE = Path(__file__).parent
PAGES = HERE.parent / "clients"
PLACE = Place(
    "http://127.0.0.1:8181",
    "lake",
    "http://127.0.0.1:8182",
    "main",
    "t",
    virtual_bucket="BUCKET",
)
"""A lake of `polynya serve`."""
PYICEBERG_CATALOG = """\
from pyiceberg.catalog import load_catalog  # pip install 'pyiceberg[pyarrow]'

catalog = load_catalog("lake", uri="http://127.0.0.1:8181", warehouse="lake")
"""
"""`polynya serve` tells PyIceberg where S3 is."""
SHORT = {WRONG: "**wrong**", FAILS: "fails", RARE: "rare"}
"""The kinds of faults, the worst first."""
KINDS = list(SHORT)


def environment() -> Environment:
    """The templates of all pages that are made."""
    return Environment(
        loader=FileSystemLoader(HERE / "templates"),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def pages() -> dict[str, str]:
    """The text of each page, by the name of its file."""
    templates = environment()
    clients = measured_clients()
    overview = templates.get_template("README.md.jinja")
    return {
        "README.md": overview.render(
            clients=clients.values(), page_of=page_of, rows=overview_rows(clients)
        ),
        **{
            page_of(client): templates.get_template(f"{page_of(client)}.jinja").render(
                client=client,
                blocks=own_blocks(client.name),
                past=past_line(client.name),
                faults=worst_first(client.faults),
            )
            for client in clients.values()
        },
    }


def page_of(client: MeasuredClient) -> str:
    """The name of the file about a client."""
    return f"{client.name.lower()}.md"


def overview_rows(clients: Mapping[str, MeasuredClient]) -> list[tuple[str, list[str]]]:
    """For each subject, the worst that each client does."""
    return [
        (subject, [_worst(client.faults, subject) for client in clients.values()])
        for subject in subjects()
    ]


def _worst(faults: Iterable[KnownFault], subject: str) -> str:
    kinds = [fault.kind for fault in worst_first(faults) if fault.about == subject]
    return SHORT[kinds[0]] if kinds else ""


def worst_first(faults: Iterable[KnownFault]) -> list[KnownFault]:
    """The faults of a client in the order of a page."""
    return sorted(faults, key=lambda fault: KINDS.index(fault.kind))


def own_blocks(name: str) -> tuple[Block, ...]:
    """What to copy into a client."""
    if name not in {known.name for known in CLIENTS}:
        return ()
    snippets = client(name)
    if snippets.connect != client("PyIceberg").connect:
        return blocks(snippets, PLACE)
    return (Block("python", "", f"{PYICEBERG_CATALOG}\n{snippets.read.text(PLACE)}"),)


def past_line(name: str) -> tuple[str, str]:
    """The language and the last line of what reads an older snapshot; empty: there is none."""
    if name not in {known.name for known in CLIENTS} or client(name).is_newest_only:
        return "", ""
    read = client(name).read
    return read.language.name, read.text(replace(PLACE, snapshot_id=5)).splitlines()[-1]


def main() -> None:
    """Write the pages, and remove those of clients that are gone."""
    texts = pages()
    for file in PAGES.glob("*.md"):
        if file.name not in texts:
            file.unlink()
    for name, text in texts.items():
        (PAGES / name).write_text(text)


if __name__ == "__main__":
    main()
