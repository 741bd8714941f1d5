"""From a plan to the rows of one DuckLake snapshot, and delete files in S3."""
