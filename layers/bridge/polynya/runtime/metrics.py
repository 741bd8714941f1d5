"""Metrics and the log of each invocation, and traces of it if they are switched on.

In Lambda metrics are a line on stdout in CloudWatch's embedded metric format. On every host they go
to the watchers of this context, of which `polynya serve` is one. X-Ray gets the time of an answer
and of its requests to AWS; its packages come with a layer of their own, and are imported only if it
is switched on. OpenTelemetry gets a span of each answer, and within it of each time that is
watched, if its package is there; without a provider that somebody has set up, it drops them.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from functools import cache, partial, wraps
from time import perf_counter, time_ns
from typing import Any

from aws_lambda_powertools import Logger, Metrics, single_metric
from aws_lambda_powertools.logging.filters import SuppressFilter
from aws_lambda_powertools.metrics import EphemeralMetrics, MetricUnit

from .budget import Handler
from .context import assigned
from .printable import printable_json
from .request_id import add_request_id

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

BY_LAKE = {
    "Requests": (MetricUnit.Milliseconds, 1000),
    "Database": (MetricUnit.Milliseconds, 1000),
    **{name: (METRICS[name], 1) for name in ("LoadTable", "Commit", "PlanTableScan", "Refusals")},
}
"""What CloudWatch gets with the dimension `lake` if there are several lakes: its unit, and what a
value is multiplied by. Each further name would be a custom metric for each lake."""

metrics = Metrics(namespace=NAMESPACE, service=SERVICE)


class Invocation:
    """The lake by which the metrics of an invocation are reported."""

    def __init__(self) -> None:
        self.lake = ""
        """A lake of the deployment, never a name that a client made up; empty: none yet."""
        self._by_lake: EphemeralMetrics | None = None

    def begin(self, lake: str, *, is_one_of_several: bool) -> None:
        """Report the metrics that follow by this lake."""
        self.end()
        self.lake = lake
        if is_one_of_several and _is_on():
            self._by_lake = EphemeralMetrics(namespace=NAMESPACE, service=SERVICE)
            self._by_lake.add_dimension("lake", lake)

    def add(self, name: str, value: float) -> None:
        """Add the value of a metric, if it is one of `BY_LAKE`."""
        if self._by_lake is not None and name in BY_LAKE:
            unit, scale = BY_LAKE[name]
            self._by_lake.add_metric(name, unit, value * scale)

    def end(self) -> None:
        """Write out the metrics by lake."""
        if self._by_lake is not None and self._by_lake.metric_set:
            self._by_lake.flush_metrics()
        self._by_lake = None


# An object that is changed: a variable that a task of an event loop sets in its context ends with
# the task.
_invocation: ContextVar[Invocation | None] = ContextVar("invocation", default=None)


def use_lake(name: str, *, is_one_of_several: bool) -> None:
    """Report the metrics of this invocation by a lake of the deployment from now on."""
    if (current := _invocation.get()) is not None and current.lake != name:
        current.begin(name, is_one_of_several=is_one_of_several)


Watcher = Callable[[str, float, Mapping[str, str]], None]
"""Gets the name of a metric, a value, and the labels that distinguish it from others of the
name."""

# On AWS there are no watchers: they would cost a custom metric for each operation and status.
_watchers: ContextVar[tuple[Watcher, ...]] = ContextVar("watchers", default=())


def watching(*watchers: Watcher) -> AbstractContextManager[None]:
    """Give each value of the block to these watchers, and to those of the context."""
    return assigned(_watchers, (*_watchers.get(), *watchers))


def watched(function: Callable[[], object]) -> Callable[[], None]:
    """A function for a thread of its own, whose values go to the current watchers."""
    watchers = _watchers.get()

    def run() -> None:
        with watching(*watchers):
            function()

    return run


def observe(name: str, value: float, **labels: str) -> None:
    """Report a value to the watchers, and to CloudWatch by lake."""
    current = _invocation.get()
    if current is not None:
        current.add(name, value)
    labels["lake"] = "" if current is None else current.lake
    for watcher in _watchers.get():
        watcher(name, value, labels)


@contextmanager
def observe_seconds(name: str, **labels: str) -> Iterator[None]:
    """Report the seconds of the block, also if it raises."""
    started = perf_counter()
    try:
        yield
    finally:
        observe(name, perf_counter() - started, **labels)


def count(name: str, value: float = 1) -> None:
    """Add a value to a metric of this invocation; nothing if metrics are switched off.

    Args:
        name: one of `METRICS`.
        value: in the unit of the metric.
    """
    observe(name, value)
    if _is_on():
        metrics.add_metric(name, METRICS[name], value)


def count_refusal(reason: str) -> None:
    """Write out one `Refusals`, with the type or code of the error as its reason."""
    observe("Refusals", 1, reason=reason)
    if not _is_on():
        return
    # Written alone: a dimension applies to all metrics that are written together.
    with single_metric("Refusals", METRICS["Refusals"], 1, namespace=NAMESPACE) as refusals:
        refusals.add_dimension("service", SERVICE)
        refusals.add_dimension("reason", reason)


@contextmanager
def timed(name: str) -> Iterator[None]:
    """Add the milliseconds of the block to a metric, if it raises nothing."""
    started = perf_counter()
    yield
    count(name, (perf_counter() - started) * 1000)


@contextmanager
def invocation() -> Iterator[None]:
    """Report the metrics of the block by the lake that it is about, at its end; as a decorator, of
    each call."""
    current = Invocation()
    try:
        with assigned(_invocation, current):
            yield
    finally:
        current.end()
        # Powertools warns of an invocation without metrics.
        if metrics.metric_set:
            metrics.flush_metrics()


def _is_on() -> bool:
    is_off = os.environ.get("POWERTOOLS_METRICS_DISABLED", "").lower() in {"true", "1"}
    return _is_in_lambda() and not is_off


def function_logger(service: str) -> Logger:
    """The log of a function: in Lambda for CloudWatch, elsewhere warnings on stderr.

    The stdout of a program that imports a function belongs to that program: if no one reads it, the
    program would stop when the pipe is full.
    """
    json_line = partial(printable_json, default=str, separators=(",", ":"))
    if _is_in_lambda():
        return Logger(service=service, json_serializer=json_line)
    level = os.environ.get("POWERTOOLS_LOG_LEVEL", "WARNING")
    logger = Logger(service=service, level=level, stream=sys.stderr, json_serializer=json_line)
    logger.registered_handler.addFilter(add_request_id)
    _narrow_filters(service)
    return logger


def _narrow_filters(service: str) -> None:
    """Powertools lets the handlers of root drop what a logger writes whose name has that of the
    service anywhere in it, as `polynya_local.page.app` has. Let them drop only what the log of the
    service has already."""
    is_of_service = logging.Filter(service).filter
    for handler in logging.root.handlers:
        for wide in [*handler.filters]:
            if isinstance(wide, SuppressFilter) and wide.logger == service:
                handler.removeFilter(wide)
                handler.addFilter(lambda record: not is_of_service(record))


def _is_in_lambda() -> bool:
    return "AWS_LAMBDA_FUNCTION_NAME" in os.environ


def traced(handler: Handler) -> Handler:
    """Decorate a Lambda handler: each invocation is a span of OpenTelemetry, if its package is
    there, and with POWERTOOLS_TRACE_DISABLED=false a subsegment of X-Ray."""
    if (spans := open_telemetry()) is not None:
        handler = spans.spanning(handler)
    if os.environ.get("POWERTOOLS_TRACE_DISABLED", "true").lower() not in {"false", "0"}:
        return handler
    from aws_lambda_powertools import Tracer

    tracer = Tracer(patch_modules=("botocore",))
    # An answer may contain vended credentials.
    wrapped: Handler = tracer.capture_lambda_handler(handler, capture_response=False)
    return wrapped


def spanned(headers: Mapping[str, str]) -> AbstractContextManager[None]:
    """Make a span of OpenTelemetry of the block, if its package is there.

    Args:
        headers: of the request, by lower-case name.
    """
    spans = open_telemetry()
    return nullcontext() if spans is None else spans.span(headers)


@cache
def open_telemetry() -> "Spans | None":
    """Turns observed values into spans; None: the package is not there."""
    try:
        from opentelemetry import propagate, trace
    except ImportError:
        return None
    return Spans(trace, propagate.extract)


SPANS: dict[str, tuple[str, str, dict[str, str]]] = {
    "Database": ("statement", "CLIENT", {"db.system.name": "postgresql"}),
    "AwsCalls": ("request", "CLIENT", {"rpc.system.name": "aws-api"}),
    "Encoding": ("encoding", "INTERNAL", {}),
}
"""The name, the kind and the attributes of the span of each time that is watched."""


class Spans:
    """Spans of OpenTelemetry. No span has a name of a table, a value, a path or a message."""

    def __init__(self, trace: Any, extract: Callable[[Mapping[str, str]], Any]) -> None:
        """No span is made before it is needed.

        Args:
            trace: the module of OpenTelemetry's API.
            extract: gives the context that a caller has sent in headers.
        """
        self._trace, self._extract = trace, extract
        self._tracer = trace.get_tracer("polynya")

    def spanning(self, handler: Handler) -> Handler:
        """Decorate a Lambda handler: each invocation is a span."""

        @wraps(handler)
        def spanning_handler(event: Any, context: Any) -> Any:
            with self.span(_headers(event)):
                return handler(event, context)

        return spanning_handler

    @contextmanager
    def span(self, headers: Mapping[str, str]) -> Iterator[None]:
        """Make a span of the block, within the caller's if it has sent one. An error is no event
        of it, because its message may hold a value."""
        # A layer that instruments the function has begun a span already.
        is_within = self._trace.get_current_span().get_span_context().is_valid
        begun = self._tracer.start_as_current_span(
            SERVICE,
            None if is_within else self._extract(headers),
            self._trace.SpanKind.SERVER,
            record_exception=False,
            set_status_on_exception=False,
        )
        with watching(self), begun as span:
            try:
                yield
            except BaseException as error:
                span.set_attribute("error.type", type(error).__name__)
                span.set_status(self._trace.StatusCode.ERROR)
                raise

    def __call__(self, name: str, value: float, labels: Mapping[str, str]) -> None:
        """Make a span of a time that has passed, or add to the one of the invocation."""
        span = self._trace.get_current_span()
        if not span.is_recording():
            return
        if name in SPANS:
            span_name, kind, attributes = SPANS[name]
            end = time_ns()
            self._tracer.start_span(
                " ".join([text for key, text in labels.items() if key != "lake"] + [span_name]),
                kind=self._trace.SpanKind[kind],
                attributes=attributes,
                start_time=end - int(value * 1e9),
            ).end(end)
        elif name == "Requests":
            span.update_name(labels["operation"])
            span.set_attribute("http.response.status_code", int(labels["status"]))
            if int(labels["status"]) >= 500:
                span.set_status(self._trace.StatusCode.ERROR)
        elif name == "Refusals":
            span.set_attribute("error.type", labels["reason"])


def _headers(event: Any) -> dict[str, str]:
    """The headers of a request to API Gateway or S3 Object Lambda, by lower-case name."""
    request = event if "headers" in event else event.get("userRequest", {})
    return {name.lower(): value for name, value in request.get("headers", {}).items()}
