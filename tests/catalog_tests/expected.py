"""The tests that cannot pass against a DuckLake, and why. All others must."""

FAILING: dict[str, str] = {}

SKIPPED: dict[str, str] = {}
