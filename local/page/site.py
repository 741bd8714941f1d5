"""What the pages know of the lake that is served."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from pg8000.native import Connection

from ..lakes.readable import ReadableLake
from ..reports.generator import Generator
from ..reports.lake.statuses import Statuses
from ..reports.preview.databases import Endpoints
from ..reports.preview.reader import PreviewReader
from .addresses import Addresses
from .work import Work

Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Site:
    """The lake, and what has been found out about it."""

    addresses: Addresses
    lake: ReadableLake
    generator: Generator
    statuses: Statuses
    files: Work
    """Generates metadata files."""
    doctor: Work
    """Checks tables."""
    previews: Work
    """Asks `reader` for rows."""
    reader: PreviewReader

    @classmethod
    def of(cls, addresses: Addresses, lake: ReadableLake) -> "Site":
        """Read the settings of the environment, which are those of the functions.

        Raises:
            Misconfigured: one of them is not usable.
        """
        new = partial(Generator, lake.database, lake.metadata_schema, lake.s3_endpoint)
        generator = new()
        works = Work("page-files", new), Work("page-doctor", new), Work("page-previews", new)
        endpoints = Endpoints(
            addresses.catalog_uri,
            addresses.warehouse,
            addresses.s3_endpoint,
            lake.database,
            lake.metadata_schema,
            lake.s3_endpoint,
        )
        return cls(
            addresses, lake, generator, Statuses(generator), *works, PreviewReader(endpoints)
        )

    def notices(self, path: str) -> list[str]:
        """What a visitor of a page has to know of the whole lake."""
        staleness = self.lake.staleness()
        notices = [f"{staleness}. What was committed since is not shown."] if staleness else []
        if path == "/" and self.lake.folder_warning:
            notices.append(f"{self.lake.folder_warning}.")
        return notices

    def read(self, question: Callable[[Connection], Result]) -> Result:
        """The result of a function of a connection, within one transaction.

        Raises:
            PolynyaError: the database cannot be read.
        """
        return self.generator.read(question)

    def close(self) -> None:
        """End the threads, and close the connections."""
        self.files.close()
        self.doctor.close()
        self.reader.close()
        self.previews.close()
        self.generator.database.close()
