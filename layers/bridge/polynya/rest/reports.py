"""Bodies of reportMetrics under their names in the specification, and their fields in log lines.

Iceberg Java and the engines that use it (Spark, Flink, Trino) send a report after each scan and
commit; PyIceberg and DuckDB send none. The fields of a scan that the server plans, and of a commit,
are here too, so that all lines use the same words.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from ..runtime.errors import BadRequest
from . import planning
from .answers import PlanTableScanResult
from .requests import CommitTableRequest
from .schemas import Body
from .updates import AddSnapshot

MOST_CHARACTERS = 2000
"""The longest text in a log line: CloudWatch cuts an event at 256 KB."""

MOST_VALUES = 10_000
"""A filter with more predicates and values is not written."""

Fields = dict[str, Any]
"""The keys and values of a log line."""


class MetricResult(Body):
    """A counter, which has a value, or a timer, which has a duration."""

    value: planning.Long | None = None
    time_unit: str | None = None
    total_duration: planning.Long | None = None


class ReportMetricsRequest(Body):
    report_type: str


class MetricsReport(ReportMetricsRequest):
    """A ScanReport or a CommitReport; `report_type` says which."""

    snapshot_id: planning.SnapshotId = None
    filter: Any = None
    projected_field_names: list[str] = Field(default_factory=list)
    operation: str | None = None
    metrics: dict[str, MetricResult] = Field(default_factory=dict)
    metadata: dict[str, str] = Field(default_factory=dict)


SCAN_METRICS = {
    "data_files": "result-data-files",
    "delete_files": "result-delete-files",
    "skipped_data_files": "skipped-data-files",
    "bytes": "total-file-size-in-bytes",
    "milliseconds": "total-planning-duration",
}
"""The key in a log line of each metric of a scan, as Iceberg Java names it."""

COMMIT_METRICS = {
    "added_data_files": "added-data-files",
    "removed_data_files": "removed-data-files",
    "added_delete_files": "added-delete-files",
    "added_rows": "added-records",
    "removed_rows": "removed-records",
    "added_bytes": "added-files-size-bytes",
    "attempts": "attempts",
    "milliseconds": "total-duration",
}
"""The key in a log line of each metric of a commit."""

SUMMARY = {
    "added_data_files": "added-data-files",
    "removed_data_files": "deleted-data-files",
    "added_delete_files": "added-delete-files",
    "added_rows": "added-records",
    "removed_rows": "deleted-records",
    "added_bytes": "added-files-size",
}
"""The key in a log line of each number in the summary of a snapshot."""

OPERATORS = {
    "lt": "<",
    "lt-eq": "<=",
    "gt": ">",
    "gt-eq": ">=",
    "eq": "=",
    "not-eq": "!=",
    "is-null": "is null",
    "not-null": "is not null",
    "is-nan": "is nan",
    "not-nan": "is not nan",
    "in": "in",
    "not-in": "not in",
    "starts-with": "starts with",
    "not-starts-with": "does not start with",
}
"""Operators as people write them."""

NANOSECONDS = {
    "nanoseconds": 1,
    "microseconds": 10**3,
    "milliseconds": 10**6,
    "seconds": 10**9,
    "minutes": 60 * 10**9,
    "hours": 3600 * 10**9,
    "days": 86_400 * 10**9,
}
"""The time units of the specification, which are Java's."""


def report_fields(thing: Any, *, with_values: bool) -> Fields | None:
    """The fields of a log line about a client's report; None if it is of another kind.

    Args:
        thing: the body, as JSON.
        with_values: whether the values that a filter compares with are written: they may be rows.

    Raises:
        BadRequest: a report of a scan or a commit does not have the form of the specification.
    """
    kind: ReportMetricsRequest = planning.validated(ReportMetricsRequest, thing)
    if kind.report_type not in {"scan-report", "commit-report"}:
        return None
    report: MetricsReport = planning.validated(MetricsReport, thing)
    match report.report_type:
        case "scan-report":
            filter_ = filter_text(planning.filter_of(report.filter), with_values=with_values)
            columns = _cut(", ".join(report.projected_field_names))
            details = {"filter": filter_, "columns": columns, **_numbers(report, SCAN_METRICS)}
        case _:
            operation = _cut(report.operation or "")
            details = {"operation": operation, **_numbers(report, COMMIT_METRICS)}
    engine = " ".join(
        report.metadata[key] for key in ("engine-name", "engine-version") if key in report.metadata
    )
    what = report.report_type.removesuffix("-report")
    line = {"of": what, "snapshot_id": report.snapshot_id, "engine": _cut(engine), **details}
    return {key: value for key, value in line.items() if value not in (None, "")}


