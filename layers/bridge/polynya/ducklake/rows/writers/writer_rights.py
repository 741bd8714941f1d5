"""What a database role may do, from PostgreSQL's own tables."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WriterRights:
    """What a role needs for commits, and has or lacks."""

    role: str
    owner: str
    """The owner of DuckLake's tables."""
    may_be_owner: bool
    """Whether the role may create tables as the owner."""
    version: str
    """The version of the catalog."""
    commits_owner: str | None
    """The owner of the table `polynya_commits`; None: there is no such table."""
    readers: list[str]
    """Roles with a grant to read DuckLake's snapshots, and none to read `polynya_commits`."""
