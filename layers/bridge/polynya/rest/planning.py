"""Bodies of planTableScan and fetchScanTasks, under their names in the specification.

Filters (`Predicate`) are a closed grammar. Both spellings are read: `term` and `value`, which
today's clients send, and `child`, `left` and `right`, which the specification prefers. A term that
is no field (a transform, a function) is valid, but no file can be skipped by it.
"""

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, TypeAdapter, ValidationError

from ..runtime.errors import BadRequest
from .schemas import Body, malformed

Parsed = TypeVar("Parsed")

Long = Annotated[int, Field(ge=-(2**63), lt=2**63)]
"""A 64-bit number of the specification; Python's have no limit, and some cannot become floats."""

SnapshotId = Long | None


class PlanTableScanRequest(Body):
    snapshot_id: SnapshotId = None
    select: list[str] | None = None
    filter: Any = None
    """As JSON; `filter_of` reads it."""
    case_sensitive: bool = True
    use_snapshot_schema: bool = False
    start_snapshot_id: SnapshotId = None
    end_snapshot_id: SnapshotId = None


class FetchScanTasksRequest(Body):
    plan_task: str = Field(max_length=200_000)


def parse(kind: type[Parsed], body: bytes) -> Parsed:
    """The body of a request.

    Raises:
        BadRequest: it does not have the form of the specification; the message says where.
    """
    try:
        # Not by pydantic's own parser, which stops at 200 levels: a filter of 300 alternatives has
        # as many. Python's reads NaN and infinities, which are no JSON.
        document = json.loads(body, parse_constant=_refuse, parse_float=_finite)
        if SURROGATE.search(body):
            json.dumps(document, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise BadRequest("the body is not JSON") from None
    return validated(kind, document)


def validated(kind: type[Parsed] | Any, thing: Any) -> Parsed:
    """JSON that has the form of a model.

    Raises:
        BadRequest: it does not; the message says where, without the value, which can be anything.
    """
    try:
        parsed: Parsed = TypeAdapter(kind).validate_python(thing)
    except ValidationError as error:
        raise malformed(error) from None
    return parsed


# JSON can have one half of a surrogate pair, which cannot be sent or logged as text.
SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def _finite(text: str) -> float:
    """A finite number: no answer could repeat `1e999`."""
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"{text} is no number")
    return number


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


MOST_LEVELS = 100
"""The deepest nesting that is accepted. A chain of `and` or of `or` is one level."""

Value = bool | int | float | str


class Reference(Body):
    """A field by its id or its name; older clients write the name as `term`."""

    type: Literal["reference"]
    name: str | None = None
    term: str | None = None
    id: int | None = None


class Computed(Body):
    """A transform or a function of fields."""

    type: Literal["transform", "apply"]


class TypedValue(Body):
    """A literal with its type."""

    type: Literal["literal"]
    value: Value


class TypedValues(Body):
    """Literals with their type."""

    type: Literal["literals"]
    values: list[Value]


Term = str | Annotated[Reference | Computed, Field(discriminator="type")]
Operand = Value | Annotated[Reference | Computed | TypedValue, Field(discriminator="type")]


class UnaryPredicate(Body):
    """A test of one term."""

    type: Literal["is-null", "not-null", "is-nan", "not-nan"]
    child: Term | None = None
    term: Term | None = None


class ComparisonPredicate(Body):
    """A comparison of a term with a value."""

    type: Literal["lt", "lt-eq", "gt", "gt-eq", "eq", "not-eq", "starts-with", "not-starts-with"]
    left: Operand | None = None
    right: Operand | None = None
    term: Term | None = None
    value: Value | TypedValue | None = None


class SetPredicate(Body):
    """A test whether a term is one of some values."""

    type: Literal["in", "not-in"]
    child: Term | None = None
    term: Term | None = None
    values: list[Value | TypedValue] | TypedValues


Leaf = Annotated[UnaryPredicate | ComparisonPredicate | SetPredicate, Field(discriminator="type")]


