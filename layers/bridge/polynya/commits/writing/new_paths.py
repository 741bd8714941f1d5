"""A commit adds only files that the catalog has never had."""

from pg8000.native import Connection

from ...ducklake import queries
from ...ducklake.rows.lake import Lake
from ...errors import BadRequest
from ...translate.commits.paths import normalised, spellings
from ..plans.plan import TablePlan


def check_paths_are_new(con: Connection, lake: Lake, plan: TablePlan) -> None:
    """Check the added files, after the claim of the snapshot.

    A file that belongs to two tables, or to one table twice, is deleted while one of them needs it.

    Raises:
        BadRequest: the catalog has, or has had, one of the files; whichever table it belongs to.
    """
    if not plan.added:
        return
    wanted = {normalised(plan.location + file.path) for file in plan.added}
    paths = {path for location in wanted for path in spellings(location)}
    found = queries.known_locations(lake, paths).run(con)
    for location in wanted.intersection(map(normalised, found)):
        raise BadRequest(
            f"the file {location.rpartition('/')[2]} is in the catalog already, or was; files that "
            "DuckLake has removed cannot be added again"
        )
