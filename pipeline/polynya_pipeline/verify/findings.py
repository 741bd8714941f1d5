"""The report of `verify`: a record, shown on the terminal, as JSON and as an HTML page."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from html import escape
from typing import Any

from ..common.errors import counted

Problem = tuple[str, str]
"""The name of the check that failed, and a message. Serializable as JSON."""


NOTES = {
    "client-type",
    "file-of-dropped-table",
    "nan-unknown",
    "no-stats",
    "not-served",
    "orphan",
    "table-stats",
}
"""The checks whose results are worth knowing, but are not faults."""


class Level(StrEnum):
    """What a check compares with the catalog."""

    CATALOG = "catalog"
    STORAGE = "storage"
    METADATA = "metadata"
    CLIENT = "client"


@dataclass(frozen=True, slots=True)
class Finding:
    """A fault, or a note."""

    level: str
    check: str
    about: str
    """The name of a table, or `the lake`."""
    message: str


@dataclass(slots=True)
class Report:
    """What a run of `verify` has checked and found."""

    snapshot_id: int = 0
    levels: list[str] = field(default_factory=list)
    tables: int = 0
    checked: dict[str, int] = field(default_factory=dict)
    """The number of checked things of each kind: a check of nothing finds nothing."""
    findings: list[Finding] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)
    """Not faults, but worth knowing: files that no snapshot names, for instance."""

    def add(self, level: str, about: str, problems: Iterable[Problem]) -> None:
        """Add findings and notes once: a fault of a table appears in each range of files."""
        for check, message in problems:
            finding = Finding(level, check, about, message)
            findings = self.notes if check in NOTES else self.findings
            if finding not in findings:
                findings.append(finding)

    def count(self, what: str, number: int) -> None:
        """Add to the number of checked things of a kind."""
        self.checked[what] = self.checked.get(what, 0) + number

    @property
    def summary(self) -> str:
        """One line of text."""
        checked = ", ".join(f"{number:,} {what}" for what, number in self.checked.items())
        verdict = counted(len(self.findings), "finding") if self.findings else "All is well"
        tables = counted(self.tables, "table")
        return f"{verdict}: {tables} at snapshot {self.snapshot_id}; {checked}"

    @property
    def json(self) -> dict[str, Any]:
        """The report as a JSON document."""
        return {"well": not self.findings, "summary": self.summary, **asdict(self)}

    @property
    def page(self) -> str:
        """The report as an HTML page."""
        rows = [
            f"<tr class={kind}>"
            + "".join(f"<td>{escape(w)}</td>" for w in (f.level, f.check, f.about, f.message))
            for kind, findings in (("finding", self.findings), ("note", self.notes))
            for f in findings
        ]
        return PAGE.format(
            verdict="Findings" if self.findings else "All is well",
            summary=escape(self.summary),
            rows="\n".join(rows),
        )


PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Polynya verify: {verdict}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; }}
table {{ border-collapse: collapse; }} td, th {{ padding: .3rem .8rem; text-align: left; }}
tr {{ border-bottom: 1px solid #ddd; }} .finding {{ background: #fff0f0; }} .note {{ color: #666; }}
</style>
<h1>{verdict}</h1><p>{summary}</p>
<table><tr><th>level<th>check<th>about<th>message</tr>
{rows}
</table></html>
"""


def show(report: Report) -> None:
    """Print findings, notes and the summary on stdout."""
    from polynya.runtime.printable import printable_report
    from rich.text import Text

    from ..common.progress import grid, output

    report = printable_report(report)
    out, table = output(), grid()
    for name in ("level", "check", "about"):
        table.add_column(name, no_wrap=True)
    table.add_column("message", overflow="fold")
    for style, findings in (("", report.findings), ("dim", report.notes)):
        for f in findings:
            table.add_row(*map(Text, (f.level, f.check, f.about, f.message)), style=style)
    if table.rows:
        out.print(table)
    out.print(report.summary, style="bold red" if report.findings else "bold green", soft_wrap=True)
