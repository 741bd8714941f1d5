"""When the processes of the server look for garbage that refers to itself."""

import gc


def collect_rarely() -> None:
    """Look for such garbage after 50,000 new objects instead of 700, and never among the objects
    that there are now.

    The rows of a catalog refer to each other in no circle, and there may be millions of them. A
    search among all modules and settings stops the threads of a process for 40 ms and more.
    """
    gc.set_threshold(50_000, 10, 10)
    gc.collect()
    gc.freeze()
