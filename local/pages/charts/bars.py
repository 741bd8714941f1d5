"""A bar in a line of a table."""


def bar(value: int, most: int) -> float:
    """Its length, of 100: the share of a value in the largest one. A small one can be seen."""
    if value <= 0 or most <= 0:
        return 0
    return max(1.5, round(100 * value / most, 1))
