"""`polynya serve` that kills itself with SIGKILL at a step of a commit: `python -m ... STEP ARGS`.

Steps are names of `STEPS`; the words after it are those of the command `polynya`.
"""

import os
import signal
import sys
from collections.abc import Callable
from typing import Any


def main() -> None:
    step, *words = sys.argv[1:]
    from polynya.catalog import writer
    from polynya.ducklake.connection import database
    from polynya.ducklake.writes import new_files

    modules: dict[str, Any] = {"catalog": writer, "files": new_files, "database": database}
    if step == "commit":
        _kill_after_commit(database.CatalogConnection)
    elif step:
        module, name = step.split(".")
        setattr(modules[module], name, _killing(getattr(modules[module], name)))
    from polynya_local.cli import app

    app(words)


STEPS = {
    "catalog.claim_snapshot_id": False,
    "catalog.check_files": False,
    "files.add": False,
    "catalog.check_time": False,
    "commit": True,
}
"""What is called next when the process dies, and whether the commit has taken place."""


def _killing(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, before which the process dies if the table `t` has been created."""

    def replaced(*arguments: Any, **named: Any) -> Any:
        if os.path.exists(os.environ["KILL_WHEN"]):
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **named)

    return replaced


def _kill_after_commit(connection: type[Any]) -> None:
    run = connection.run
    is_writing = False

    def replaced(self: Any, sql: str, *arguments: Any, **named: Any) -> Any:
        nonlocal is_writing
        is_writing = "READ WRITE" in sql or (is_writing and not sql.startswith("BEGIN"))
        answer = run(self, sql, *arguments, **named)
        if is_writing and sql == "COMMIT" and os.path.exists(os.environ["KILL_WHEN"]):
            os.kill(os.getpid(), signal.SIGKILL)
        return answer

    connection.run = replaced


if __name__ == "__main__":
    main()
