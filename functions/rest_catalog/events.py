"""Publishes the events of the lakes on EventBridge, each time the schedule of the template says so.

It has the packages of the catalog's function, and a role of its own.
"""

import os
import random
from typing import Any

from polynya.aws_lambda.function_lakes import FunctionLakes
from polynya.catalog import events
from polynya.catalog.reader import open_catalog
from polynya.runtime.budget import budgeted
from polynya.runtime.errors import PolynyaError, log_fields
from polynya.runtime.metrics import function_logger, invocation, traced
from polynya.storage.event_bus import EventBus, Positions

logger = function_logger("events")
lakes = FunctionLakes(os.environ, open_catalog)

RESERVE_SECONDS = 3
"""The part of Lambda's timeout in which a failure is logged."""


@traced
@invocation()
@budgeted(RESERVE_SECONDS)
@logger.inject_lambda_context
def handler(event: Any, context: Any) -> dict[str, Any]:
    """Publish what has happened since the last invocation."""
    config = lakes().config
    bus = EventBus(config.event_bus, lambda: lakes.aws("events"))
    positions = Positions(config.events_table, lambda: lakes.aws("dynamodb"))
    failure: PolynyaError | None = None
    numbers: list[int] = []
    names = lakes().names()
    # Not always in the same order: one with much to publish leaves no time to those after it.
    for name in random.sample(names, len(names)):
        try:
            number = events.publish(lakes().named(name), bus, positions)
        except PolynyaError as error:
            # The other lakes are published.
            logger.error("events are not published", lake=name, reason=str(error))
            failure = error
            continue
        except Exception as error:
            logger.error("events are not published", lake=name, **log_fields(error))
            # Lambda writes the message of what is raised into the log, too.
            failure = PolynyaError("an unexpected error; see the log")
            continue
        logger.info("events", lake=name, published=number)
        numbers += [] if number is None else [number]
    if failure is not None:
        raise failure  # Lambda counts the invocation as failed, for which there is an alarm
    return {"published": sum(numbers) if numbers else None}
