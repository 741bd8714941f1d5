"""Delete files, where a commit deletes too many rows to keep them in PostgreSQL."""
