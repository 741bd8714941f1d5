"""The S3 endpoint: a folder as a bucket, or an S3 behind; what clients may upload and remove."""
