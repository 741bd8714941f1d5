"""A catalog of any kind as a copy in PostgreSQL, which follows its changes."""