@dataclass(frozen=True, slots=True)
class Predicate:
    """A test of one field."""

    operation: str
    """The `type` in JSON."""
    field: str | int | None
    """Its name or its id; None: a term that is not just a field."""
    values: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class And:
    """Rows that all of the parts select."""

    parts: tuple["Filter", ...]


@dataclass(frozen=True, slots=True)
class Or:
    """Rows that one of the parts selects."""

    parts: tuple["Filter", ...]


@dataclass(frozen=True, slots=True)
class Not:
    """Rows that the child does not select."""

    child: "Filter"


Filter = Predicate | And | Or | Not

TRUE, FALSE = And(()), Or(())

CONSTANTS: dict[str, Filter] = {"true": TRUE, "false": FALSE}
CHAINS: dict[str, Callable[[tuple[Filter, ...]], Filter]] = {"and": And, "or": Or}


def filter_of(thing: Any, level: int = 0) -> Filter:
    """The filter that JSON describes; None means all rows.

    Raises:
        BadRequest: it does not follow the grammar, or has too many levels.
    """
    if level > MOST_LEVELS:
        raise BadRequest(f"filter: it has more than {MOST_LEVELS} levels")
    if thing is None or isinstance(thing, bool):
        return FALSE if thing is False else TRUE
    kind = thing.get("type") if isinstance(thing, dict) else None
    if not isinstance(kind, str):
        raise BadRequest("filter: a predicate must be true, false or an object with a type")
    if kind in CONSTANTS:
        return CONSTANTS[kind]
    if kind in CHAINS:
        return CHAINS[kind](tuple(filter_of(operand, level + 1) for operand in _chain(thing, kind)))
    if kind == "not":
        return Not(filter_of(_part(thing, "child"), level + 1))
    leaf: UnaryPredicate | ComparisonPredicate | SetPredicate = validated(Leaf, thing)
    return _predicate(leaf)


def _chain(node: dict[str, Any], kind: str) -> Iterator[Any]:
    """The operands of a chain of one operator, however deep it is."""
    stack: list[Any] = [node]
    while stack:
        operand = stack.pop()
        if isinstance(operand, dict) and operand.get("type") == kind:
            stack += [_part(operand, "right"), _part(operand, "left")]
        else:
            yield operand


def _part(node: dict[str, Any], name: str) -> Any:
    if node.get(name) is None:
        raise BadRequest(f"filter: {node['type']} has no {name}")
    return node[name]


def _predicate(leaf: UnaryPredicate | ComparisonPredicate | SetPredicate) -> Predicate:
    match leaf:
        case UnaryPredicate():
            return Predicate(leaf.type, _field(leaf.child or leaf.term))
        case SetPredicate():
            values = leaf.values.values if isinstance(leaf.values, TypedValues) else leaf.values
            field = _field(leaf.child or leaf.term)
            return Predicate(leaf.type, field, tuple(map(_value, values)))
    left = leaf.term if leaf.left is None else leaf.left
    right = leaf.value if leaf.right is None else leaf.right
    if left is None or right is None:
        # PyIceberg writes infinity as null: no answer could repeat it as the residual.
        raise BadRequest(f"filter: {leaf.type} needs a term and a value; null is none")
    if isinstance(right, Reference | Computed) or not isinstance(left, str | Reference):
        return Predicate(leaf.type, None)
    return Predicate(leaf.type, _field(left), (_value(right),))


def _field(term: str | Reference | Computed | None) -> str | int | None:
    match term:
        case None:
            raise BadRequest("filter: a predicate has no term")
        case Reference():
            names = [name for name in (term.name, term.term, term.id) if name is not None]
            if not names:
                raise BadRequest("filter: a reference has neither a name nor an id")
            return names[0]
        case Computed():
            return None
    return term


def _value(literal: Value | TypedValue) -> Value:
    return literal.value if isinstance(literal, TypedValue) else literal
