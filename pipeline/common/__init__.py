"""What the jobs share: options, errors, the session, files in S3, columns."""
