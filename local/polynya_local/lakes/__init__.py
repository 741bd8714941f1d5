"""DuckLakes of all kinds: their addresses, and the mirrors that put them in PostgreSQL and S3."""
