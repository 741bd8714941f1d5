"""Bytes by key: the cache, the stores, and the AWS clients."""
