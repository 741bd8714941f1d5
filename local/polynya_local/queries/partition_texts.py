"""The partition values of a data file as one text, which files of one partition have in common."""

from polynya.ducklake.connection.catalog_connection import Statement

MOST_KEYS = 20
"""Values of further keys are ignored."""

KEYS = f"""
SELECT least(greatest(coalesce(max(partition_key_index), 0), 0), {MOST_KEYS - 1}) + 1
FROM ducklake_file_partition_value
WHERE table_id = :table_id"""


def partition_keys(table_id: int) -> Statement[int]:
    """The greatest number of partition values that a file of a table has, from 1 to MOST_KEYS."""
    return Statement(KEYS, {"table_id": table_id}, lambda rows: int(rows[0][0]))


# A join for each key: to sort and concatenate the values of each file takes three times as long,
# most of it for tables with one key.
TEXT = "{index}=' || coalesce(quote_literal(v{index}.partition_value), 'NULL')"
FIRST = """(SELECT v0.data_file_id, {texts} AS partition
  FROM ducklake_file_partition_value AS v0{later_keys}
  WHERE v0.table_id = :table_id AND v0.partition_key_index = 0)"""
OTHER = """
  LEFT JOIN ducklake_file_partition_value AS v{index} ON v{index}.data_file_id = v0.data_file_id
    AND v{index}.table_id = :table_id AND v{index}.partition_key_index = {index}"""


def partition_texts(keys: int) -> str:
    """SQL for the texts by data_file_id, of the files of the table :table_id that have values."""
    texts = " || ',".join(TEXT.format(index=index) for index in range(keys))
    later_keys = "".join(OTHER.format(index=index) for index in range(1, keys))
    return FIRST.format(texts=f"'{texts}", later_keys=later_keys)
