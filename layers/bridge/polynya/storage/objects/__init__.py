"""Objects in S3: read whole, in ranges, and copied with another end."""
