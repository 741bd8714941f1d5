"""Who calls the server, and what each caller may do: tokens, keys for S3, the audit log."""
