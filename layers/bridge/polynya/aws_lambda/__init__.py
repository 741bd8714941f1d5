"""The host AWS Lambda: the lakes of a function, its handlers, its events and its callers."""
