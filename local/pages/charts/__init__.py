"""Pictures as SVG: shapes are computed here, the templates draw them.

Nothing has a style of its own, because the policy of the page forbids it: a class says what a shape
means, and the stylesheet how that looks.
"""

from .bars import bar
from .bounds import bounds
from .history import history
from .sizes import sizes

__all__ = ["bar", "bounds", "history", "sizes"]
