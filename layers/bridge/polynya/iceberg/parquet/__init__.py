"""Small Parquet files: inlined rows, position deletes, footers."""
