"""The command `polynya`, and the server that it runs on one machine.

ROOT and IS_CHECKOUT say whether this package is run from a checkout, and where that is:
template.yaml, the lists of packages of the functions, and the tests are not in the wheel.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""Two folders above this package: the root of the checkout, if IS_CHECKOUT."""

IS_CHECKOUT = (ROOT / "template.yaml").exists()
