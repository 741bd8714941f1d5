"""What template.yaml gives a function: packages, and rights in S3."""
