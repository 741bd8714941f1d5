"""Queries that only commits need."""
