"""S3 behind the stand-in: addresses, errors, requests that pass through."""
