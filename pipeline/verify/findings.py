"""What `verify` has found, as a record, a JSON document and a page."""

from dataclasses import asdict, dataclass, field
from html import escape
from typing import Any


@dataclass(frozen=True, slots=True)
class Finding:
    level: str
    check: str
    about: str
    """A table, or the lake."""
    message: str


@dataclass(slots=True)
class Report:
    snapshot_id: int = 0
    levels: list[str] = field(default_factory=list)
    tables: int = 0
    checked: dict[str, int] = field(default_factory=dict)
    """How many things of a kind were looked at: a check of nothing finds nothing."""
    skipped: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    notes: list[Finding] = field(default_factory=list)
    """What is worth knowing and no fault: files that no snapshot knows, for example."""

    @property
    def summary(self) -> str:
        looked = ", ".join(f"{number:,} {what}" for what, number in self.checked.items())
        verdict = f"{len(self.findings):,} findings" if self.findings else "All is well"
        return f"{verdict}: {self.tables:,} tables at snapshot {self.snapshot_id}; {looked}"

    @property
    def json(self) -> dict[str, Any]:
        return {"well": not self.findings, "summary": self.summary, **asdict(self)}

    @property
    def page(self) -> str:
        rows = [
            f"<tr class={kind}>"
            + "".join(f"<td>{escape(w)}</td>" for w in (f.level, f.check, f.about, f.message))
            for kind, found in (("finding", self.findings), ("note", self.notes))
            for f in found
        ]
        skipped = "".join(f"<p>Not checked: {escape(text)}</p>" for text in self.skipped)
        return PAGE.format(
            verdict="Findings" if self.findings else "All is well",
            summary=escape(self.summary),
            skipped=skipped,
            rows="\n".join(rows),
        )


PAGE = """<!doctype html>
<html lang="en"><meta charset="utf-8"><title>Polynya verify: {verdict}</title>
<style>
body {{ font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 70rem; }}
table {{ border-collapse: collapse; }} td, th {{ padding: .3rem .8rem; text-align: left; }}
tr {{ border-bottom: 1px solid #ddd; }} .finding {{ background: #fff0f0; }} .note {{ color: #666; }}
</style>
<h1>{verdict}</h1><p>{summary}</p>{skipped}
<table><tr><th>level<th>check<th>about<th>what</tr>
{rows}
</table></html>
"""
