"""What is counted: lines in CloudWatch's embedded format on stdout, one for each invocation."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from time import perf_counter
from typing import Any

from aws_lambda_powertools import Metrics, single_metric
from aws_lambda_powertools.metrics import MetricUnit

NAMESPACE = os.environ.get("POWERTOOLS_METRICS_NAMESPACE", "Polynya")
SERVICE = os.environ.get("POWERTOOLS_SERVICE_NAME", "polynya")
METRICS = {
    "LoadTable": MetricUnit.Milliseconds,
    "Hits": MetricUnit.Count,
    "Builds": MetricUnit.Count,
    "BytesServed": MetricUnit.Bytes,
    "CredentialsVended": MetricUnit.Count,
    "StoreFailures": MetricUnit.Count,
    "BrokenItems": MetricUnit.Count,
    "Refusals": MetricUnit.Count,
}
"""By name; `Refusals` have the dimension `reason`."""

metrics = Metrics(namespace=NAMESPACE, service=SERVICE)


def count(name: str, value: float = 1) -> None:
    if _is_on():
        metrics.add_metric(name, METRICS[name], value)


def count_refusal(reason: str) -> None:
    if not _is_on():
        return
    with single_metric("Refusals", METRICS["Refusals"], 1, namespace=NAMESPACE) as refusals:
        refusals.add_dimension("service", SERVICE)
        refusals.add_dimension("reason", reason)


@contextmanager
def timed(name: str) -> Iterator[None]:
    started = perf_counter()
    yield
    count(name, (perf_counter() - started) * 1000)


def published(handler: Callable[[dict[str, Any], Any], Any]) -> Callable[..., Any]:
    """The handler; what it counted is written out when it has answered."""

    @wraps(handler)
    def publishing(event: dict[str, Any], context: Any) -> Any:
        try:
            return handler(event, context)
        finally:
            if metrics.metric_set:
                metrics.flush_metrics()

    return publishing


def _is_on() -> bool:
    return os.environ.get("POWERTOOLS_METRICS_DISABLED", "").lower() not in {"true", "1"}
