"""The Iceberg REST catalog as an ASGI application, and virtual files by key, for every host."""
