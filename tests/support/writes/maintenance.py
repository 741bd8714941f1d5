"""Native DuckLake, which writes and keeps house while clients stream into the table `feed`."""

import re
import time
from collections import Counter
from contextlib import contextmanager
from threading import Event, Thread

MAINTENANCE = (
    "INSERT INTO lake.main.other VALUES (1)",
    "CALL ducklake_merge_adjacent_files('lake', 'feed')",
    "CALL ducklake_expire_snapshots('lake', older_than => now())",
    "INSERT INTO lake.main.other VALUES (2)",
    "CALL ducklake_flush_inlined_data('lake')",
    "CALL ducklake_expire_snapshots('lake', older_than => now())",
    # Whoever reads an older snapshot has its files for some seconds.
    "CALL ducklake_cleanup_old_files('lake', older_than => now() - INTERVAL 15 SECONDS)",
    "CALL ducklake_rewrite_data_files('lake', 'feed')",
)


class Maintenance:
    """Native DuckLake, which writes and keeps house."""

    def __init__(self, con) -> None:
        self._con, self.done, self.conflicts = con, Counter(), 0

    def work(self) -> None:
        for statement in MAINTENANCE:
            try:
                self._con.execute(statement)
                self.done[statement.partition("(")[0].split()[1].removeprefix("ducklake_")] += 1
            except Exception as error:
                # PostgreSQL's serialization failure, as between two native writers.
                if not re.search("conflict|could not serialize", str(error), re.IGNORECASE):
                    raise
                self.conflicts += 1
            time.sleep(0.5)


@contextmanager
def in_thread(function, *words):
    """Call a function again and again beside the block; its first error is raised after that."""
    ended, errors = Event(), []

    def run() -> None:
        try:
            while not ended.is_set():
                function(*words)
        except BaseException as error:
            errors.append(error)

    thread = Thread(target=run)
    thread.start()
    try:
        yield errors
    finally:
        ended.set()
        thread.join()
    if errors:
        raise errors[0]
