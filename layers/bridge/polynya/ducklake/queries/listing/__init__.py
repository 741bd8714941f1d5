"""Statements about many tables or many snapshots at once, in pages: what a person looks through."""
