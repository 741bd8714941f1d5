"""Virtual files: their names, one table's files, and the cache of table metadata."""
