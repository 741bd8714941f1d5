"""What an ingest job is asked to do."""

from dataclasses import dataclass

from ..common.errors import BadInput
from ..common.modes import APPEND, MODES
from .catalog import TableName


@dataclass(frozen=True, slots=True)
class IngestSpec:
    """What is to come of a DataFrame.

    Raises:
        BadInput: there is no such mode, or the token cannot be one.
    """

    name: TableName
    token: str
    """Exactly once: a snapshot with this in commit_extra_info is this job's."""
    mode: str = APPEND
    create: bool = False
    partition_by: tuple[str, ...] = ()
    """Of a table that is created: `day(at)`, `bucket(8, id)`, `region`."""
    comment: str | None = None
    """Likewise."""
    evolve: bool = False
    author: str | None = None
    message: str | None = None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise BadInput(f"the mode must be one of {', '.join(MODES)}, not {self.mode!r}")
        if not self.token or "\0" in self.token:
            raise BadInput("the token must be a text that is not empty")
