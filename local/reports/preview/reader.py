"""Asks the process that reads, and ends it if it does not answer in time."""

import multiprocessing
import time
from dataclasses import replace
from threading import Lock
from typing import Any

from polynya.errors import BadRequest

from .answers import Answer, Limits, Question, Refusal
from .databases import Endpoints
from .worker import END, FAILED, STARTED, run

START_SECONDS = 60.0
"""For the start of the process, which takes one on an idle machine."""
GRACE_SECONDS = 3.0
"""For DuckDB to stop after an interrupt."""

PARTS = ("rows", "planned", "iceberg", "native")
NOT_IN_TIME = "it took too long, and was stopped"


class PreviewReader:
    """One process at most; questions queue."""

    def __init__(self, endpoints: Endpoints, limits: Limits | None = None) -> None:
        """Nothing is started yet."""
        self._endpoints = endpoints
        self.limits = limits or Limits()
        """Of the next questions."""
        self._lock = Lock()
        self._process: multiprocessing.process.BaseProcess | None = None

    def answer(self, question: Question) -> Answer:
        """What comes within the time.

        Raises:
            BadRequest: a value of the filter is none of its column's type.
        """
        with self._lock:
            try:
                return self._ask(question)
            except (EOFError, OSError):
                code = self._exit_code()
                self._end()
                sentence = f"the process that reads ended with {code}"
                return Answer(notes=dict.fromkeys(PARTS, sentence))

    def close(self) -> None:
        """End the process, if there is one."""
        with self._lock:
            self._end()

    def _ask(self, question: Question) -> Answer:
        self._start()
        self._pipe.send((question, self.limits))
        deadline = time.monotonic() + START_SECONDS
        answer, name = Answer(), ""
        while name != END:
            if not self._pipe.poll(max(0.0, deadline - time.monotonic())):
                self._end()
                return _noted(answer, NOT_IN_TIME)
            name, part = self._pipe.recv()
            if name == STARTED:
                deadline = time.monotonic() + self.limits.seconds + GRACE_SECONDS
            elif name == FAILED:
                return _noted(answer, part)
            elif isinstance(part, Refusal):
                self._pipe.recv()  # END
                raise BadRequest(part.sentence)
            elif name != END:
                answer = _with(answer, name, part)
        return answer

    def _start(self) -> None:
        if self._process is not None and self._process.is_alive():
            return
        self._end()
        # `spawn`: the child shares no DuckDB and no threads with this process.
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=run, args=(theirs, self._endpoints), daemon=True)
        self._process.start()
        theirs.close()  # otherwise reading would not end with the child

    def _exit_code(self) -> int | None:
        if self._process is None:
            return None
        self._process.join(1)
        return self._process.exitcode

    def _end(self) -> None:
        if self._process is None:
            return
        self._pipe.close()
        self._process.kill()
        self._process.join()
        self._process.close()
        self._process = None


def _with(answer: Answer, name: str, part: Any) -> Answer:
    """The answer with one more part, or with a note about it."""
    if name == "note":
        return replace(answer, notes={**answer.notes, "iceberg": part, "native": part})
    if isinstance(part, str):
        return replace(answer, notes={**answer.notes, name: part})
    return replace(answer, **{name: part})


def _noted(answer: Answer, sentence: str) -> Answer:
    """The answer with a note for each part that is missing."""
    missing = [p for p in PARTS if getattr(answer, p) is None and p not in answer.notes]
    return replace(answer, notes={**answer.notes, **dict.fromkeys(missing, sentence)})
