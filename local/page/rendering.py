"""Answers of the page: HTML from a template, or the JSON of the same report."""

import json
from collections.abc import Sequence
from dataclasses import asdict, is_dataclass
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from . import charts
from .links import FILTERS, link, segment, table_path

FOLDER = Path(__file__).parent
TYPES = {
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
# Nothing is loaded from elsewhere, nothing in a page runs or styles it, no other site frames it.
POLICY = (
    "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
TABS = (
    ("", "Table"),
    ("files", "Files"),
    ("rows", "Rows"),
    ("iceberg", "What Iceberg sees"),
    ("read", "How to read it"),
    ("doctor", "Health"),
)
"""The pages of a table: the end of the path, and the words of the link."""
HTML, JSON = "text/html; charset=utf-8", "application/json"


@cache
def templates() -> Environment:
    """The templates, which escape every value and know no missing one."""
    environment = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(FILTERS)
    environment.globals.update(
        link=link, segment=segment, table_path=table_path, charts=charts, tabs=TABS
    )
    return environment


def html(
    template: str, status: int = 200, headers: dict[str, str] | None = None, **values: Any
) -> Response:
    """A page of a template."""
    text = templates().get_template(template).render(**values)
    return _response(text, HTML, status, headers)


def json_of(report: Any, status: int = 200, *, notices: Sequence[str] = ()) -> Response:
    """The JSON of a report.

    Args:
        notices: what a visitor has to know of the whole lake, if there is anything.
    """
    if notices:
        report = {"notices": notices, **(report if isinstance(report, dict) else _plain(report))}
    text = json.dumps(report, ensure_ascii=False, indent=1, default=_plain)
    return _response(text, JSON, status)


def static(name: str) -> Response | None:
    """A file of the folder `static`; None: there is none."""
    path = FOLDER / "static" / name
    if Path(name).name != name or path.suffix not in TYPES or not path.is_file():
        return None
    return _response(path.read_text(), TYPES[path.suffix], 200, {"Cache-Control": "max-age=300"})


def redirect(url: str) -> Response:
    """Redirect to the page that this one has become."""
    return _response("", HTML, 303, {"Location": url})


def _plain(value: Any) -> Any:
    """A value that JSON has not, as one that it has."""
    if isinstance(value, datetime):
        return value.isoformat()
    if is_dataclass(value) and not isinstance(value, type):
        return asdict(value)
    return str(value)


def _response(
    text: str, media_type: str, status: int, headers: dict[str, str] | None = None
) -> Response:
    # A lone surrogate, which a name can have in JSON, is no UTF-8.
    body = text.encode("utf-8", "replace")
    return Response(body, status, {**HEADERS, **(headers or {}), "Content-Type": media_type})
