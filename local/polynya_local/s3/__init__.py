"""The S3 endpoint: serves a folder or another S3, and decides what clients upload and remove."""