def plan_fields(
    request: planning.PlanTableScanRequest, answer: PlanTableScanResult, *, with_values: bool
) -> Fields:
    """The fields of a log line about a scan that the server has planned: files of the first
    answer."""
    files = [task["data-file"] for task in answer["file-scan-tasks"]]
    snapshot = {} if request.snapshot_id is None else {"snapshot_id": request.snapshot_id}
    return {
        **snapshot,
        "filter": filter_text(planning.filter_of(request.filter), with_values=with_values),
        "data_files": len(files),
        "rows": sum(file["record-count"] for file in files),
        "bytes": sum(file["file-size-in-bytes"] for file in files),
        "plan_tasks": len(answer.get("plan-tasks", ())),
    }


def commit_fields(request: CommitTableRequest) -> Fields:
    """The fields of a log line about a commit to a table: its updates, and the client's numbers
    about its snapshots."""
    added = [update.snapshot for update in request.updates if isinstance(update, AddSnapshot)]
    summaries = [snapshot.summary for snapshot in added]
    numbers = {
        key: sum(int(summary[name]) for summary in summaries if _is_number(summary.get(name)))
        for key, name in SUMMARY.items()
    }
    line = {
        "updates": _cut(", ".join(dict.fromkeys(update.action for update in request.updates))),
        "operation": _cut(", ".join(summary.get("operation", "") for summary in summaries)),
        "snapshot_id": added[-1].snapshot_id if added else None,
        **numbers,
    }
    return {key: value for key, value in line.items() if value}


def filter_text(filter_: planning.Filter, *, with_values: bool) -> str:
    """A filter as a line of text: `day >= ? and (id in (?, ?) or name is-null)`.

    Args:
        with_values: write the values, too; otherwise each is `?`.
    """
    if _length(filter_) > MOST_VALUES:
        return f"more than {MOST_VALUES} predicates and values"
    return _cut(_text(filter_, with_values=with_values))


def _text(filter_: planning.Filter, *, with_values: bool) -> str:
    match filter_:
        case planning.And(parts) | planning.Or(parts):
            word = " and " if isinstance(filter_, planning.And) else " or "
            texts = [_text(part, with_values=with_values) for part in parts]
            if len(texts) < 2:
                return texts[0] if texts else str(isinstance(filter_, planning.And)).lower()
            # A chain of one operator is one level, so a chain within it has the other operator.
            return word.join(
                f"({text})" if isinstance(part, planning.And | planning.Or) and part.parts else text
                for part, text in zip(parts, texts, strict=True)
            )
        case planning.Not(child):
            return f"not ({_text(child, with_values=with_values)})"
        case planning.Predicate(operation, field, values):
            name = "an expression" if field is None else str(field)
            texts = [repr(value) if with_values else "?" for value in values]
            operands = f"({', '.join(texts)})" if operation in ("in", "not-in") else "".join(texts)
            return f"{name} {OPERATORS[operation]} {operands}".rstrip()


def _length(filter_: planning.Filter) -> int:
    match filter_:
        case planning.And(parts) | planning.Or(parts):
            return 1 + sum(map(_length, parts))
        case planning.Not(child):
            return 1 + _length(child)
        case planning.Predicate(values=values):
            return 1 + len(values)


def _numbers(report: MetricsReport, names: Mapping[str, str]) -> Fields:
    return {
        key: _number(report.metrics[name]) for key, name in names.items() if name in report.metrics
    }


def _number(metric: MetricResult) -> int | float | None:
    if metric.total_duration is None:
        return metric.value
    if metric.time_unit not in NANOSECONDS:
        raise BadRequest("metrics: a timer has no time-unit of the specification")
    return round(metric.total_duration * NANOSECONDS[metric.time_unit] / 10**6, 3)


def _is_number(text: object) -> bool:
    # A client wrote it: Python refuses to parse thousands of digits. Those of 64 bits have up to
    # 19.
    return isinstance(text, str) and text.isascii() and text.isdecimal() and len(text) < 20


def _cut(text: str) -> str:
    return text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS] + "…"
