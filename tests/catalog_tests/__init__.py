"""Iceberg's own CatalogTests and ViewCatalogTests against `polynya serve --writes`."""
