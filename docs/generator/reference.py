"""Writes docs/reference/: `make docs`.

The command line is that of the parsers. The JSON of the page is that of its reports: the fields of
the dataclasses with their types, and what the code says of each. `make docs-examples` writes the
examples from a real lake.
"""

import ast
import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, datetime
from itertools import pairwise
from pathlib import Path
from textwrap import dedent, fill
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import typer
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from polynya_local.cli import app
from polynya_local.page.app import VIEWS
from polynya_local.reports.changes import ChangesReport
from polynya_local.reports.data_files import FilesReport
from polynya_local.reports.diagnosis import HealthReport
from polynya_local.reports.difference import Difference
from polynya_local.reports.lake import LakeReport, ViewReport
from polynya_local.reports.metadata_files import IcebergHead, IcebergReport, ManifestReport
from polynya_local.reports.opened_table import ReadingReport
from polynya_local.reports.preview import PreviewReport
from polynya_local.reports.profile import ProfileReport
from polynya_local.reports.table_history import TableOverview
from polynya_local.reports.visitor_sql import SqlReport

from .clients import environment

HERE = Path(__file__).parent
PAGES = HERE.parent / "reference"
EXAMPLES = HERE / "examples.json"
REPORTS: dict[str, type] = {
    "/": LakeReport,
    "/changes": ChangesReport,
    "/doctor": HealthReport,
    "/sql": SqlReport,
    "/tables/{namespace}/{name}": TableOverview,
    "/tables/{namespace}/{name}/difference": Difference,
    "/tables/{namespace}/{name}/files": FilesReport,
    "/tables/{namespace}/{name}/rows": PreviewReport,
    "/tables/{namespace}/{name}/profile": ProfileReport,
    "/tables/{namespace}/{name}/read": ReadingReport,
    "/tables/{namespace}/{name}/iceberg": IcebergReport,
    "/tables/{namespace}/{name}/iceberg/metadata": IcebergHead,
    "/tables/{namespace}/{name}/iceberg/{manifest}": ManifestReport,
    "/tables/{namespace}/{name}/doctor": HealthReport,
    "/views/{namespace}/{name}": ViewReport,
}
"""What each view of the page answers as JSON."""
WORDS = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "`true` or `false`",
    datetime: "time",
    date: "date",
    NoneType: "`null`",
    Any: "any",
}
"""What types of Python are in JSON."""
TIME = {
    date: re.compile(r"\d{4}-\d\d-\d\d"),
    datetime: re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?\+00:00"),
}


def pages() -> dict[str, str]:
    """The text of each page, by the name of its file."""
    templates = environment()
    templates.filters["anchor"] = anchor
    examples = json.loads(EXAMPLES.read_text())
    return {
        "command-line.md": templates.get_template("command-line.md.jinja").render(
            summary=_words(app.registered_callback.callback.__doc__), commands=list(commands())
        ),
        "page-json.md": templates.get_template("page-json.md.jinja").render(
            views=list(views()),
            reports=REPORTS,
            examples={
                path: json.dumps(text, ensure_ascii=False, indent=1)
                for path, text in examples.items()
            },
            records={
                name: Record.from_dataclass(record) for name, record in sorted(records().items())
            },
        ),
    }


@dataclass(frozen=True, slots=True)
class Command:
    """What the parser knows of a command."""

    name: str
    usage: str
    short: str
    text: str
    arguments: list[tuple[str, str]]
    """The name of each, and its help."""
    options: list[tuple[str, str]]


def commands() -> Iterator[Command]:
    """The commands, in the order of `polynya --help`."""
    group: Any = typer.main.get_command(app)
    parent = group.context_class(group, info_name="polynya")
    parent.help_option_names = ["-h", "--help"]
    yield from _commands(group, parent)


def _commands(group: Any, parent: Any, prefix: str = "") -> Iterator[Command]:
    """The commands of a group; of groups in it, theirs."""
    for name in group.list_commands(parent):
        command = group.get_command(parent, name)
        context = group.context_class(command, info_name=name, parent=parent)
        if hasattr(command, "list_commands"):
            yield from _commands(command, context, f"{name} ")
            continue
        parameters: dict[str, list[tuple[str, str]]] = {"argument": [], "option": []}
        for parameter in command.get_params(context):
            shown, text = parameter.get_help_record(context)
            if parameter.param_type_name == "argument":
                shown = shown.partition(" <")[0]
            parameters[parameter.param_type_name].append((_cell(shown), _cell(text)))
        yield Command(
            prefix + name,
            command.get_usage(context).removeprefix("Usage: "),
            command.get_short_help_str(200),
            _words(command.help),
            parameters["argument"],
            parameters["option"],
        )


@dataclass(frozen=True, slots=True)
class View:
    """What the application knows of a route."""

    path: str
    text: str
    query: list[tuple[str, str, str]]
    """The name of each parameter, its type and its default."""


