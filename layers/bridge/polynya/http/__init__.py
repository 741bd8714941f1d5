"""The Iceberg REST catalog as an ASGI application, and virtual files by key; no host is known."""
