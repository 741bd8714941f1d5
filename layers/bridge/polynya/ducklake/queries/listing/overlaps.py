"""How the bounds of a column overlap over all data files of a table: does pruning work?

Bounds are compared as values of their type, and placed by their rank among all bounds, so that a
picture shows them for every type. Bounds whose text is not certain are left out.
"""

from typing import Any

from ...connection.statements import Rows, Statement
from ...rows.lake import Lake
from ...rows.listed_files import BoundsOverlap, BoundsSpan
from ..files.bound_texts import READ, SQL_TYPES
from ..fragments import VISIBLE, fragment

OVERLAP = f"""
WITH bound AS (
  SELECT s.data_file_id, {{lower}} AS lower, {{upper}} AS upper,
    left(s.min_value, 100) AS lower_text, left(s.max_value, 100) AS upper_text
  FROM {{stats_table}} AS s JOIN ducklake_data_file AS f USING (data_file_id)
  WHERE s.table_id = :table_id AND s.column_id = :column_id AND {VISIBLE.format("f")}),
known AS (
  SELECT * FROM bound WHERE lower IS NOT NULL AND upper IS NOT NULL AND lower <= upper),
endpoint AS (
  SELECT data_file_id, lower AS value, 1 AS delta FROM known
  UNION ALL SELECT data_file_id, upper, -1 FROM known),
placed AS (
  SELECT data_file_id, delta, dense_rank() OVER (ORDER BY value) AS place,
    sum(delta) OVER (ORDER BY value, delta DESC, data_file_id ROWS UNBOUNDED PRECEDING) AS open
  FROM endpoint),
span AS (
  SELECT data_file_id, min(place) AS first, max(place) AS last,
    max(open) FILTER (WHERE delta = 1) AS depth
  FROM placed GROUP BY data_file_id),
numbered AS (
  SELECT data_file_id, first, last, row_number() OVER (ORDER BY first, last, data_file_id) AS n,
    count(*) OVER () AS files, max(last) OVER () AS places, avg(depth) OVER () AS mean_depth,
    max(depth) OVER () AS most_depth
  FROM span)
SELECT n.data_file_id, n.first, n.last, k.lower_text, k.upper_text,
  n.files, n.places, n.mean_depth, n.most_depth
FROM numbered AS n JOIN known AS k USING (data_file_id)
WHERE (n.n - 1) % greatest(1, (n.files + :most - 1) / :most) = 0
ORDER BY n.n"""

NO_OVERLAP = BoundsOverlap([], 0, 0, 0.0, 0)


def overlap(
    lake: Lake, table_id: int, column_id: int, form: str, snapshot_id: int, most: int
) -> Statement[BoundsOverlap]:
    """The overlap of a column's bounds.

    Args:
        form: how the texts are compared, one of `rows.conditions.FORMS`.
        most: how many files are named, evenly chosen.
    """
    sql = OVERLAP.format(
        lower=_value(form, "s.min_value"),
        upper=_value(form, "s.max_value"),
        stats_table=fragment(lake, "stats_table"),
    )
    parameters: dict[str, Any] = {"table_id": table_id, "column_id": column_id}
    return Statement(sql, {**parameters, "snapshot_id": snapshot_id, "most": most}, _overlap)


def _value(form: str, text: str) -> str:
    value = READ[form].replace("@", text)
    # The order of bytes; the database may sort texts as people of some country do.
    return value if form in SQL_TYPES else f'({value}) COLLATE "C"'


def _overlap(rows: Rows) -> BoundsOverlap:
    if not rows:
        return NO_OVERLAP
    files, places, mean, most = rows[0][5:]
    spans = [BoundsSpan(*row[:5]) for row in rows]
    return BoundsOverlap(spans, files, places, float(mean), int(most))
