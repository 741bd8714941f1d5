"""Clients that write, the catalogs they write to, and commits of many files."""
