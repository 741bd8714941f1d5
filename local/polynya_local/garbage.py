"""When the processes of the server collect cyclic garbage."""

import gc


def collect_rarely() -> None:
    """Collect after 50,000 new objects instead of 700, and never the objects that exist now.

    The rows of a catalog form no reference cycles, and there may be millions of them. A search of
    all modules and settings stops the threads of a process for 40 ms and more.
    """
    gc.set_threshold(50_000, 10, 10)
    gc.collect()
    gc.freeze()
