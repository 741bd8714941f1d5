"""The S3 behind the stand-in: addresses, errors, and a proxy."""
