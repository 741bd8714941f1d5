"""One table as its owner sees it: columns, history, files, and what Iceberg clients get."""
