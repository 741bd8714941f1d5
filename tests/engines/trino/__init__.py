"""Trino, started from the archives of its server."""
