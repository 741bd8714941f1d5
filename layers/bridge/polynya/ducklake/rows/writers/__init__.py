"""Rows that only writers of the catalog read."""
