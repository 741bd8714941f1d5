"""The host AWS Lambda: events as requests, callers of AWS, and what a handler is decorated with."""
