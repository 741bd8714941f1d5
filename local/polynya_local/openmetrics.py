"""The metrics of `polynya serve`: `/metrics`, in the text format of OpenMetrics.

https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md
"""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from prometheus_client import Metric as PrometheusMetric
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST, generate_latest

PATH = "/metrics"
CONTENT_TYPE = CONTENT_TYPE_LATEST

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 60)
"""The bounds of histograms: API Gateway waits 30 s, S3 Object Lambda 60 s."""

LAKE = "lake"
"""The label of all metrics: a lake; empty: a request that names none, or one of the page."""

COUNT, HISTOGRAM = "count", "histogram"

FOLDER_OF_WORKERS = "PROMETHEUS_MULTIPROC_DIR"
"""The variable of prometheus_client with the folder in which processes keep their values. It is
read when the package is imported, so the supervisor of the workers sets it."""


@dataclass(frozen=True, slots=True)
class Metric:
    """How the values of one name in `polynya.runtime.metrics` are shown."""

    name: str
    help: str
    kind: str = COUNT
    labels: tuple[str, ...] = ()
    """Besides `lake`, which all have."""
    scale: float = 1
    """The factor for a value: OpenMetrics has seconds, CloudWatch milliseconds."""


METRICS = {
    "Requests": Metric(
        "polynya_request_seconds",
        "Time of a request, by operation and status.",
        HISTOGRAM,
        ("operation", "status"),
    ),
    "LoadTable": Metric("polynya_load_table_seconds", "Time of loadTable.", HISTOGRAM, (), 0.001),
    "Commit": Metric("polynya_commit_seconds", "Time of a commit.", HISTOGRAM, (), 0.001),
    "PlanTableScan": Metric(
        "polynya_plan_table_scan_seconds",
        "Time of planTableScan and fetchScanTasks.",
        HISTOGRAM,
        (),
        0.001,
    ),
    "Database": Metric("polynya_database_seconds", "Time of a statement in PostgreSQL.", HISTOGRAM),
    "AwsCalls": Metric(
        "polynya_aws_call_seconds",
        "Time of a request to S3 and other services.",
        HISTOGRAM,
        ("service",),
    ),
    "Encoding": Metric(
        "polynya_encoding_seconds", "Time to encode a generated file as Avro or Parquet.", HISTOGRAM
    ),
    "Hits": Metric("polynya_hits", "Generated files that were cached."),
    "Builds": Metric("polynya_builds", "Files that were generated."),
    "GeneratedBytes": Metric("polynya_generated_bytes", "Bytes of files that were generated."),
    "BytesServed": Metric("polynya_served_bytes", "Bytes of generated files that were sent."),
    "CredentialsVended": Metric("polynya_credentials_vended", "Credentials given to clients."),
    "StoreFailures": Metric("polynya_store_failures", "Requests that the cache did not answer."),
    "BrokenItems": Metric("polynya_broken_items", "Cached files that did not match a checksum."),
    "Refusals": Metric(
        "polynya_refusals", "Answers that are errors, by the type of error.", labels=("reason",)
    ),
}
"""A test compares the names with `polynya.runtime.metrics.METRICS`."""

Shown: TypeAlias = Counter | Histogram


@dataclass(frozen=True, slots=True)
class _Visible:
    """What a caller may see of a registry."""

    registry: CollectorRegistry
    is_visible: Callable[[str], bool]

    def collect(self) -> Iterator[PrometheusMetric]:
        """The metrics with the samples of lakes that the caller may see."""
        for metric in self.registry.collect():
            lakes = ((sample, sample.labels.get(LAKE)) for sample in metric.samples)
            metric.samples = [s for s, lake in lakes if not lake or self.is_visible(lake)]
            yield metric


class OpenMetrics:
    """The values since the process began; it may be watched from several threads."""

    def __init__(self, mirror_ages: Mapping[str, Callable[[], float]] | None = None) -> None:
        """Begin at zero.

        Args:
            mirror_ages: for each lake in a file the seconds since it was compared with its copy.
        """
        self._registry = CollectorRegistry()
        self._shown = {name: self._new(metric) for name, metric in METRICS.items()}
        if mirror_ages:
            age = Gauge(
                "polynya_mirror_age_seconds",
                "Time since the lake's file was last compared with the copy that is served.",
                (LAKE,),
                registry=self._registry,
            )
            for lake, seconds in mirror_ages.items():
                age.labels(lake).set_function(seconds)

    def __call__(self, name: str, value: float, labels: Mapping[str, str]) -> None:
        """Add a value: a watcher of `polynya.runtime.metrics`."""
        metric, shown = METRICS[name], self._shown[name]
        child = shown.labels(**labels)
        if isinstance(child, Histogram):
            child.observe(value * metric.scale)
        else:
            child.inc(value * metric.scale)

    def text(self, is_visible: Callable[[str], bool]) -> bytes:
        """The values in the text format; those of all workers together.

        Args:
            is_visible: whether the caller may see a lake; the values of others are left out.
        """
        registry = self._registry
        if folder := os.environ.get(FOLDER_OF_WORKERS):
            registry = CollectorRegistry()
            MultiProcessCollector(registry, folder)  # type: ignore[no-untyped-call]
        visible = _Visible(registry, cache(is_visible))
        return bytes(generate_latest(visible))  # type: ignore[no-untyped-call]

    def _new(self, metric: Metric) -> Shown:
        labels = (*metric.labels, LAKE)
        if metric.kind == HISTOGRAM:
            return Histogram(
                metric.name, metric.help, labels, registry=self._registry, buckets=SECONDS
            )
        return Counter(metric.name, metric.help, labels, registry=self._registry)
