"""Pictures as SVG: shapes are computed here, the templates draw them.

Nothing has a style of its own, because the policy of the page forbids it: a class says what a shape
means, and the stylesheet how that looks.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar in a line of a table."""

    width: float
    """Of 100."""


def bar(value: int, most: int) -> Bar:
    """The share of a value in the largest one; what is not nothing can be seen."""
    if value <= 0 or most <= 0:
        return Bar(0)
    return Bar(max(1.5, round(100 * value / most, 1)))
