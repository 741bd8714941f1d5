"""The job `publish`: generates the Iceberg files of a whole lake before clients request them."""
