"""The data files that a commit adds: their footers, their rows for the catalog, their copies."""
