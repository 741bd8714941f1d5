"""Who calls the server, and what each caller may: tokens, keys for S3, a line for each request."""
