"""How many rows a table has according to the counts in DuckLake's catalog."""

from pg8000.native import Connection, identifier
from polynya.ducklake import queries
from polynya.ducklake.rows.lake import Lake
from polynya.ducklake.rows.named_objects import Schema, Table

from .ducklake_rows import Uncountable

DATA_ROWS = """
SELECT coalesce(sum(f.record_count), 0)::bigint, coalesce(sum(d.rows), 0)::bigint,
  coalesce(bool_or(({partial_max})::bigint > :snapshot_id OR d.partial OR d.files > 1), false)
FROM ducklake_data_file AS f LEFT JOIN (
  SELECT data_file_id, count(*) AS files, sum(rows) AS rows, bool_or(partial) AS partial
  FROM ({deletes}) AS one GROUP BY data_file_id) AS d USING (data_file_id)
WHERE f.table_id = :table_id AND :snapshot_id >= f.begin_snapshot
  AND (:snapshot_id < f.end_snapshot OR f.end_snapshot IS NULL)"""

STORED_DELETES = """
SELECT d.data_file_id, d.delete_count AS rows,
  coalesce(({partial_max})::bigint > :snapshot_id, false) AS partial
FROM ducklake_delete_file AS d JOIN ducklake_data_file AS f USING (data_file_id)
WHERE d.table_id = :table_id
  AND :snapshot_id >= d.begin_snapshot
  AND (:snapshot_id < d.end_snapshot OR d.end_snapshot IS NULL)"""

INLINED_DELETES = """
UNION ALL SELECT d.{file_id}, count(DISTINCT d.{position}), false FROM {table} AS d
WHERE d.{begin} <= :snapshot_id GROUP BY d.{file_id}"""

INLINED_ROWS = """
SELECT count(*) FROM {table} AS r
WHERE r.{begin} <= :snapshot_id AND (r.{end} > :snapshot_id OR r.{end} IS NULL)"""


class CatalogCounts:
    """Counts from the catalog, for versions that this machine's DuckDB cannot attach."""

    name = "the counts in DuckLake's catalog"

    def rows(
        self, con: Connection, lake: Lake, schema: Schema, table: Table, snapshot_id: int
    ) -> int:
        """Rows of data files, minus the deleted ones, plus inlined rows.

        Raises:
            Uncountable: the catalog does not hold the number.
        """
        inlined = queries.inlined(lake, table.table_id, table.begin_snapshot).run(con)
        deletes = STORED_DELETES.format(partial_max=queries.fragment(lake, "delete_partial_max"))
        if inlined.delete_columns:
            file_id, position, begin = map(identifier, inlined.delete_columns)
            deletes += INLINED_DELETES.format(
                file_id=file_id,
                position=position,
                begin=begin,
                table=identifier(f"ducklake_inlined_delete_{table.table_id}"),
            )
        at = {"snapshot_id": snapshot_id, "table_id": table.table_id}
        partial_max = queries.fragment(lake, "data_partial_max")
        sql = DATA_ROWS.format(deletes=deletes, partial_max=partial_max)
        [[rows, deleted, is_mixed]] = con.run(sql, **at)
        if is_mixed:
            raise Uncountable("files hold rows of later snapshots, or several deletes on one file")
        for rows_table in inlined.tables:
            _, begin, end = map(identifier, rows_table.system_columns)
            name = identifier(rows_table.table_name)
            sql = INLINED_ROWS.format(table=name, begin=begin, end=end)
            rows += con.run(sql, snapshot_id=snapshot_id)[0][0]
        return int(rows - deleted)
