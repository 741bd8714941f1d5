"""The packages and S3 permissions that template.yaml gives each function."""
