"""Metrics of each invocation, and traces of it if they are switched on.

Metrics are a line on stdout in CloudWatch's embedded metric format, and go to whoever watches them
in this process: `polynya serve` does. X-Ray gets the time of an answer and of its requests to AWS;
its packages come with a layer of their own, and are imported only if it is switched on.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from time import perf_counter
from typing import Any

from aws_lambda_powertools import Metrics, single_metric
from aws_lambda_powertools.metrics import MetricUnit

from .budget import Handler

NAMESPACE = os.environ.get("POWERTOOLS_METRICS_NAMESPACE", "Polynya")
SERVICE = os.environ.get("POWERTOOLS_SERVICE_NAME", "polynya")
METRICS = {
    "LoadTable": MetricUnit.Milliseconds,
    "Commit": MetricUnit.Milliseconds,
    "PlanTableScan": MetricUnit.Milliseconds,
    "Hits": MetricUnit.Count,
    "Builds": MetricUnit.Count,
    "BytesServed": MetricUnit.Bytes,
    "CredentialsVended": MetricUnit.Count,
    "StoreFailures": MetricUnit.Count,
    "BrokenItems": MetricUnit.Count,
    "Refusals": MetricUnit.Count,
}
"""The unit of each metric in CloudWatch; `Refusals` has the dimension `reason`."""

metrics = Metrics(namespace=NAMESPACE, service=SERVICE)

Watcher = Callable[[str, float, Mapping[str, str]], None]
"""Gets the name of a metric, a value, and what distinguishes it from others of the name."""

watchers: list[Watcher] = []
"""Who gets each value in this process. On AWS nobody: there it would cost a custom metric for each
operation and status."""


def watched(name: str, value: float, **labels: str) -> None:
    """Give a value to those who watch in this process."""
    for watcher in watchers:
        watcher(name, value, labels)


@contextmanager
def watched_seconds(name: str, **labels: str) -> Iterator[None]:
    """Give them the seconds of the block, also if it raises."""
    started = perf_counter()
    try:
        yield
    finally:
        watched(name, perf_counter() - started, **labels)


def count(name: str, value: float = 1) -> None:
    """Add a value to a metric of this invocation; nothing if metrics are switched off.

    Args:
        name: one of `METRICS`.
        value: in the unit of the metric.
    """
    watched(name, value)
    if _is_on():
        metrics.add_metric(name, METRICS[name], value)


def count_refusal(reason: str) -> None:
    """Write out one `Refusals`, with the type or code of the error as its reason."""
    watched("Refusals", 1, reason=reason)
    if not _is_on():
        return
    # By itself: a dimension holds for all metrics that are written together.
    with single_metric("Refusals", METRICS["Refusals"], 1, namespace=NAMESPACE) as refusals:
        refusals.add_dimension("service", SERVICE)
        refusals.add_dimension("reason", reason)


@contextmanager
def timed(name: str) -> Iterator[None]:
    """Add the milliseconds of the block to a metric, if it raises nothing."""
    started = perf_counter()
    yield
    count(name, (perf_counter() - started) * 1000)


def published(handler: Handler) -> Handler:
    """Decorate a Lambda handler: its metrics are written out when it returns or raises."""

    @wraps(handler)
    def publishing_handler(event: Any, context: Any) -> Any:
        try:
            return handler(event, context)
        finally:
            # Powertools warns of an invocation without metrics.
            if metrics.metric_set:
                metrics.flush_metrics()

    return publishing_handler


def _is_on() -> bool:
    return os.environ.get("POWERTOOLS_METRICS_DISABLED", "").lower() not in {"true", "1"}


def traced(handler: Handler) -> Handler:
    """Decorate a Lambda handler: with POWERTOOLS_TRACE_DISABLED=false each invocation is a
    subsegment."""
    if os.environ.get("POWERTOOLS_TRACE_DISABLED", "true").lower() not in {"false", "0"}:
        return handler
    from aws_lambda_powertools import Tracer

    tracer = Tracer(patch_modules=("botocore",))
    # An answer may hold vended credentials.
    wrapped: Handler = tracer.capture_lambda_handler(handler, capture_response=False)
    return wrapped
