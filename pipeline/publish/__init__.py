"""The job `publish`: Iceberg files of a whole lake, made before a client asks."""
