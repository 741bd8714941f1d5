"""Publishes the events of the lakes on EventBridge, each time the schedule of the template says so.

It has the packages of the catalog's function, and a role of its own.
"""

from functools import cache
from typing import Any

from polynya.catalog import events
from polynya.catalog.open_catalog import Lakes, catalog_of
from polynya.catalog.reader import Catalog
from polynya.runtime.budget import budgeted
from polynya.runtime.errors import log_fields
from polynya.runtime.metrics import function_logger, published, traced
from polynya.runtime.settings import Config
from polynya.storage.event_bus import EventBus, Positions
from polynya.storage.objects import object_reader

logger = function_logger("events")

RESERVE_SECONDS = 3
"""The part of Lambda's timeout in which a failure is logged."""


@cache
def lakes() -> Lakes[Catalog]:
    """The lakes of the settings; no database is connected yet.

    Raises:
        Misconfigured: a setting is missing or not usable.
    """
    return Lakes(
        Config.from_env(), lambda config, lakes: catalog_of(config, lakes, object_reader())
    )


@traced
@published
@budgeted(RESERVE_SECONDS)
@logger.inject_lambda_context
def handler(event: Any, context: Any) -> dict[str, Any]:
    """Publish what has happened since the last invocation."""
    config = lakes().config
    bus, positions = EventBus(config.event_bus), Positions(config.events_table)
    failure: Exception | None = None
    numbers: list[int] = []
    for name in lakes().names():
        try:
            number = events.publish(lakes().named(name), bus, positions)
        except Exception as error:
            # The other lakes are published.
            logger.error("events are not published", lake=name, **log_fields(error))
            failure = error
            continue
        logger.info("events", lake=name, published=number)
        numbers += [] if number is None else [number]
    if failure is not None:
        raise failure  # Lambda counts the invocation as failed, for which there is an alarm
    return {"published": sum(numbers) if numbers else None}
