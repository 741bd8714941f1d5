"""One instance of an AWS Lambda function: a handler that serves one event at a time."""

import asyncio
import json
import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Any
from uuid import uuid4

from botocore.exceptions import BotoCoreError, ClientError

from .confinement import Confinement

logger = logging.getLogger(__name__)

Handler = Callable[[dict[str, Any], Any], Any]

ACCOUNT = "123456789012"
"""The account in all ARNs."""

# "Exceeded maximum allowed payload size (6291556 bytes)": as Lambda's own error message has it,
# for the JSON of the answer, base64 included.
# https://docs.aws.amazon.com/lambda/latest/dg/gettingstarted-limits.html
ANSWER_LIMIT = 6 * 1024 * 1024 + 100


class FunctionError(Exception):
    """The function raised an error, or its answer exceeds Lambda's limit."""


@dataclass(frozen=True, slots=True)
class LambdaContext:
    """The context object of an invocation; its names are AWS's."""

    function_name: str
    memory_limit_in_mb: int
    invoked_function_arn: str
    aws_request_id: str
    deadline: float
    function_version: str = "$LATEST"

    @property
    def log_group_name(self) -> str:
        return f"/aws/lambda/{self.function_name}"

    @property
    def log_stream_name(self) -> str:
        return "local"

    def get_remaining_time_in_millis(self) -> int:
        return max(0, int((self.deadline - time.monotonic()) * 1000))


InstanceOf = Callable[[dict[str, Any]], str]
"""Names the instance that gets an event."""


class LambdaFunction:
    """Runs a handler in a thread of its own, one event at a time; concurrent callers queue.

    An instance on AWS also serves one event at a time, and a handler has one PostgreSQL
    connection, which two threads must not share. On AWS a second caller gets a second instance;
    here there is one for each lake, so that no lake waits for another.
    """

    def __init__(
        self,
        name: str,
        handler: Handler,
        *,
        region: str,
        timeout_s: float,
        confinement: Confinement | None = None,
        instance_of: InstanceOf = lambda event: "",
    ) -> None:
        """Start no thread yet.

        Args:
            timeout_s: the seconds that the handler has, as its context says; not enforced.
            confinement: the packages and permissions of the function; None: those of this process.
            instance_of: names the instance that gets an event.
        """
        self._name = name
        self._handler = handler
        self._arn = f"arn:aws:lambda:{region}:{ACCOUNT}:function:{name}"
        self._timeout_s = timeout_s
        self._confinement = confinement
        self._instance_of = instance_of
        self._threads: dict[str, ThreadPoolExecutor] = {}
        self._lock = Lock()

    def invoke(self, event: dict[str, Any]) -> Any:
        """The handler's answer to an event; both are converted to JSON and back, as on AWS.

        Raises:
            FunctionError: the handler raised an error, or the answer is too large.
        """
        try:
            answer = self._thread(event).submit(self._run, json.dumps(event)).result()
        except (BotoCoreError, ClientError) as error:
            # AWS or the credentials for it: nothing that a traceback explains.
            logger.error("the function %s failed: %s", self._name, " ".join(str(error).split()))
            raise FunctionError(f"{self._name} raised {type(error).__name__}") from error
        except (Exception, SystemExit) as error:
            logger.exception("the function %s failed", self._name)
            raise FunctionError(f"{self._name} raised {type(error).__name__}") from error
        if len(answer.encode()) > ANSWER_LIMIT:
            reason = f"the answer of {self._name} is over Lambda's limit of {ANSWER_LIMIT} bytes"
            logger.error(reason)
            raise FunctionError(reason)
        return json.loads(answer)

    def stop(self) -> None:
        """Finish the events under way and end the threads."""
        for thread in self._threads.values():
            thread.submit(_close_event_loop)
        for thread in self._threads.values():
            thread.shutdown(wait=True)

    def _thread(self, event: dict[str, Any]) -> ThreadPoolExecutor:
        instance = self._instance_of(event)
        with self._lock:
            if instance not in self._threads:
                self._threads[instance] = ThreadPoolExecutor(
                    1, f"lambda-{self._name}", initializer=_begin, initargs=(self._confinement,)
                )
            return self._threads[instance]

    def _run(self, event: str) -> str:
        started = time.monotonic()
        context = LambdaContext(
            function_name=self._name,
            memory_limit_in_mb=1769,  # as in template.yaml: one CPU
            invoked_function_arn=self._arn,
            aws_request_id=str(uuid4()),
            deadline=started + self._timeout_s,
        )
        answer = json.dumps(self._handler(json.loads(event), context), ensure_ascii=False)
        if (seconds := time.monotonic() - started) > self._timeout_s:
            # Not enforced: a thread cannot be ended, and AWS has another CPU.
            logger.warning(
                "%s took %.1f s; AWS gives it %s s", self._name, seconds, self._timeout_s
            )
        return answer


def _begin(confinement: Confinement | None) -> None:
    if confinement is not None:
        confinement.enter()
    # Mangum uses the event loop of its thread; only the main thread has one by default.
    asyncio.set_event_loop(asyncio.new_event_loop())


def _close_event_loop() -> None:
    asyncio.get_event_loop().close()
    asyncio.set_event_loop(None)