def views() -> Iterator[View]:
    """The views of the page."""
    for module in VIEWS:
        for route in module.router.routes:
            if isinstance(route, APIRoute):
                query = [_parameter(field) for field in _parameters(route.dependant)]
                shared = {"snapshot", "format"}
                own = [line for line in query if line[0] not in shared]
                yield View(route.path, _words(route.description), own)


def _parameters(dependant: Dependant) -> Iterator[Any]:
    yield from dependant.query_params
    for other in dependant.dependencies:
        yield from _parameters(other)


def _parameter(field: Any) -> tuple[str, str, str]:
    info = field.field_info
    default = "required" if info.is_required() else f"`{info.default}`"
    if info.default in (None, ""):
        default = ""
    return field.alias, _cell(type_in_json(info.annotation)), default


@dataclass(frozen=True, slots=True)
class Record:
    """A dataclass as an object of JSON."""

    text: str
    fields: list[tuple[str, str, str]]
    """The name of each, its type, and what the code says of it."""

    @classmethod
    def from_dataclass(cls, record: type) -> "Record":
        """Read the source of a dataclass."""
        hints, texts = get_type_hints(record), _texts(record)
        lines = [
            (field.name, _cell(type_in_json(hints[field.name])), _cell(texts.get(field.name, "")))
            for field in fields(record)
        ]
        return cls(_words(record.__doc__), lines)


def records() -> dict[str, type]:
    """The dataclasses of all reports, by the name that the page has for them."""
    waiting, seen = list(REPORTS.values()), dict[type, None]()
    while waiting:
        record = waiting.pop()
        if record not in seen:
            seen[record] = None
            waiting += [part for hint in get_type_hints(record).values() for part in _parts(hint)]
    names = [record.__name__ for record in seen]
    assert len({*names}) == len(names), sorted(names)
    return {record.__name__: record for record in seen}


def _parts(hint: Any) -> Iterator[type]:
    """The dataclasses within a type."""
    if is_dataclass(hint):
        yield hint  # type: ignore[misc]
    for part in get_args(hint):
        yield from _parts(part)


def _texts(record: type) -> dict[str, str]:
    """The text below each field."""
    [body] = [
        node.body
        for node in ast.parse(dedent(inspect.getsource(record))).body
        if isinstance(node, ast.ClassDef)
    ]
    return {
        field.target.id: _words(text.value.value)
        for field, text in pairwise(body)
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr)
        and isinstance(text.value, ast.Constant)
    }


def type_in_json(hint: Any) -> str:
    """The words for a type."""
    if hint in WORDS:
        return WORDS[hint]
    if is_dataclass(hint):
        name = hint.__name__  # type: ignore[union-attr]
        return f"[{name}](#{name.lower()})"
    kind, arguments = get_origin(hint), get_args(hint)
    if kind is Literal:
        return ", ".join(f"`{value}`" for value in arguments if value != "")
    if kind in (Union, UnionType):
        return " or ".join(map(type_in_json, arguments))
    if hasattr(hint, "__metadata__"):
        return type_in_json(arguments[0])
    if kind is dict:
        return f"object of {type_in_json(arguments[1])}"
    return f"list of {type_in_json(arguments[0])}"


def faults(value: Any, hint: Any, path: str = "$") -> Iterator[str]:
    """Where a value of JSON is not what its type says."""
    kind, arguments = get_origin(hint), get_args(hint)
    if hint is Any:
        return
    if is_dataclass(hint):
        hints = get_type_hints(hint)
        names = {field.name for field in fields(hint)}
        if not isinstance(value, dict) or value.keys() - {"notices"} != names:
            yield f"{path}: {value!r:.200} has not the fields {sorted(names)}"
            return
        for name in names:
            yield from faults(value[name], hints[name], f"{path}.{name}")
    elif kind in (Union, UnionType):
        if all(list(faults(value, argument)) for argument in arguments):
            yield f"{path}: {value!r:.200} is none of {type_in_json(hint)}"
    elif kind is dict:
        for name, part in value.items():
            yield from faults(part, arguments[1], f"{path}.{name}")
    elif kind is not None:
        for number, part in enumerate(value):
            yield from faults(part, arguments[0], f"{path}[{number}]")
    elif hint in (datetime, date):
        if not isinstance(value, str) or not TIME[hint].fullmatch(value):
            yield f"{path}: {value!r} is no {WORDS[hint]}"
    elif type(value) is not hint and not (hint is float and type(value) is int):
        yield f"{path}: {value!r:.200} is no {type_in_json(hint)}"


def anchor(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _words(text: str | None) -> str:
    """A docstring as a paragraph; what JSON has for None."""
    lines = inspect.cleandoc(text or "").split("\n\nArgs:")[0].split("\n\n")
    return "\n\n".join(fill(part, 120) for part in lines).replace("None", "null")


def _cell(text: str) -> str:
    """A text in a cell of a table."""
    return " ".join(text.split()).replace("|", r"\|")


def main() -> None:
    """Write the pages."""
    PAGES.mkdir(exist_ok=True)
    for name, text in pages().items():
        (PAGES / name).write_text(text)


if __name__ == "__main__":
    main()
