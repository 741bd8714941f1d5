"""A DuckLake anywhere: the string after `ATTACH`, and what makes it a lake in PostgreSQL and S3."""
