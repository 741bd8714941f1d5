"""Distributes tests to the processes of pytest-xdist."""

import re

from xdist.scheduler import LoadScopeScheduling

LAKE = re.compile(r"[\[-](\d\d_\w+)[-\]]")


class LakeScheduling(LoadScopeScheduling):
    """One process runs all tests of a lake, or of a file: each lake is written once, and each
    fixture of a module is made once."""

    def _split_scope(self, nodeid: str) -> str:
        if found := LAKE.search(nodeid):
            return found[1]
        return nodeid.partition("::")[0]
