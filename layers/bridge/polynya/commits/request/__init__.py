"""What an Iceberg client sends with a commit: updates of the metadata, and files in S3."""
