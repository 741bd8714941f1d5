"""Rows of schemas, tables, views, columns and tags."""
