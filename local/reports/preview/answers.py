"""What a preview consists of. A part is missing if it failed or took too long; a note says why."""

from dataclasses import dataclass, field

from polynya.namespaces import Namespace

from .filters import Condition


@dataclass(frozen=True, slots=True)
class Limits:
    """What a preview may take."""

    rows: int = 100
    columns: int = 100
    characters: int = 200
    """Of a cell."""
    bytes: int = 1_000_000
    """Of all cells."""
    compared_bytes: int = 512_000_000
    """Of the data files that the filter left; rows of more are not compared."""
    seconds: float = 8.0
    memory: str = "1GB"
    """Of DuckDB."""


@dataclass(frozen=True, slots=True)
class Question:
    """A table at a snapshot, and which of its rows are wanted."""

    namespace: Namespace
    table: str
    snapshot: int
    """DuckLake's."""
    conditions: tuple[Condition, ...]
    hidden: frozenset[str]
    """The dotted names of columns that Iceberg clients do not get."""
    bytes: int
    """Of all visible data files."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A value as text: binary as hexadecimal digits, nested ones as JSON."""

    text: str | None
    """None: NULL."""
    length: int | None = None
    """The characters of the whole text, if this is only its begin; of binary: its bytes."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows, in no particular order."""

    columns: tuple[str, ...]
    types: tuple[str, ...]
    """DuckDB's, as its Iceberg extension has them."""
    rows: tuple[tuple[Cell, ...], ...]
    has_more: bool
    """Other rows pass the filter, too."""
    columns_left_out: int


@dataclass(frozen=True, slots=True)
class Count:
    """All rows that pass the filter."""

    rows: int
    checksum: str
    """It does not depend on the order of the rows."""
    seconds: float = field(compare=False)


@dataclass(frozen=True, slots=True)
class Planned:
    """The files that an Iceberg client reads for the filter."""

    files: int
    """Data files of the lake."""
    bytes: int
    """Of those."""
    generated_files: int
    """Files of inlined rows."""
    delete_files: int


@dataclass(frozen=True, slots=True)
class Refusal:
    """The question itself is at fault."""

    sentence: str


@dataclass(frozen=True, slots=True)
class Answer:
    """What came within the time."""

    rows: Rows | None = None
    planned: Planned | None = None
    iceberg: Count | None = None
    native: Count | None = None
    native_skipping: Count | None = None
    """What native DuckLake finds if it skips files by its own statistics, if that is not `native`:
    then it skips some that it should read."""
    notes: dict[str, str] = field(default_factory=dict)
    """Why a part is missing, by its name."""

    @property
    def agree(self) -> bool | None:
        """Whether DuckLake has the same rows; None: one of the two is not known."""
        if self.iceberg is None or self.native is None:
            return None
        return self.iceberg == self.native
