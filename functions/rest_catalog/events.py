"""Publishes the lake's events on EventBridge, each time the schedule of the template says so.

It has the packages of the catalog's function, and a role of its own.
"""

from functools import cache
from typing import Any

from polynya.catalog import events
from polynya.catalog.open_catalog import catalog_of
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
def open_catalog() -> Catalog:
    """The lake of the settings; the database is not connected yet.

    Raises:
        Misconfigured: a setting is missing or not usable.
    """
    return catalog_of(Config.from_env(), object_reader())


@traced
@published
@budgeted(RESERVE_SECONDS)
@logger.inject_lambda_context
def handler(event: Any, context: Any) -> dict[str, Any]:
    """Publish what has happened since the last invocation."""
    catalog = open_catalog()
    bus, positions = EventBus(catalog.settings.event_bus), Positions(catalog.settings.events_table)
    try:
        number = events.publish(catalog, bus, positions)
    except Exception as error:
        # Lambda counts the invocation as failed, for which there is an alarm.
        logger.error("events are not published", **log_fields(error))
        raise
    logger.info("events", published=number)
    return {"published": number}
