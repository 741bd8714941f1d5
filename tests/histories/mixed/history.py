"""Runs a mixed history: each operation on the lake and on the twin, and what is wrong then."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import duckdb as engine

from .clients.execution import Outcome, Unexpected, perform
from .ending import LastJudge
from .judge import Judge
from .operations import Operation
from .scene import Scene


@dataclass
class Result:
    """What became of a history."""

    operations: list[Operation] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    """What is wrong after the last operation; empty: nothing ever was."""
    outcomes: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    """How often who did what with which outcome."""
    refusals: Counter[str] = field(default_factory=Counter)
    landed: list[Operation] = field(default_factory=list)
    """The operations without those that were refused."""


def run(scene: Scene, operations: Iterable[Operation], seed: int) -> Result:
    """Run operations until something is wrong, or to their end."""
    result, judge = Result(), Judge(scene, seed)
    steps = iter(operations)
    try:
        while not result.wrong and (operation := next(steps, None)) is not None:
            result.operations.append(operation)
            result.wrong += _happen(scene, judge, operation, result)
        if not result.wrong:
            result.wrong += LastJudge(judge).everything()
    except engine.FatalException as error:
        result.wrong.append(f"natively: {error}")
    return result


def _happen(scene: Scene, judge: Judge, operation: Operation, result: Result) -> Iterator[str]:
    if operation.is_native:
        yield from _native(scene, judge, operation, result)
        return
    newest = scene.newest()
    prints: dict[str, str] = {}

    def between() -> None:
        nonlocal newest, prints
        for one in operation.between:
            _natively(scene, one, result)
        if operation.between:
            judge.read_row_ids()
        newest, prints = scene.newest(), scene.fingerprints()

    try:
        if not operation.between and operation.by != "PyIceberg":
            between()
        outcome, words = perform(scene, operation, between)
    except Unexpected as error:
        yield f"{operation.by} {operation.kind}: {error}"
        return
    result.outcomes[operation.by, operation.kind, outcome] += 1
    if outcome == Outcome.DONE:
        result.landed.append(operation)
    else:
        result.landed += operation.between
    if outcome != Outcome.DONE:
        result.refusals[f"{operation.by} {operation.kind}: {outcome}: {words[:300]}"] += 1
        yield from _unchanged(prints, scene.fingerprints())
        if outcome == Outcome.CONFLICT and not operation.between:
            yield f"{operation.by} {operation.kind}: a conflict with nobody: {words}"
    else:
        scene.attach_again()
        if not operation.between or scene.newest() > newest:
            scene.change_twin(operation.twin)
        # Else it commits nothing: there were no such rows when it loaded the table.
        scene.record()
        if (made := scene.newest() - newest) > 1:
            yield f"{operation.by} {operation.kind}: {made} snapshots for one commit"
        for snapshot_id in range(newest + 1, scene.newest() + 1):
            yield from judge.feed(snapshot_id)
    yield from judge.now()
    yield from judge.wrong_row_ids(operation)


def _unchanged(before: dict[str, str], after: dict[str, str]) -> Iterator[str]:
    for name in before.keys() | after.keys():
        if before.get(name) != after.get(name):
            yield f"a refused operation has changed {name}"


def _native(scene: Scene, judge: Judge, operation: Operation, result: Result) -> Iterator[str]:
    result.landed.append(operation)
    _natively(scene, operation, result)
    yield from judge.now()
    yield from judge.wrong_row_ids(operation)


def _natively(scene: Scene, operation: Operation, result: Result) -> None:
    """A native operation; nothing happens if DuckLake refuses it."""
    outcome = Outcome.DONE
    try:
        scene.native(operation.by, operation.statements)
    except engine.Error as error:
        outcome = Outcome.REFUSED
        result.refusals[f"{operation.by} {operation.kind}: {str(error)[:300]}"] += 1
    else:
        scene.change_twin(operation.twin)
        scene.record()
        if operation.kind == "maintain":
            scene.attach_again()
    result.outcomes[operation.by, operation.kind, outcome] += 1
